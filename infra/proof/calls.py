"""All calls of AWS that the proof makes from this machine, and the IAM policy that allows them.

`infra.proof.account` refuses every other call, so the list is complete. The CDK's own calls go through the roles of its
bootstrap stack; the caller needs only the right to assume them.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """One operation of a service, by boto3's names. `resource`: ARN with {prefix}; `*` where IAM knows no narrower one.

    action: the IAM action, where it is not `service:Operation`. why: the steps that call it.
    """

    service: str
    operation: str
    why: str
    resource: str = "*"
    action: str = ""

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation}"

    @property
    def iam_action(self) -> str:
        return self.action or self.name


_FUNCTION = "arn:aws:lambda:*:*:function:{prefix}-*"
_QUEUE = "arn:aws:sqs:*:*:{prefix}-*"
_RULE = "arn:aws:events:*:*:rule/{prefix}-*"
_DATABASE = "arn:aws:rds:*:*:db:{prefix}-*"
_TABLE = "arn:aws:dynamodb:*:*:table/{prefix}-receiver"
_STACK = "arn:aws:cloudformation:*:*:stack/{prefix}*"
_BOOTSTRAP = "arn:aws:cloudformation:*:*:stack/CDKToolkit/*"

CALLS = (
    Call("sts", "GetCallerIdentity", "check"),
    Call("lambda", "GetAccountSettings", "check"),
    Call("cloudformation", "DescribeStacks", "check", _STACK),
    Call("cloudformation", "DescribeStacks", "check: is the CDK bootstrapped", _BOOTSTRAP),
    Call("lambda", "Invoke", "key, settle, doctor", _FUNCTION, action="lambda:InvokeFunction"),
    Call("lambda", "GetFunctionConfiguration", "doctor, replace", _FUNCTION),
    Call("lambda", "ListEventSourceMappings", "doctor"),
    Call("sqs", "GetQueueUrl", "doctor", _QUEUE),
    Call("sqs", "GetQueueAttributes", "doctor", _QUEUE),
    Call("events", "DescribeRule", "doctor", _RULE),
    Call("cloudwatch", "DescribeAlarms", "doctor, tick, destroy"),
    Call("dynamodb", "PutItem", "receiver", _TABLE),
    Call("dynamodb", "Scan", "settle", _TABLE),
    Call("lambda", "UpdateFunctionConfiguration", "replace", _FUNCTION),
    Call("lambda", "PutFunctionConcurrency", "throttle", _FUNCTION),
    Call("lambda", "DeleteFunctionConcurrency", "throttle", _FUNCTION),
    Call("events", "DisableRule", "tick", _RULE),
    Call("events", "EnableRule", "tick", _RULE),
    Call("rds", "DescribeDBInstances", "database", _DATABASE),
    Call("rds", "RebootDBInstance", "database", _DATABASE),
    Call("cloudwatch", "GetMetricStatistics", "settle"),
    Call("resourcegroupstaggingapi", "GetResources", "destroy", action="tag:GetResources"),
    Call("sqs", "ListQueues", "destroy"),
    Call("lambda", "ListFunctions", "destroy"),
    Call("logs", "DescribeLogGroups", "destroy"),
    Call(
        "logs",
        "DeleteLogGroup",
        "destroy: the log that API Gateway leaves",
        "arn:aws:logs:*:*:log-group:API-Gateway-Execution-Logs_*",
    ),
    Call("iam", "ListRoles", "destroy"),
    Call("secretsmanager", "ListSecrets", "destroy"),
    Call("events", "ListRules", "destroy"),
    Call("dynamodb", "ListTables", "destroy"),
    Call("apigateway", "GetRestApis", "destroy", "arn:aws:apigateway:*::/restapis", action="apigateway:GET"),
)

OPERATIONS = frozenset(call.name for call in CALLS)

CDK_ROLES = "arn:aws:iam::*:role/cdk-hnb659fds-*"
"""The roles of `cdk bootstrap`, with its default qualifier."""


def policy(prefix: str) -> dict[str, Any]:
    """Return the IAM policy document that allows the calls on the deployment of this prefix, and no others."""
    return {"Version": "2012-10-17", "Statement": list(_statements(prefix))}


def _statements(prefix: str) -> Iterator[dict[str, Any]]:
    yield _allow("AssumeTheRolesOfTheCdk", ["sts:AssumeRole"], CDK_ROLES)
    actions: defaultdict[str, set[str]] = defaultdict(set)
    for call in CALLS:
        actions[call.resource.format(prefix=prefix)].add(call.iam_action)
    for number, (resource, allowed) in enumerate(sorted(actions.items()), start=1):
        yield _allow(f"Calls{number}", sorted(allowed), resource)


def _allow(sid: str, actions: list[str], resource: str) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resource}
