"""A storm of answers of 503 is logged in one line a second, and no answer goes uncounted."""

import asyncio
import time

from hooksaga.api.unavailable_lines import Keys, UnavailableLine, UnavailableLines
from hooksaga.core.errors import DatabaseUnavailable

SECONDS = 0.1
ERROR = DatabaseUnavailable("away")


class Log:
    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []

    def write(self, error: Exception, keys: Keys) -> None:
        assert error is ERROR
        self.lines.append(dict(keys))

    @property
    def counts(self) -> list[object]:
        return [line["count"] for line in self.lines]


async def until_counted(log: Log, total: int) -> None:
    async with asyncio.timeout(5):
        while sum(int(str(count)) for count in log.counts) < total:
            await asyncio.sleep(0.005)


async def test_a_single_answer_is_logged_at_once() -> None:
    log = Log()
    UnavailableLine(log.write, seconds=60).note(ERROR, {"request_id": "req_1"})
    assert log.lines == [{"request_id": "req_1", "count": 1}]


async def test_a_storm_is_logged_once_per_interval_with_its_count() -> None:
    log = Log()
    line = UnavailableLine(log.write, seconds=SECONDS)
    began = time.monotonic()
    for number in range(3000):
        line.note(ERROR, {"request_id": f"req_{number}"})
        if number % 100 == 0:
            await asyncio.sleep(0.01)
    await until_counted(log, 3000)
    lasted = time.monotonic() - began
    assert 2 <= len(log.lines) <= 2 + lasted / SECONDS
    assert sum(int(str(count)) for count in log.counts) == 3000
    assert log.lines[-1]["request_id"] == "req_2999"


async def test_the_last_answers_of_a_storm_are_logged_although_no_other_follows() -> None:
    log = Log()
    line = UnavailableLine(log.write, seconds=SECONDS)
    for _ in range(5):
        line.note(ERROR, {})
    assert log.counts == [1]
    await until_counted(log, 5)
    assert log.counts == [1, 4]


async def test_each_cause_has_a_line_of_its_own() -> None:
    log = Log()
    lines = UnavailableLines(log.write, seconds=60)
    away, refused = ("database_unavailable", "away"), ("database_unavailable", "refused")
    for cause in (away, ("queue_unavailable", "away"), away, refused, refused):
        lines.note(cause, ERROR, {"cause": cause})
    assert log.lines == [
        {"cause": away, "count": 1},
        {"cause": ("queue_unavailable", "away"), "count": 1},
        {"cause": refused, "count": 1},
    ]


def test_the_timer_of_a_loop_that_has_ended_holds_nothing_back() -> None:
    """As between two tests, or two functions, of one process."""
    log = Log()
    line = UnavailableLine(log.write, seconds=SECONDS)

    async def twice() -> None:
        line.note(ERROR, {})
        line.note(ERROR, {})

    async def again() -> None:
        line.note(ERROR, {})
        await until_counted(log, 3)

    asyncio.run(twice())
    assert log.counts == [1]
    asyncio.run(again())
