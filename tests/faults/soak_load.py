"""The load of a soak: event types with good, slow and failing receivers, and posts that are never given up."""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import aiohttp

from tests.e2e.up_process import KEY, UpProcess
from tests.faults.soak_figures import FAN_OUT

TYPES = 100
FAILING = 5
SLOW = 2
SLOW_MS = 2000
POSTERS = 48
PAUSE_SECONDS = 0.1
SECONDS = 30
BATCH = 19


def path_of(number: int) -> str:
    """Return the path for an event type: of a hundred, five always fail and two are slow."""
    if number < FAILING:
        return "/status/500"
    return f"/slow/{SLOW_MS}" if number < FAILING + SLOW else "/ok"


def subscribe(up: UpProcess, receiver_url: str) -> None:
    for number, twin in itertools.product(range(TYPES), range(FAN_OUT)):
        url = f"{receiver_url}{path_of(number)}/{number}/{twin}"
        wanted = {"event_type": f"soak.{number}", "callback_url": url}
        created = up.api.good("POST", "/v1/subscriptions", wanted)
        up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")


@dataclass
class Told:
    """Responses to the posters. failing: accepted events whose receivers always fail."""

    accepted: int = 0
    failing: int = 0
    turned_away: int = 0
    hang_ups: int = 0


@dataclass(frozen=True, slots=True)
class _Request:
    path: str
    body: dict[str, object]
    headers: dict[str, str]


class Posters:
    """Post at a rate, by turns to all processes; what was due while nobody answered is caught up with.

    Every second request is one event, those between are batches: both ways in are tried, at the cost of few requests.
    """

    def __init__(self, ports: Sequence[int], rate: float, seconds: float) -> None:
        self._ports = ports
        self._rate = rate
        self._requests = iter(_requests(int(rate * seconds)))
        self.told = Told()

    async def run(self) -> None:
        """Returns when every event is accepted. Raises RuntimeError for an answer that is neither 2xx nor 503."""
        self._started = time.monotonic()
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(POSTERS):
                group.create_task(self._post_all(session))

    async def _post_all(self, session: aiohttp.ClientSession) -> None:
        for numbers in self._requests:
            await asyncio.sleep(max(0.0, self._started + numbers[-1] / self._rate - time.monotonic()))
            await self._post_until_accepted(session, numbers)

    async def _post_until_accepted(self, session: aiohttp.ClientSession, numbers: range) -> None:
        request = _one(numbers.start) if len(numbers) == 1 else _batch(numbers)
        for attempt in itertools.count():
            port = self._ports[(numbers.start + attempt) % len(self._ports)]
            if await self._is_accepted(session, port, request):
                self.told.accepted += len(numbers)
                self.told.failing += sum(number % TYPES < FAILING for number in numbers)
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _is_accepted(self, session: aiohttp.ClientSession, port: int, request: _Request) -> bool:
        url = f"http://127.0.0.1:{port}{request.path}"
        try:
            async with session.post(url, json=request.body, headers=request.headers) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            self.told.hang_ups += 1
            return False
        if answer.status == 503:
            self.told.turned_away += 1
            return False
        if answer.status not in (200, 202) or '"error"' in text:
            raise RuntimeError(f"{answer.status}: {text}")
        return True


def _requests(count: int) -> Iterator[range]:
    """The numbers of the events of each request."""
    sizes = itertools.cycle((1, BATCH))
    start = 0
    while start < count:
        end = min(count, start + next(sizes))
        yield range(start, end)
        start = end


def _one(number: int) -> _Request:
    return _Request("/v1/events", _event(number), {"idempotency-key": _key(number)})


def _batch(numbers: range) -> _Request:
    items = [{**_event(number), "idempotency_key": _key(number)} for number in numbers]
    return _Request("/v1/events/batch", {"items": items}, {})


def _key(number: int) -> str:
    return f"soak-{number}"


def _event(number: int) -> dict[str, object]:
    return {
        "event_type": f"soak.{number % TYPES}",
        "payload": {"number": number, "filler": "x" * 500},
    }
