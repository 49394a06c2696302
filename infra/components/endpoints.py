"""SQS and Secrets Manager endpoints in the VPC, for functions without internet access."""

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.components.access_rules import AccessRules
from infra.components.network import INSIDE


class Endpoints(Construct):
    """Created in the configured number of zones: each has an hourly price."""

    def __init__(self, scope: Construct, name: str, vpc: ec2.Vpc, rules: AccessRules, zones: int) -> None:
        super().__init__(scope, name)
        subnets = vpc.select_subnets(subnet_group_name=INSIDE.subnet_group_name).subnets[:zones]
        services = {
            "Sqs": ec2.InterfaceVpcEndpointAwsService.SQS,
            "SecretsManager": ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
        }
        for service_name, service in services.items():
            ec2.InterfaceVpcEndpoint(
                self,
                service_name,
                vpc=vpc,
                service=service,
                subnets=ec2.SubnetSelection(subnets=subnets),
                security_groups=[rules.endpoints],
                open=False,  # AccessRules define the access
            )
