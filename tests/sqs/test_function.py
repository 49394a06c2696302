"""State that a function keeps between invocations, and state that it must not keep."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from hooksaga.adapters.database import Role
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.function import Function, Invocation, check_times
from hooksaga.runtime.settings import InvalidSettings, read_settings


class Context:
    """Lambda's, as far as it is used."""

    aws_request_id = "request"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> Iterator[Function]:
    monkeypatch.setenv("HOOKSAGA_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    function = Function(Role.ROUTER)
    yield function
    assert function._loop is not None
    function._loop.close()


def test_an_error_leaves_no_task_to_the_next_invocation(function: Function) -> None:
    ended: list[str] = []

    async def linger() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("lingering")

    async def fail(_: Function, invocation: Invocation) -> None:
        task = asyncio.create_task(linger())
        await asyncio.sleep(0)
        assert not task.done()
        raise RuntimeError(invocation.event["why"])

    async def others(_: Function, __: Invocation) -> int:
        return len(asyncio.all_tasks()) - 1

    with pytest.raises(RuntimeError, match="asked to"):
        function.run(fail, {"why": "asked to"}, None)
    assert ended == ["lingering"]
    assert function.run(others, {}, None) == 0


def test_the_deadline_leaves_time_to_write() -> None:
    assert Invocation({}, Context(45)).seconds_left() == 43
    assert Invocation({}, Context(1)).seconds_left() == -1
    assert Invocation({}, None).seconds_left() == 60


@pytest.mark.parametrize(
    ("context", "seconds"),
    [(Context(15), 13), (Context(28), 26), (Context(50), 40), (Context(3), 5), (None, 40)],
    ids=["ingest", "other routes", "sweeps", "a slow start", "not timed"],
)
def test_the_database_has_less_time_to_answer_than_the_function(
    function: Function, context: Context | None, seconds: float
) -> None:
    """So that who called is told that the database is away, and not that the function was ended."""
    function.run(_answer, {}, context)
    assert function.address.unit_timeout_seconds == pytest.approx(seconds)


def test_what_a_slow_start_left_does_not_shorten_what_comes_after_a_quick_one(function: Function) -> None:
    function.run(_answer, {}, Context(15))
    function.run(_answer, {}, Context(6))
    assert function.address.unit_timeout_seconds == pytest.approx(13)


async def _answer(_: Function, __: Invocation) -> str:
    return "done"


async def test_the_sessions_of_an_api_function_end_in_that_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    function = ApiFunction(Role.INGEST, [])
    await asyncio.to_thread(function.run, _answer, {}, Context(15))
    session = await function.services.events._free.get()
    assert session._address.unit_timeout_seconds == pytest.approx(13)
    assert function._loop is not None
    function._loop.close()


@pytest.mark.parametrize(
    ("timeout", "settings", "reason"),
    [
        (45, {}, None),
        (33, {"lease_seconds": 35}, None),
        (32, {}, "the function's timeout must be over 32 s"),
        (3, {}, "the function's timeout must be over 32 s"),
        (45, {"lease_seconds": 40}, "HOOKSAGA_LEASE_SECONDS"),
        (61, {}, "HOOKSAGA_LEASE_SECONDS"),
    ],
)
def test_a_delivery_whose_times_are_out_of_order_says_so(
    timeout: float, settings: dict[str, Any], reason: str | None
) -> None:
    chosen = read_settings(**settings)
    if reason is None:
        check_times(chosen, Invocation({}, Context(timeout)))
        return
    with pytest.raises(InvalidSettings, match=reason):
        check_times(chosen, Invocation({}, Context(timeout)))


def test_a_late_start_is_not_blamed_on_the_settings() -> None:
    """A process's first invocation may begin with less than the function's time; the next one tells."""
    settings = read_settings()
    check_times(settings, Invocation({}, Context(20), is_first=True))
    with pytest.raises(InvalidSettings, match="the function's timeout"):
        check_times(settings, Invocation({}, Context(20)))
    with pytest.raises(InvalidSettings, match="HOOKSAGA_LEASE_SECONDS"):
        check_times(settings, Invocation({}, Context(61), is_first=True))


def test_only_the_first_invocation_of_a_process_may_be_late(function: Function) -> None:
    async def is_first(_: Function, invocation: Invocation) -> bool:
        return invocation.is_first

    assert [function.run(is_first, {}, Context(45)) for _ in range(3)] == [True, False, False]
