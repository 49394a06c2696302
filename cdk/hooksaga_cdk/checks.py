"""Checks of what a deployment is given, before the first resource is defined."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from aws_cdk import Stack, Stage, Token
from constructs import Construct

from hooksaga.aws.deployment import InvalidDeployment
from hooksaga_cdk.bundling import regions_with_certificates

if TYPE_CHECKING:
    from hooksaga_cdk.construct import Hooksaga


DATABASE_URL = "HOOKSAGA_DATABASE_URL"


def check(hooks: "Hooksaga", variables: Mapping[str, str]) -> None:
    """Raise InvalidDeployment with one line for each broken rule."""
    problems = list(_names(hooks))
    if not hooks.env.is_local:
        problems += [*_database(hooks), *_network(hooks), *_api(hooks)]
    elif not variables.get(DATABASE_URL):
        problems.append(f"the local target needs {DATABASE_URL}, which its functions connect to")
    if problems:
        raise InvalidDeployment("\n".join(f"{hooks.node.path}: {problem}" for problem in problems))


def _names(hooks: "Hooksaga") -> Iterator[str]:
    """Names of resources contain the environment's, so an account and region has one of a name."""
    stack, stage = Stack.of(hooks), Stage.of(hooks)
    if stage is None:  # a stack without an app, as in a test
        return
    taken = f"hooksaga {hooks.env.name} in {stack.environment}".replace("/", "-")
    if stage.node.try_find_child(taken):
        yield f"settings.name is {hooks.env.name!r}, as of another Hooksaga in this account and region: choose another"
    else:
        Construct(stage, taken)


def _database(hooks: "Hooksaga") -> Iterator[str]:
    given, region = hooks.given, Stack.of(hooks).region
    if given.database is not None and given.vpc is None:
        yield "database needs vpc: the VPC from which it is reachable"
    certificates = hooks.env.database.ca_file
    if certificates is not None and not certificates.is_file():
        yield f"settings.database.ca_file is {certificates}: there is no such file"
    if certificates is None and not Token.is_unresolved(region) and region not in regions_with_certificates():
        yield (
            f"region is {region}: this version lacks the certificate authority of RDS in it. Download it from "
            f"https://truststore.pki.rds.amazonaws.com/{region}/{region}-bundle.pem and name it in "
            "settings.database.ca_file"
        )


def _network(hooks: "Hooksaga") -> Iterator[str]:
    given, zones = hooks.given, hooks.env.zones
    if given.vpc is None:
        known = len(Stack.of(hooks).availability_zones)
        if known < zones:
            yield (
                f"settings.zones is {zones}: the CDK knows {known} zones of a stack without account and region. "
                "Give the stack its env"
            )
        for name in ("subnets", "endpoints"):
            if getattr(given, name) is not None:
                yield f"{name} needs vpc: the VPC that it belongs to"
    elif given.subnets is None and not given.vpc.private_subnets:
        yield (
            "vpc has no private subnets with a route to the internet, which functions that call receivers need: "
            "name the subnets with subnets=Subnets(outbound=..., inside=..., database=...)"
        )


def _api(hooks: "Hooksaga") -> Iterator[str]:
    given = hooks.given
    if given.domain is not None and hooks.env.api.domain_name is not None:
        yield "domain and settings.api.domain_name are both given: choose one"
    certificate = hooks.env.api.certificate_arn
    if given.domain is not None:
        certificate = given.domain.certificate.certificate_arn
    region = Stack.of(hooks).region
    if certificate and not Token.is_unresolved(certificate) and not Token.is_unresolved(region):
        place = certificate.split(":")[3]
        if place != region:
            yield f"the certificate of the domain is in {place}: the API needs one in {region}"
    if given.private_api and (given.domain is not None or hooks.env.api.domain_name is not None):
        yield "private_api has no domain: put a proxy of yours in front, and name it in settings.api.public_url"
