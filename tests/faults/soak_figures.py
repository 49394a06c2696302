"""Measurements of a soak test, and its checks. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

FAN_OUT = 2
"""Subscriptions for each event type."""

MIB = 2**20
GROWTH_SHARE = 0.10
GROWTH_MIB = 16.0
MORE_CONNECTIONS = 3
BLOAT_SHARE = 0.20
DEAD_SHARE = 0.25
FEW_DEAD_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the running system. rss_mib: of the process that is never killed; table_mib: with indexes."""

    seconds: float
    rss_mib: float
    connections: int
    table_mib: float
    events: int
    live_rows: int
    dead_rows: int
    open_sagas: int


@dataclass(frozen=True, slots=True)
class Counts:
    """At the end, when nothing is open. expected_dead: deliveries to receivers that always fail."""

    accepted: int
    events: int
    completed: int
    dead: int
    expected_dead: int
    arrived: int
    requests: int
    turned_away: int
    hang_ups: int
    kills: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one thing holds, with the figures that say so."""

    name: str
    holds: bool
    figures: str


def slope_per_hour(samples: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the linear regression per hour; samples are (seconds, value)."""
    count = len(samples)
    mean_x = sum(x for x, _ in samples) / count
    mean_y = sum(y for _, y in samples) / count
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return 3600 * sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0


def judge(samples: Sequence[Sample], counts: Counts, findings: Sequence[str]) -> list[Verdict]:
    """Every verdict; the soak has passed when all hold. The first third of the samples is the warm-up."""
    steady = samples[len(samples) // 3 :]
    return [
        _counts_add_up(counts),
        _dead_are_those_that_fail(counts),
        Verdict("the audit finds nothing", not findings, "; ".join(findings) or "nothing"),
        _memory_is_flat(steady),
        _connections_are_flat(samples),
        _tables_are_bounded(steady),
        _dead_rows_are_bounded(samples),
    ]


def _counts_add_up(counts: Counts) -> Verdict:
    wanted = counts.accepted * FAN_OUT
    figures = (
        f"{counts.accepted:,} accepted x {FAN_OUT} = {counts.completed:,} completed + {counts.dead:,} dead"
    )
    holds = (
        wanted == counts.completed + counts.dead
        and counts.events == counts.accepted
        and counts.arrived == wanted
    )
    return Verdict("accepted x fan-out = completed + dead", holds and counts.accepted > 0, figures)


def _dead_are_those_that_fail(counts: Counts) -> Verdict:
    figures = f"{counts.dead:,} dead, {counts.expected_dead:,} to failing receivers"
    return Verdict(
        "dead letters are those of failing receivers", counts.dead == counts.expected_dead, figures
    )


def _memory_is_flat(steady: Sequence[Sample]) -> Verdict:
    slope = slope_per_hour([(one.seconds, one.rss_mib) for one in steady])
    hours = (steady[-1].seconds - steady[0].seconds) / 3600
    mean = sum(one.rss_mib for one in steady) / len(steady)
    allowed = max(GROWTH_SHARE * mean, GROWTH_MIB)
    figures = f"{slope:+.1f} MiB an hour at {mean:.0f} MiB; {slope * hours:+.1f} MiB in this run, {allowed:.0f} allowed"
    return Verdict("memory is stable", slope * hours <= allowed, figures)


def _connections_are_flat(samples: Sequence[Sample]) -> Verdict:
    half = len(samples) // 2
    before, after = (max(one.connections for one in part) for part in (samples[:half], samples[half:]))
    return Verdict(
        "connections are stable", after <= before + MORE_CONNECTIONS, f"maximum {before}, then {after}"
    )


def _tables_are_bounded(steady: Sequence[Sample]) -> Verdict:
    before, after = (one.table_mib * 1024 / max(1, one.events) for one in (steady[0], steady[-1]))
    whole = steady[-1].table_mib
    figures = f"{before:.2f} KiB an event after the warm-up, {after:.2f} at the end, {whole:,.0f} MiB in all"
    return Verdict("table size per event is constant", after <= before * (1 + BLOAT_SHARE), figures)


def _dead_rows_are_bounded(samples: Sequence[Sample]) -> Verdict:
    worst, last = max(one.dead_rows for one in samples), samples[-1]
    allowed = max(FEW_DEAD_ROWS, DEAD_SHARE * last.live_rows)
    figures = f"{last.dead_rows:,} at the end, {worst:,} at most; {last.live_rows:,} live"
    return Verdict("dead rows are vacuumed", last.dead_rows <= allowed, figures)
