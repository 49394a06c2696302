"""What exists already, as named by the context of the app: `-c vpc_id=...`, or cdk.json."""

from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_secretsmanager as secretsmanager

from hooksaga.aws.deployment import InvalidDeployment
from hooksaga_cdk import ExistingDatabase

OF_VPC = ("vpc_id", "vpc_zones", "outbound_subnets", "inside_subnets")
OF_DATABASE = ("database_endpoint", "database_resource_id", "database_secret_arn", "database_security_group")
OPTIONAL_OF_DATABASE = ("database_port", "database_name")


def given_by(stack: Stack) -> dict[str, Any]:
    """Return the arguments of Hooksaga for what the context names. Raises InvalidDeployment, a line per problem."""
    context = {
        name: stack.node.try_get_context(name) for name in (*OF_VPC, *OF_DATABASE, *OPTIONAL_OF_DATABASE)
    }
    problems = [*_missing(context, OF_VPC), *_missing(context, OF_DATABASE, OPTIONAL_OF_DATABASE)]
    port = context["database_port"] or 5432
    if not str(port).isdigit() or not 1 <= int(port) <= 65535:
        problems.append(f"database_port is {port!r}: 1 to 65535")
    if problems:
        raise InvalidDeployment("\n".join(problems))
    given: dict[str, Any] = {}
    if context["vpc_id"]:
        given |= _vpc(stack, context)
    if context["database_endpoint"]:
        given["database"] = ExistingDatabase(
            endpoint=context["database_endpoint"],
            resource_id=context["database_resource_id"],
            secret=secretsmanager.Secret.from_secret_complete_arn(
                stack, "DatabaseSecret", context["database_secret_arn"]
            ),
            security_group=_group(stack, "DatabaseGroup", context["database_security_group"]),
            port=int(port),
            name=context["database_name"] or "hooksaga",
        )
    return given


def _missing(context: dict[str, Any], names: tuple[str, ...], optional: tuple[str, ...] = ()) -> list[str]:
    """Return one line for each name that the others of its group need."""
    named = [name for name in (*names, *optional) if context[name]]
    return [f"{name} is missing: {named[0]} needs it" for name in names if named and not context[name]]


def _vpc(stack: Stack, context: dict[str, Any]) -> dict[str, Any]:
    zones = _listed(context["vpc_zones"])
    outbound, inside = _listed(context["outbound_subnets"]), _listed(context["inside_subnets"])
    for name, subnets in (("outbound_subnets", outbound), ("inside_subnets", inside)):
        if len(subnets) != len(zones):
            raise InvalidDeployment(
                f"{name} has {len(subnets)} subnets: one in each of vpc_zones, in that order"
            )
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id=context["vpc_id"],
        availability_zones=zones,
        private_subnet_ids=outbound,
        isolated_subnet_ids=inside,
    )
    return {"vpc": vpc}


def _group(stack: Stack, name: str, group_id: str) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(stack, name, group_id)


def _listed(value: Any) -> list[str]:
    return [part.strip() for part in str(value).split(",") if part.strip()]
