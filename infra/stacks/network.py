"""Stack of the network and its access rules."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from hooksaga.aws.deployment import Environment
from infra.components.access_rules import AccessRules
from infra.components.endpoints import Endpoints
from infra.components.network import Network
from infra.components.place import Places


class NetworkStack(Stack):
    def __init__(self, scope: Construct, env: Environment) -> None:
        super().__init__(scope, f"{env.prefix}-network", description="hooksaga: network")
        network = Network(self, "Network", env)
        rules = AccessRules(self, "AccessRules", network.vpc, env.receiver_ports)
        Endpoints(self, "Endpoints", network.vpc, rules, env.endpoint_zones)
        self.vpc = network.vpc
        self.places = Places(network.vpc, rules)
        # With or without a proxy: an export cannot be removed before its use in another stack.
        self.export_value(rules.proxy.security_group_id)
        CfnOutput(
            self, "EgressAddress", value=network.egress_address, description="Deliveries come from here"
        )
