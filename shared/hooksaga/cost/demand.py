"""Demand on the database at a number of events a second."""

from collections.abc import Callable
from dataclasses import dataclass

from hooksaga.aws.deployment import Environment
from hooksaga.cost.sources import Inputs, Made
from hooksaga.cost.work import HOURS, QUEUES, Load, filled_batch, nearest_sizes, on_the_line

PAGE_BYTES = 8192
DAYS_PER_MONTH = HOURS / 24
PLANNED_ANEW = 1.9
"""Processor time without prepared statements, which RDS Proxy prevents, in times of that with them: as measured in
batches of 10."""

GB = 1e9


@dataclass(frozen=True, slots=True)
class Demand:
    """Per second: seconds of a processor, writes to the disk, bytes written to it, and bytes of WAL and of logs."""

    cores: float
    writes: float
    written_bytes: float
    wal_bytes: float
    log_bytes: float


def demand_of(load: Load, env: Environment, inputs: Inputs) -> Demand:
    """Return the demand at the load's average rate. Batches are as full as the environment's windows make them."""
    events = load.events_per_second
    deliveries = events * load.attempts() / load.events if load.events else 0.0
    event = _made(inputs, "event", filled_batch(events, env.batching(QUEUES["router"])))
    delivery = _made(inputs, "delivery", filled_batch(deliveries, env.batching(QUEUES["delivery"])))

    def total(of: Callable[[Made], float]) -> float:
        return events * of(event) + deliveries * of(delivery)

    wal, writes = total(lambda made: made.wal_bytes), total(lambda made: made.writes)
    return Demand(
        cores=total(lambda made: made.database_ms) / 1000 * (PLANNED_ANEW if env.database.proxy else 1),
        writes=writes,
        written_bytes=wal + writes * PAGE_BYTES,
        wal_bytes=wal,
        log_bytes=total(lambda made: made.log_bytes),
    )


def _made(inputs: Inputs, part: str, batch: float) -> Made:
    """Return what one makes in a batch of so many, by the two nearest measurements: its own, and its share."""
    below, above = nearest_sizes(inputs.made, batch)
    share = (1 / below - 1 / batch) / (1 / below - 1 / above)
    low, high = (getattr(inputs.made[str(size)], part) for size in (below, above))
    return on_the_line(low, high, share)


def stored_gb(load: Load, env: Environment, inputs: Inputs) -> float:
    """Return the data in the database after `load.days`, as far as the environment's retention leaves it."""
    payload, stored = inputs.payload_bytes, inputs.stored_bytes
    attempts = load.attempts() / DAYS_PER_MONTH
    events = load.events / DAYS_PER_MONTH
    with_event = _days(load, env.event_days)
    with_payload = min(with_event, _days(load, env.payload_days))
    bytes_kept = events * (
        (stored.event - payload) * with_event + payload * with_payload
    ) + attempts * stored.delivery * _days(load, env.retention_days)
    return bytes_kept / GB


def _days(load: Load, kept: float | None) -> float:
    return load.days if kept is None else min(load.days, kept)
