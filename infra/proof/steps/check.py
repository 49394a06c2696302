"""Credentials, region, bootstrap, names, quota, and the price. It changes nothing."""

import re

from botocore.exceptions import BotoCoreError, ClientError

from hooksaga.aws.deployment import Environment
from hooksaga.aws.deployment_order import API_FUNCTIONS
from hooksaga.cost.bill import bill_of
from hooksaga.cost.sources import read_inputs, read_prices
from hooksaga.cost.work import HOURS, SECONDS, Load
from infra.proof.cdk import ROOT
from infra.proof.proof import Options, Proof
from infra.proof.receiver import PATHS
from infra.proof.results import Result, StepFailed
from infra.proof.stacks import stack_names, status_of

CERTIFICATES = ROOT / "cdk" / "hooksaga_cdk" / "components" / "certificates" / "amazon-rds.pem"
DEPLOYING_MINUTES, LOCAL_MINUTES = 60, 5
"""Creating, upgrading and deleting: an estimate. Most of it is the database's, with its second zone."""


def check(proof: Proof, result: Result) -> None:
    """Raises StepFailed if the run could not succeed, or nobody has agreed to the price."""
    region = _region(proof)
    _check_credentials(proof)
    result.done.append(f"Credentials of an account in {region}.")
    result.figures["region"] = region
    if not status_of(proof, "CDKToolkit"):
        raise StepFailed("the account is not bootstrapped in this region: python -m infra.cdk_cli bootstrap")
    taken = [name for name in stack_names(proof) if status_of(proof, name)]
    if taken:
        raise StepFailed(
            f"there is already: {', '.join(taken)}. Of an earlier run? Go on with --from, or --from destroy"
        )
    result.done.append(f"The CDK is bootstrapped, and no stack {proof.place.prefix}-* exists.")
    _concurrency(proof, result)
    dollars, minutes = price(proof.options, proof.place.env)
    result.figures["estimated duration"] = f"{minutes:.0f} minutes"
    result.figures["estimated cost"] = f"${dollars:.2f}"
    if not proof.options.confirmed:
        raise StepFailed(
            f"this takes about {minutes:.0f} minutes and costs about ${dollars:.2f} (list prices): add --yes to agree"
        )


def price(options: Options, env: Environment) -> tuple[float, float]:
    """Return the US dollars and the minutes of a run, by the formula of `hooksaga cost`."""
    faults = 3 * options.fault_minutes + max(options.fault_minutes, options.alarm_minutes)
    deployments = LOCAL_MINUTES if env.is_local else DEPLOYING_MINUTES
    minutes = options.minutes + faults + options.settle_minutes / 2 + deployments
    load = Load(options.rate * SECONDS, len(PATHS), days=minutes / 60 / 24)
    month = bill_of(load, env, read_prices(), read_inputs())
    return month.total / HOURS * minutes / 60, minutes


def _check_credentials(proof: Proof) -> None:
    try:
        proof.account.number()
    except (BotoCoreError, ClientError) as error:
        raise StepFailed(
            f"no usable credentials ({error}): `aws sts get-caller-identity` must answer"
        ) from error


def _region(proof: Proof) -> str:
    region = proof.account.region
    if region is None:
        raise StepFailed("no region is chosen: set AWS_DEFAULT_REGION")
    known = re.findall(r"^# Amazon RDS (\S+) Root", CERTIFICATES.read_text(encoding="utf-8"), re.MULTILINE)
    if region not in known:
        raise StepFailed(
            f"the bundle has no database certificate of {region}: set database.ca_file (docs/deploy.md#settings)"
        )
    return region


def _concurrency(proof: Proof, result: Result) -> None:
    limit = proof.account.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    wanted = sum(one.concurrency for one in proof.place.env.functions.values())
    result.figures["quota of concurrent executions"] = f"{limit}"
    reserved = sum(proof.place.env.functions[name].concurrency for name in API_FUNCTIONS)
    if proof.place.env.reserve_api_concurrency and limit < reserved + 100:
        raise StepFailed(f"the quota of {limit} concurrent executions leaves no {reserved} to reserve")
    compared = "enough for" if limit >= wanted else "less than"
    result.done.append(f"The Lambda quota is {compared} the {wanted} copies that all functions may have.")
