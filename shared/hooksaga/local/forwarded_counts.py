"""Metrics of a process that has no page: they are counted in the process that has it, which outlives this one."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import msgspec

from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime.metrics import Metric, Metrics

FORWARD_SECONDS = 1.0
"""What was counted for so long is lost with a process that is killed."""


class Counted(msgspec.Struct, array_like=True):
    """A call of Metrics.count, or of Metrics.observe if it has values."""

    metric: Metric
    many: int = 0
    error_class: ErrorClass | None = None
    values: Sequence[float] = ()


_decode = msgspec.json.Decoder(list[Counted]).decode


class ForwardedCounts(Metrics):
    """Gathers calls, and gives them as JSON to `send` after FORWARD_SECONDS."""

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self._send = send
        self._many: Counter[tuple[Metric, ErrorClass | None]] = Counter()
        self._values: defaultdict[Metric, list[float]] = defaultdict(list)
        self._due: asyncio.TimerHandle | None = None

    def count(self, metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
        self._many[metric, error_class] += many
        self._flush_soon()

    def observe(self, metric: Metric, values: Sequence[float]) -> None:
        self._values[metric] += values
        self._flush_soon()

    def flush(self) -> None:
        """Send what was gathered."""
        if self._due is None:
            return
        self._due.cancel()
        self._due = None
        counted = [Counted(metric, many, error) for (metric, error), many in self._many.items()]
        observed = [Counted(metric, values=values) for metric, values in self._values.items()]
        self._many.clear()
        self._values.clear()
        self._send(msgspec.json.encode(counted + observed))

    def _flush_soon(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(FORWARD_SECONDS, self.flush)


def take_counts(body: bytes, metrics: Metrics) -> None:
    """Repeat the calls that another process has sent."""
    for one in _decode(body):
        if one.values:
            metrics.observe(one.metric, one.values)
        else:
            metrics.count(one.metric, one.many, one.error_class)
