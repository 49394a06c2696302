"""Trade of latency against cost: how long Lambda gathers messages of a queue before it invokes the function.

A message waits for a window at most once per hop: three hops lead from the 202 to the POST, and a fourth to the end of
the saga. Fuller batches are fewer invocations, fewer calls to SQS and, for delivery, fewer seconds of waiting.
"""

from dataclasses import dataclass
from enum import StrEnum

MOST_WITHOUT_WINDOW = 10
"""Messages that SQS gives at once. AWS refuses a larger batch without a window."""

IDLE_WINDOW_SECONDS = 20
"""With any window, Lambda may gather this long while a queue has very few messages: its documentation says so."""


class Latency(StrEnum):
    """The three levels. docs/cost.md gives the cost and the latency of each."""

    LOW = "low"
    BALANCED = "balanced"
    ECONOMY = "economy"


@dataclass(frozen=True, slots=True)
class Batching:
    """Maximum of a batch, and the window in whole seconds."""

    size: int
    window_seconds: int = 0


def _batches(size: int, window_seconds: int) -> dict[str, Batching]:
    of_ids = Batching(size, window_seconds)
    return {
        **dict.fromkeys(("intake", "routing", "orchestration"), of_ids),
        "delivery": Batching(10, window_seconds),
        "delivery_slow": Batching(5, window_seconds),
    }


LEVELS = {Latency.LOW: _batches(10, 0), Latency.BALANCED: _batches(20, 2), Latency.ECONOMY: _batches(50, 10)}
"""By level, then by the name of the queue in hooksaga.adapters.queues."""


def longest_gathering_seconds(level: Latency) -> int:
    """Return how long a message may be gathered, and invisible, before its function starts; 0 without windows."""
    longest = max(one.window_seconds for one in LEVELS[level].values())
    return max(longest, IDLE_WINDOW_SECONDS) if longest else 0
