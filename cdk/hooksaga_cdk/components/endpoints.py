"""Endpoints in the VPC: of SQS and Secrets Manager for functions without internet access, and of a private API."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from hooksaga_cdk.components.exceptions import allow
from hooksaga_cdk.components.place import Places


class Endpoints(Construct):
    """Created in the configured number of zones: each has an hourly price."""

    def __init__(self, scope: Construct, name: str, places: Places, zones: int) -> None:
        super().__init__(scope, name)
        services = {
            "Sqs": (ec2.InterfaceVpcEndpointAwsService.SQS, "sqs:SendMessage"),
            "SecretsManager": (
                ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
                "secretsmanager:GetSecretValue",
            ),
        }
        for service_name, (service, action) in services.items():
            endpoint = ec2.InterfaceVpcEndpoint(
                self,
                service_name,
                vpc=places.vpc,
                service=service,
                subnets=_some(places, zones),
                security_groups=[places.rules.endpoints],
                open=False,  # AccessRules define the access
            )
            endpoint.add_to_policy(_within_this_account(endpoint, action))


def _within_this_account(endpoint: ec2.InterfaceVpcEndpoint, action: str) -> iam.PolicyStatement:
    """Allow only what the functions do: with another account's credentials, or to its queue, nothing could leave."""
    account = Stack.of(endpoint).account
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=[action],
        resources=["*"],
        conditions={"StringEquals": {"aws:PrincipalAccount": account, "aws:ResourceAccount": account}},
    )


def api_endpoint(scope: Construct, name: str, places: Places, zones: int) -> ec2.InterfaceVpcEndpoint:
    """Create the endpoint of a private API, open to the VPC.

    Without private DNS, which would also redirect the requests of this VPC to everybody's public APIs.
    """
    endpoint = ec2.InterfaceVpcEndpoint(
        scope,
        name,
        vpc=places.vpc,
        service=ec2.InterfaceVpcEndpointAwsService.APIGATEWAY,
        subnets=_some(places, zones),
        private_dns_enabled=False,
    )
    allow(endpoint, "AwsSolutions-EC23", "Open to the VPC's own range only, which the rule cannot read.")
    return endpoint


def _some(places: Places, zones: int) -> ec2.SubnetSelection:
    """Select the inside subnets of as many zones."""
    inside = places.subnets.inside
    found = places.vpc.select_subnets(
        subnets=inside.subnets, subnet_type=inside.subnet_type, subnet_group_name=inside.subnet_group_name
    )
    return ec2.SubnetSelection(subnets=found.subnets[:zones])
