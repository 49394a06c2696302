"""The scripts in bench/ with tiny numbers, on one running system: each measures what it says, and finds it."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench import all as everything
from bench import (
    attribute_index,
    attributes,
    closed_neighbours,
    depth,
    fan_out,
    history,
    ingest,
    memory,
    noisy_neighbour,
    outage,
    retention,
    rows,
    sizes,
)
from bench.load import MeasurementFailed, run_load
from bench.place import Place, new_place, run_command
from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.local.bench_figures import Percentiles
from hooksaga.operations.audit import Finding, audit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with new_place() as running:
        yield running
    assert not running.folder.exists()


@pytest.mark.long
def test_ingest_posts_everything_at_once_and_at_half_the_rate(place: Place) -> None:
    runs = ingest.measure(place, events=60, batch_events=100, batch=50, deliver=True)
    assert [(run.kind, run.events, run.rate is None) for run in runs] == [
        ("single", 60, True),
        ("single", 60, False),
        ("batch", 100, True),
        ("batch", 100, False),
    ]
    assert all(0 < (run.request_ms.p50 or 0) <= (run.request_ms.p99 or 0) for run in runs)
    assert runs[1].rate == pytest.approx(runs[0].events_per_second / 2, abs=0.1)
    assert {"hooksaga", "postgres", "client"} <= runs[0].cpu.keys()
    place.receiver.wait_for(60 + 320)
    place.receiver.take()


@pytest.mark.long
def test_a_fan_out_is_seen_by_every_subscription(place: Place) -> None:
    result = fan_out.measure(place, 30, rate=60, seconds=1.5, rounds=1)
    assert (result.subscriptions, result.rounds[0].deliveries) == (30, 30)
    assert result.rounds[0].seconds > 0
    assert result.accept_times > 0
    assert result.latency_times > 0


@pytest.mark.long
@pytest.mark.parametrize("noisy", [False, True])
def test_the_neighbours_of_a_black_hole_are_measured_without_it(place: Place, noisy: bool) -> None:
    run = noisy_neighbour.measure(place, 100, seconds=0.6, settle=0.2, noisy=noisy, batch=2)
    assert 0 < run.deliveries < 60 * 19 / 20
    assert run.lost == 0
    assert run.latency_ms.p95 is not None
    assert run.settling_ms.p95 is not None


@pytest.mark.long
def test_half_of_the_throughput_is_measured_first(place: Place) -> None:
    assert noisy_neighbour.throughput(place, 200) > 0
    assert place.receiver.take() == {}


@pytest.mark.long
def test_closed_subscriptions_are_left_waiting(place: Place) -> None:
    closed_neighbours.subscribe(place, 20)
    closed_neighbours.close(place.database_url, backlog=3, paused=0.5)
    counted = """SELECT count(paused_at), count(breaker_opened_at)
                   FROM subscriptions JOIN subscription_flow ON id = subscription_id WHERE %s = ANY (event_types)"""
    paused, broken = place.run(counted, [closed_neighbours.EVENT_TYPE])[0]
    assert paused + broken == 20
    assert min(paused, broken) > 0
    waiting = """SELECT count(*) FROM webhook_delivery_sagas JOIN subscriptions s ON s.id = subscription_id
                  WHERE %s = ANY (event_types) AND status IN ('Pending', 'PendingRetry', 'InProgress')"""
    assert place.run(waiting, [closed_neighbours.EVENT_TYPE]) == [(60,)]
    assert [finding for finding in asyncio.run(audited(place.database_url)) if finding.rows] == []


@pytest.mark.long
def test_an_outage_costs_a_few_attempts_and_loses_nothing() -> None:
    faster = 100
    with new_place(program="bench.up", environment=outage.shortened(faster)) as place:
        result = outage.measure(place, hours=0.05, rate=1, faster=faster)
    assert result.attempts < 30
    assert (result.dead_letters, result.not_delivered, result.out_of_order, result.over_limit) == (0, 0, 0, 0)
    assert result.events_while_down > 100
    assert result.first_limit < result.highest_limit
    (row,) = rows.outage([asdict(result)])
    assert row[1].startswith(f"{result.attempts}; 0 dead letters")
    assert f"{result.attempts}, " in outage.table(result)


async def audited(database_url: str) -> list[Finding]:
    session = Session(DatabaseAddress(database_url), Role.OWNER)
    try:
        return await session.run(audit)
    finally:
        await session.close()


@pytest.mark.long
def test_depth_finds_what_is_due_beside_a_history_that_holds_together(place: Place) -> None:
    old = depth.subscribe(place)
    history.fill(place.database_url, old, finished=1_000, waiting=150)
    assert depth.throughput(place, 200) > 0
    counted = "SELECT status::text, count(*) FROM webhook_delivery_sagas WHERE subscription_id = ANY (%s) GROUP BY 1"
    assert dict(place.run(counted, [old])) == {"Completed": 850, "PendingRetry": 150}
    findings = asyncio.run(audited(place.database_url))
    assert [finding for finding in findings if finding.rows] == []
    took = depth.query_times(place.database_url, old)
    assert len(took) == 8
    assert all(milliseconds > 0 for milliseconds in took.values())


@pytest.mark.long
def test_memory_is_looked_at_in_rounds(place: Place) -> None:
    result = memory.measure(place, 250, of_a_round=100)
    assert [one.deliveries for one in result.rounds] == [100, 200, 250]
    assert 20 < result.first_mb <= result.peak_mb


@pytest.mark.long
def test_sizes_are_those_of_each_table_stage_and_column() -> None:
    found = asyncio.run(sizes.measure(deliveries=400, at_once=200, warm_up=1))
    assert list(found.relations) == sizes.TABLES
    assert found.relations["events"]["events"] > 604 == found.columns["events"]["payload"]
    assert list(found.log) == ["accept", "route", "start", "claim", "record", "apply"]
    assert found.log["accept"] > 604
    assert min(found.log.values()) > 100
    jobs = found.updates["webhook_delivery_jobs"]
    assert (jobs["inserted"], jobs["updated"]) == (600, 1200)
    assert "webhook_delivery_jobs_pkey" in sizes.text(found, columns=True)


@pytest.mark.long
def test_attributes_are_measured_with_and_without() -> None:
    measured = asyncio.run(attributes.measure(events=20, wide=12, rounds=1))
    assert [kind.name for kind in measured.kinds] == list(attributes.KINDS)
    plain, few, many, _ = (kind.row_bytes for kind in measured.kinds)
    assert plain < few < many
    assert [(wide.subscriptions, wide.matched) for wide in measured.wide] == [(12, 12), (12, 1)]
    assert "processor ms" in attributes.table(measured)


@pytest.mark.long
def test_indexes_of_attributes_are_measured_without_the_schemas_own(place: Place) -> None:
    with psycopg.connect(place.database_url, autocommit=True) as connection:
        without, *others = attribute_index.measure(connection, events=200, batch=10)
    assert without.kind == attribute_index.NONE
    assert len(others) == len(attribute_index.INDEXES) - 1
    assert all(one.stored_bytes > 0 for one in others)


@pytest.mark.long
def test_a_month_of_retention_is_measured() -> None:
    days = retention.month_of(days=4, keep=1, events=400)
    assert [day.day for day in days] == [1, 2, 3, 4]
    assert days[0].rows_deleted == 0
    assert days[-1].rows_deleted > 0


def test_a_straight_line_through_what_grows() -> None:
    rounds = [memory.Round(n * 1000, 90 + n * 0.5, 95) for n in range(1, 11)]
    assert memory.slope(rounds) == pytest.approx(50)
    assert memory.slope(rounds[:1]) == 0


@pytest.mark.long
def test_refused_events_fail_a_measurement(place: Place) -> None:
    with pytest.raises(MeasurementFailed, match="refused"):
        run_load(place.load("not a type", count=4, batch=2))
    with pytest.raises(MeasurementFailed, match="422"):
        run_load(place.load("not a type", count=1))


def test_a_failed_measurement_ends_with_its_reason() -> None:
    def fail() -> Any:
        raise MeasurementFailed("nothing came")

    with pytest.raises(SystemExit, match="nothing came"):
        run_command(fail, str, json=False)


def test_every_table_shows_its_figures() -> None:
    measured = Percentiles(1.25, 2.5, 4.0)
    quiet, noisy = (
        [noisy_neighbour.Neighbours(10, 0, measured, Percentiles(1, p95, 9))] for p95 in (2.0, 3.0)
    )
    result = noisy_neighbour.compared(200, quiet, noisy)
    assert (result.quiet_p95_ms, result.noisy_p95_ms, result.times) == (2.0, 3.0, 1.5)
    assert "1.5 times" in noisy_neighbour.table(result)
    closed = closed_neighbours.Closed(100, 10, [200.0], [190.0], 0.95, 3, 997)
    assert "0.95 times" in closed_neighbours.table(closed)
    assert "0.95 times" in rows.closed([asdict(closed)])[0][2]
    run = ingest.Ingested("batch", 50, None, 100, 1.0, 100.0, measured, {"client": 0.02})
    assert "2 %" in ingest.table([run])


def test_the_pages_table_is_replaced_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{everything.BEGIN}\nold\n{everything.END}\nafter\n", encoding="utf-8")
    everything.write_page(page, everything.section([("a", "b", "c", "d")]))
    text = page.read_text(encoding="utf-8")
    assert "| a | b | c | d |" in text
    assert "old" not in text
    assert (text.startswith("before\n"), text.endswith("after\n")) == (True, True)
    real = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert real.index(everything.BEGIN) < real.index(everything.END)
