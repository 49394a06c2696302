"""The receiver as the proof sees it: a URL for subscriptions, and a table with what arrived."""

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.proof.account import Account
from infra.proof.receiver_function.handler import FAILING, fails_first

PATHS = ("/first", "/second", f"{FAILING}/third")
"""One subscription each. The last one answers 503 to the first attempt of every tenth event."""

CLOCK_TRIES = 5


@dataclass(frozen=True, slots=True)
class Arrival:
    """Requests with a good signature for one event at one path. first_at: Unix seconds, by the receiver's clock."""

    requests: int
    first_at: float
    agents: frozenset[str]
    failed_first: bool

    @property
    def arrived(self) -> bool:
        """Whether one request was answered with 200."""
        return self.requests > self.failed_first

    @property
    def repeats(self) -> int:
        """Requests after the first one that was answered with 200."""
        return max(0, self.requests - self.failed_first - 1)


class Receiver:
    """`inside`: the function's URL from this machine."""

    def __init__(self, account: Account, table: str, inside: str) -> None:
        self._client = account.client("dynamodb")
        self._table = table
        self._inside = inside

    def learn(self, path: str, secret: str) -> None:
        """Verify requests at this path with the secret from now on."""
        self._client.put_item(
            TableName=self._table, Item={"id": {"S": f"secret {path}"}, "secret": {"S": secret}}
        )

    def arrivals(self) -> dict[tuple[str, str], Arrival]:
        """Return what arrived so far, by path and event id."""
        return {
            (path, event_id): _arrival(item, path, event_id)
            for item in self._items()
            if (name := item["id"]["S"]).startswith("got ")
            for _, path, event_id in [name.split(" ")]
        }

    def refused(self) -> Mapping[str, int]:
        """Return the number of requests with a wrong signature, by path; only paths that had one."""
        return {
            item["id"]["S"].split(" ")[1]: int(item["requests"]["N"])
            for item in self._items()
            if item["id"]["S"].startswith("bad ")
        }

    def clock_ahead_seconds(self) -> float:
        """Return by how much the receiver's clock is ahead of this machine's, from the quickest of some requests."""
        return min(self._ask_clock() for _ in range(CLOCK_TRIES))[1]

    def _ask_clock(self) -> tuple[float, float]:
        before = time.time()
        with urllib.request.urlopen(f"{self._inside}/clock", timeout=30) as answer:  # noqa: S310 - our own URL
            now = json.load(answer)["now"] / 1000
        after = time.time()
        return after - before, now - (before + after) / 2

    def _items(self) -> Iterator[dict[str, Any]]:
        """Read the table with everything that was written before."""
        start: dict[str, Any] = {}
        while True:
            page = self._client.scan(TableName=self._table, ConsistentRead=True, **start)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _arrival(item: dict[str, Any], path: str, event_id: str) -> Arrival:
    return Arrival(
        requests=int(item["requests"]["N"]),
        first_at=int(item["first_at"]["N"]) / 1000,
        agents=frozenset(item["agents"]["SS"]),
        failed_first=fails_first(path, event_id),
    )
