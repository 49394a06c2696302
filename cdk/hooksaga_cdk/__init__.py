"""hooksaga as a construct of the AWS CDK: `Hooksaga(stack, "Hooks")`."""

from hooksaga.aws.deployment import (
    ApiSettings,
    DatabaseSettings,
    Environment,
    FunctionLimits,
    InvalidDeployment,
    Nat,
)
from hooksaga_cdk.components.encryption import key_statements
from hooksaga_cdk.components.place import Subnets
from hooksaga_cdk.construct import Hooksaga
from hooksaga_cdk.given import Domain, ExistingDatabase

__all__ = [
    "ApiSettings",
    "DatabaseSettings",
    "Domain",
    "Environment",
    "ExistingDatabase",
    "FunctionLimits",
    "Hooksaga",
    "InvalidDeployment",
    "Nat",
    "Subnets",
    "key_statements",
]
