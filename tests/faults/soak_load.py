"""The load of a soak: event types with good, slow and failing receivers, and posts that are never given up."""

import asyncio
import itertools
import time
from collections.abc import Sequence
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


def path_of(number: int) -> str:
    """Of a hundred event types five fail always and two are slow."""
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
    """What the posters were told. failing: accepted events whose receivers always fail."""

    accepted: int = 0
    failing: int = 0
    turned_away: int = 0
    hang_ups: int = 0


class Posters:
    """Post at a rate, by turns to all processes; what was due while nobody answered is caught up with."""

    def __init__(self, ports: Sequence[int], rate: float, seconds: float) -> None:
        self._ports = ports
        self._rate = rate
        self._count = int(rate * seconds)
        self._numbers = iter(range(self._count))
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
        for number in self._numbers:
            await asyncio.sleep(max(0.0, self._started + number / self._rate - time.monotonic()))
            await self._post_until_accepted(session, number)

    async def _post_until_accepted(self, session: aiohttp.ClientSession, number: int) -> None:
        kind = number % TYPES
        event = {"event_type": f"soak.{kind}", "payload": {"number": number, "filler": "x" * 500}}
        for attempt in itertools.count():
            port = self._ports[(number + attempt) % len(self._ports)]
            if await self._is_accepted(session, port, event, f"soak-{number}"):
                self.told.accepted += 1
                self.told.failing += kind < FAILING
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _is_accepted(
        self, session: aiohttp.ClientSession, port: int, event: dict[str, object], key: str
    ) -> bool:
        url = f"http://127.0.0.1:{port}/v1/events"
        try:
            async with session.post(url, json=event, headers={"idempotency-key": key}) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            self.told.hang_ups += 1
            return False
        if answer.status in (200, 202):
            return True
        if answer.status != 503:
            raise RuntimeError(f"{answer.status}: {text}")
        self.told.turned_away += 1
        return False
