"""The local runtime API behaves like AWS Lambda's."""

import asyncio
import os
import signal

import pytest

from hooksaga.local.sqs.functions import RequestTooLarge
from hooksaga.local.sqs.runtime_api import MAX_REQUEST_BYTES
from hooksaga.local.sqs.runtime_http import MAX_RESPONSE_BYTES
from tests.sqs.conftest import NewFunction, busy_pids, until

pytestmark = pytest.mark.sqs


async def test_a_process_is_cold_once_and_used_again(new_function: NewFunction) -> None:
    function = new_function()
    first = await function.invoke({"do": "tell"})
    second = await function.invoke({"do": "tell"})
    assert (first.cold, second.cold) == (True, False)
    assert first.payload["pid"] == second.payload["pid"] == first.pid == second.pid
    assert first.payload["request_id"] == first.request_id != second.request_id
    assert first.payload["arn"] == function.spec.arn


async def test_the_deadline_is_the_timeout_from_now(new_function: NewFunction) -> None:
    outcome = await new_function(timeout_seconds=7).invoke({"do": "tell"})
    assert 6_000 < outcome.payload["milliseconds_left"] <= 7_000


async def test_nothing_of_this_environment_reaches_the_function(
    new_function: NewFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "yes")
    outcome = await new_function(environment={"HOOKSAGA_DATA_DIR": "x"}).invoke({"do": "tell"})
    variables = set(outcome.payload["variables"])
    assert "HOOKSAGA_DATA_DIR" in variables
    assert not variables & {"LEAKED", "HOME", "PYTEST_CURRENT_TEST", "VIRTUAL_ENV"}


async def test_an_exception_has_the_shape_that_lambda_answers(new_function: NewFunction) -> None:
    function = new_function()
    outcome = await function.invoke({"do": "raise", "why": "no reason"})
    assert outcome.error is not None
    assert (outcome.error["errorType"], outcome.error["errorMessage"]) == ("ValueError", "no reason")
    assert outcome.error["requestId"] == outcome.request_id
    assert any("probes.py" in line for line in outcome.error["stackTrace"])
    assert not (await function.invoke({"do": "tell"})).cold, (
        "an exception ends the invocation, not the process"
    )


async def test_a_timeout_kills_the_process(new_function: NewFunction) -> None:
    function = new_function(timeout_seconds=1)
    outcome = await function.invoke({"do": "sleep", "seconds": 30})
    assert outcome.error == {
        "errorType": "Sandbox.Timedout",
        "errorMessage": f"RequestId: {outcome.request_id} Error: Task timed out after 1.00 seconds",
    }
    with pytest.raises(ProcessLookupError):
        os.kill(outcome.pid, 0)
    assert (await function.invoke({"do": "tell"})).cold


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (3, "Runtime exited with error: exit status 3"),
        (0, "Runtime exited without providing a reason"),
    ],
)
async def test_a_process_that_ends_fails_its_invocation(
    new_function: NewFunction, code: int, how: str
) -> None:
    outcome = await new_function().invoke({"do": "exit", "code": code})
    assert outcome.error == {
        "errorType": "Runtime.ExitError",
        "errorMessage": f"RequestId: {outcome.request_id} Error: {how}",
    }


async def test_a_killed_process_fails_its_invocation_and_the_next_is_cold(new_function: NewFunction) -> None:
    function = new_function()
    await function.warm_up()
    invoking = asyncio.create_task(function.invoke({"do": "sleep", "seconds": 30}))
    (pid,) = await until(lambda: busy_pids(function), "the function is at work")
    os.kill(pid, signal.SIGKILL)
    outcome = await invoking
    assert outcome.error is not None
    assert outcome.error["errorMessage"].endswith("Runtime exited with error: signal: killed")
    assert (await function.invoke({"do": "tell"})).pid != pid


async def test_a_handler_that_is_not_there_fails_at_its_start(new_function: NewFunction) -> None:
    outcome = await new_function("no_such_handler").invoke({})
    assert outcome.error is not None
    assert outcome.error["errorType"] == "Runtime.HandlerNotFound"


async def test_the_limits_of_events_and_answers(new_function: NewFunction) -> None:
    function = new_function()
    with pytest.raises(RequestTooLarge):
        await function.invoke({"do": "x" * MAX_REQUEST_BYTES})
    outcome = await function.invoke({"do": "fill", "bytes": MAX_RESPONSE_BYTES})
    assert outcome.error is not None
    assert outcome.error["errorType"] == "Function.ResponseSizeTooLarge"
    outcome = await function.invoke({"do": "fill", "bytes": MAX_RESPONSE_BYTES - 2})
    assert (outcome.error, outcome.cold) == (None, True), (
        "the client ended its process when its answer was refused"
    )


async def test_no_more_processes_than_the_concurrency(new_function: NewFunction) -> None:
    function = new_function(concurrency=2)
    outcomes = await asyncio.gather(*(function.invoke({"do": "sleep", "seconds": 0.3}) for _ in range(6)))
    assert len({outcome.pid for outcome in outcomes}) == 2
