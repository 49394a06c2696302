"""SQS and Secrets Manager within the VPC: functions without a way out reach them here."""

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.components.access_rules import AccessRules
from infra.components.network import INSIDE


class Endpoints(Construct):
    """In as many zones as asked for: each has its price by the hour."""

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
                open=False,  # AccessRules say who may
            )
