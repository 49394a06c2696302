"""Take everything away, and look for what is left."""

import re
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from infra.proof.cdk import DEPLOYMENT, RECEIVER
from infra.proof.place import NAME
from infra.proof.proof import Proof, wait_until
from infra.proof.results import Result, StepFailed
from infra.proof.stacks import stack_names, status_of

CHANGE_MINUTES = 60
TAG_MINUTES = 10
GATEWAY_LOG = "API-Gateway-Execution-Logs_{api}/api"
ACCOUNT_ROLE = "RestApiCloudWatchRole"
"""A setting of the whole account, which CloudFormation keeps (docs/deploy.md#removing-a-deployment)."""


def destroy(proof: Proof, result: Result) -> None:
    """Raises StepFailed with the CDK's words if a stack could not be deleted."""
    wait_until(
        lambda: not _changing(proof), CHANGE_MINUTES, "the change of a stack that was interrupted", every=5
    )
    for app in (RECEIVER, DEPLOYMENT):
        proof.cdk.destroy(app)
    result.done.append("`cdk destroy --all` of the receiver and of hooksaga.")
    if (api := proof.state.get("outputs", {}).get("ApiId")) is not None:
        _delete_gateway_log(proof, result, GATEWAY_LOG.format(api=api))
    found = leftovers(proof)
    names = [name for name in found if ACCOUNT_ROLE not in name]
    kept = [name for name in found if ACCOUNT_ROLE in name]
    result.require(not names, f"left: {', '.join(names)}")
    result.figures["left by name"] = ", ".join([*names, *kept]) or "nothing"
    tagged = _wait_for_no_tags(proof)
    result.figures["left by tag"] = ", ".join(tagged) or "nothing"
    if tagged:
        result.done.append("The tagging API still lists what was deleted for up to some hours: look again.")


def _changing(proof: Proof) -> list[str]:
    """Return the stacks that CloudFormation still updates: it refuses to delete them. It goes on without its caller."""
    states = {name: status_of(proof, name) for name in stack_names(proof)}
    return [name for name, state in states.items() if re.fullmatch("UPDATE_.*IN_PROGRESS", state)]


def _delete_gateway_log(proof: Proof, result: Result, name: str) -> None:
    try:
        proof.account.client("logs").delete_log_group(logGroupName=name)
        result.done.append("Deleted the log group that API Gateway made itself.")
    except ClientError as error:
        if "ResourceNotFoundException" not in str(error):
            raise
        result.unavailable.append("A log group that API Gateway made itself: there was none.")


def leftovers(proof: Proof) -> list[str]:
    """Return the names of this deployment that the account still knows, whatever stack they came from."""
    prefix = proof.place.prefix
    alarms = proof.account.client("cloudwatch").describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
    rules = proof.account.client("events").list_rules(NamePrefix=prefix)
    found = [
        *(url.rsplit("/", 1)[1] for url in _all(proof, "sqs", "list_queues", "QueueUrls")),
        *(one["FunctionName"] for one in _all(proof, "lambda", "list_functions", "Functions")),
        *(one["logGroupName"] for one in _all(proof, "logs", "describe_log_groups", "logGroups")),
        *(one["RoleName"] for one in _all(proof, "iam", "list_roles", "Roles")),
        *(one["Name"] for one in _all(proof, "secretsmanager", "list_secrets", "SecretList")),
        *(one["Name"] for one in rules.get("Rules", [])),
        *_all(proof, "dynamodb", "list_tables", "TableNames"),
        *(one["name"] for one in _all(proof, "apigateway", "get_rest_apis", "items")),
        *(one["AlarmName"] for one in alarms),
    ]
    marks = (prefix, f"/hooksaga/{proof.place.env.name}/")
    return sorted(name for name in found if any(mark in name for mark in marks))


def _all(proof: Proof, service: str, operation: str, field: str) -> list[Any]:
    pages = proof.account.client(service).get_paginator(operation).paginate()
    return [one for page in pages for one in page.get(field, [])]


def _wait_for_no_tags(proof: Proof) -> list[str]:
    """Return the ARNs that still have the deployment's tag. The tagging API is some minutes behind."""
    found = list[str]()

    def none_left() -> bool:
        found[:] = tagged(proof)
        return not found

    with suppress(StepFailed):  # an emulator lists some deleted resources for ever
        wait_until(none_left, 0 if proof.place.endpoint else TAG_MINUTES, "the tagging API", every=15)
    return found


def tagged(proof: Proof) -> list[str]:
    """Return the ARNs with the tag of the proof."""
    pages = proof.account.client("resourcegroupstaggingapi").get_paginator("get_resources")
    filters = [{"Key": "hooksaga", "Values": [NAME]}]
    return [
        one["ResourceARN"]
        for page in pages.paginate(TagFilters=filters)
        for one in page["ResourceTagMappingList"]
    ]
