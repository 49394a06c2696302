"""Lambda's own handling of invocations: retries, and the end of recursive chains."""

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.doctor.stack import FUNCTIONS, TICKED
from tests.infra.deployment import Deployment


def test_only_what_its_own_messages_come_back_to_may_run_in_a_loop(on_aws: Deployment) -> None:
    """Lambda would stop a delivery whose attempts follow each other by messages, and its next ones with it."""
    allowed = {name for name, one in on_aws.functions.items() if one.get("RecursiveLoop") == "Allow"}
    assert allowed == {name for name in on_aws.functions if name in reached_from(on_aws, name)}
    assert allowed == {"orchestrator", "delivery"}


def reached_from(deployment: Deployment, function: str) -> set[str]:
    """The functions that a message of this one can start, and those that their messages can."""
    reached: set[str] = set()
    open_ends = {function}
    while open_ends:
        found = set.union(*(starts(deployment, name) for name in open_ends)) - reached
        reached |= found
        open_ends = found
    return reached


def starts(deployment: Deployment, function: str) -> set[str]:
    queues = [f"{name}.Arn" for name in deployment.of_type("AWS::SQS::Queue")]
    sends = [queue for queue in queues if function in deployment.who_may("sqs:SendMessage", queue)]
    return {who for queue in sends for who in deployment.who_may("sqs:ReceiveMessage", queue)}


def test_a_tick_that_failed_is_not_tried_again(on_aws: Deployment) -> None:
    """The next one finds the same work, a minute later."""
    found = {
        function_name(on_aws, one["Properties"]["FunctionName"]): one["Properties"]
        for one in on_aws.of_type("AWS::Lambda::EventInvokeConfig").values()
    }
    assert set(found) == ticked(on_aws)
    for name, one in found.items():
        assert (one["MaximumRetryAttempts"], one["MaximumEventAgeInSeconds"]) == (0, 60), name


def test_the_doctor_looks_at_every_function_and_every_tick(anywhere: Deployment) -> None:
    assert set(FUNCTIONS) == set(anywhere.functions)
    assert set(TICKED) == ticked(anywhere)


def ticked(deployment: Deployment) -> set[str]:
    """The functions that a rule starts."""
    return {
        function_name(deployment, target["Arn"])
        for one in deployment.of_type("AWS::Events::Rule").values()
        for target in one["Properties"]["Targets"]
    }


def function_name(deployment: Deployment, reference: object) -> str:
    function = deployment.resources[deployment.text(reference).split(".")[0]]
    return function["Properties"]["FunctionName"].split("-", 2)[2]
