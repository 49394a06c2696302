"""A soak that went wrong must not pass."""

from dataclasses import replace

import pytest

from tests.faults.soak_figures import Counts, Sample, judge, slope_per_hour
from tests.faults.soak_page import soak_page

GOOD = Counts(
    accepted=1000,
    events=1000,
    completed=1900,
    dead=100,
    expected_dead=100,
    arrived=2000,
    requests=2210,
    turned_away=3,
    hang_ups=40,
    kills=5,
)
SAMPLES = [
    Sample(
        seconds=10.0 * n,
        rss_mib=100,
        connections=30,
        table_mib=4 + 0.1 * n,
        events=1000 + 25 * n,
        live_rows=10_000,
        dead_rows=500,
        open_sagas=3,
    )
    for n in range(60)
]


def failed(samples: list[Sample], counts: Counts = GOOD, findings: tuple[str, ...] = ()) -> list[str]:
    return [verdict.name for verdict in judge(samples, counts, findings) if not verdict.holds]


def test_a_good_soak_passes() -> None:
    assert failed(SAMPLES) == []


def test_a_slope_is_per_hour() -> None:
    assert slope_per_hour([(0, 1), (3600, 3), (7200, 5)]) == pytest.approx(2)
    assert slope_per_hour([(5, 1)]) == 0


@pytest.mark.parametrize(
    "change",
    [{"completed": 1899}, {"events": 999}, {"arrived": 1999}, {"completed": 1901}, {"accepted": 1001}],
)
def test_a_delivery_that_is_missing_or_too_many_is_seen(change: dict[str, int]) -> None:
    assert failed(SAMPLES, replace(GOOD, **change)) == ["accepted x fan-out = completed + dead"]


def test_a_dead_letter_of_a_good_receiver_is_seen() -> None:
    assert failed(SAMPLES, replace(GOOD, completed=1899, dead=101)) == [
        "dead letters are those of failing receivers"
    ]


def test_a_finding_of_the_audit_is_seen() -> None:
    assert failed(SAMPLES, findings=("a promise",)) == ["the audit finds nothing"]


def test_what_grows_is_seen() -> None:
    def grown(**by: float) -> list[Sample]:
        return [
            replace(one, **{name: getattr(one, name) + step * n for name, step in by.items()})
            for n, one in enumerate(SAMPLES)
        ]

    assert failed(grown(rss_mib=0.5)) == ["memory is stable"]
    assert failed(grown(connections=1)) == ["connections are stable"]
    assert failed(grown(table_mib=0.4)) == ["table size per event is constant"]
    assert failed(grown(dead_rows=1000)) == ["dead rows are vacuumed"]


def test_the_page_of_a_soak_tells_what_was_measured() -> None:
    written = soak_page("30 minutes", GOOD, judge(SAMPLES, GOOD, []), SAMPLES)
    assert (
        "| accepted x fan-out = completed + dead | 1,000 accepted x 2 = 1,900 completed + 100 dead |"
        in written
    )
    assert "A process was killed 5 times" in " ".join(written.split())
    pace = f"on average {GOOD.requests / SAMPLES[-1].seconds:.0f} per second"
    assert pace in " ".join(written.split())
    assert "| 0 s | 100 MiB |" in written
    assert f"| {SAMPLES[-1].seconds:.0f} s | 100 MiB |" in written
