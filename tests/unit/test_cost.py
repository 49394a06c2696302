"""A month's bill: its sources have the right form, and it follows the load as it must."""

import datetime
import math
from dataclasses import replace

import pytest

from hooksaga.aws.deployment import ENVIRONMENTS, DatabaseSettings, Environment
from hooksaga.aws.latency import LEVELS, MOST_WITHOUT_WINDOW, Batching, Latency
from hooksaga.cost.bill import TITLES, Bill, bill_of
from hooksaga.cost.demand import demand_of, stored_gb
from hooksaga.cost.sources import read_inputs, read_prices
from hooksaga.cost.work import (
    RECEIVER_SPREAD,
    STEPS,
    TICKING,
    Load,
    filled_batch,
    of_batch,
    slowest_ms,
    work_of,
)

DEV = ENVIRONMENTS["dev"]


def bill(load: Load, env: Environment = DEV) -> Bill:
    return bill_of(load, env, read_prices(), read_inputs())


def test_prices_are_dated_and_there_for_every_instance_that_an_environment_has() -> None:
    prices = read_prices()
    assert prices.dated <= datetime.datetime.now(datetime.UTC).date()
    instances = prices.rds_postgresql.instances
    assert {env.database.instance_class for env in ENVIRONMENTS.values()} <= set(instances)
    assert sorted(instances.values(), key=lambda one: one.hour) == list(instances.values())


def test_inputs_have_every_step_with_every_batch() -> None:
    inputs = read_inputs()
    assert set(inputs.invocations) == set(inputs.made) == {"1", "10", "100"}
    for size in inputs.invocations:
        assert set(inputs.invocations[size]) == {"ingest", *STEPS}
    assert set(inputs.ticks) <= set(TICKING)
    assert inputs.stored_bytes.event > inputs.payload_bytes


def test_an_idle_month_is_what_stands_there() -> None:
    idle = bill(Load(0))
    assert idle == bill(Load(0, fan_out=10, failure_rate=1))
    assert idle.api == 0
    assert idle.database > idle.functions


def test_every_line_has_a_title_and_counts() -> None:
    lines = {name: getattr(bill(Load(1e6)), name) for name in TITLES}
    assert list(lines) == list(Bill.__slots__)
    assert sum(lines.values()) == pytest.approx(bill(Load(1e6)).total)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (Load(1e6), Load(2e6)),
        (Load(1e6), Load(1e6, fan_out=2)),
        (Load(1e6), Load(1e6, failure_rate=0.5)),
        (Load(1e6), Load(1e6, receiver_ms=1000)),
        (Load(1e8), Load(1e8, days=90)),
    ],
)
def test_more_of_anything_costs_more(less: Load, more: Load) -> None:
    assert bill(less).total < bill(more).total


def test_a_receiver_that_is_down_gets_five_attempts() -> None:
    assert Load(100, fan_out=2, failure_rate=1).attempts() == 1000
    assert Load(100, fan_out=2, failure_rate=0).attempts() == 200
    assert Load(100, failure_rate=0.5).attempts() == pytest.approx(193.75)


def test_batches_fill_with_the_pace() -> None:
    """At a hundred a second and more each batch is full: ten times the messages, as many invocations each."""
    slow, fast, faster = (
        sum(part.invocations for part in work_of(Load(events, failure_rate=0), DEV, read_inputs()).steps)
        for events in (1e5, 1e9, 2e9)
    )
    assert slow == pytest.approx(4 * 1e5)
    assert fast == pytest.approx(4 * 1e8)
    assert faster == pytest.approx(2 * fast)


def test_each_poller_gathers_a_batch_of_its_own() -> None:
    assert filled_batch(4, Batching(50, 10)) == 8
    assert filled_batch(4, Batching(5, 10)) == 5
    assert filled_batch(0.01, Batching(50, 10)) == 1


def test_a_batch_waits_for_its_slowest_receiver() -> None:
    mean = 200 * math.exp(RECEIVER_SPREAD**2 / 2)
    assert slowest_ms(200, 1) == pytest.approx(mean, rel=0.01)
    assert slowest_ms(200, 10) > 2 * slowest_ms(200, 1)
    assert slowest_ms(0, 10) == 0


def test_an_invocation_is_on_the_line_between_two_measurements() -> None:
    inputs = read_inputs()
    low, high = (inputs.invocations[size]["delivery"] for size in ("10", "100"))
    assert of_batch(inputs, "delivery", 1) == inputs.invocations["1"]["delivery"]
    assert of_batch(inputs, "delivery", 55).ms == pytest.approx((low.ms + high.ms) / 2)


def test_a_level_that_waits_longer_costs_less() -> None:
    low, balanced, economy = (bill(Load(1e7), DEV.with_latency(level)).total for level in Latency)
    assert economy < balanced < low


def test_the_levers_save_more_than_a_third_of_ten_million_events() -> None:
    """Of what the events cost, without an idle deployment and without the traces, whose price is an upper bound."""
    idle = bill(Load(0)).total
    before = bill(Load(1e7), replace(DEV, delivery=replace(DEV.delivery, memory_mb=1024))).total - idle
    assert bill(Load(1e7), DEV.with_latency(Latency.ECONOMY)).total - idle < before * 2 / 3


@pytest.mark.parametrize("level", Latency)
def test_aws_takes_the_batches_of_a_level(level: Latency) -> None:
    assert set(LEVELS[level]) == {"intake", "routing", "orchestration", "delivery", "delivery_slow"}
    for one in LEVELS[level].values():
        assert 1 <= one.size <= (10_000 if one.window_seconds else MOST_WITHOUT_WINDOW)
        assert 0 <= one.window_seconds <= 300


def test_retention_and_the_age_of_payloads_bound_the_data() -> None:
    inputs, load = read_inputs(), Load(1e7, days=365)
    kept = stored_gb(load, DEV, inputs)
    without_old_payloads = stored_gb(load, replace(DEV, payload_days=7.0), inputs)
    month = replace(DEV, retention_days=30.0, event_days=30.0, payload_days=7.0, dead_letter_days=30.0)
    assert kept == pytest.approx(stored_gb(Load(1e7, days=30), DEV, inputs) * 365 / 30)
    assert stored_gb(load, month, inputs) < without_old_payloads < kept


def test_behind_the_proxy_statements_are_planned_anew() -> None:
    behind = replace(DEV, database=replace(DEV.database, proxy=True))
    alone, planned = (demand_of(Load(1e7), env, read_inputs()).cores for env in (DEV, behind))
    assert planned > 1.5 * alone


def test_a_second_zone_doubles_the_database() -> None:
    prices, one = read_prices(), bill(Load(0))
    prod = bill(Load(0), ENVIRONMENTS["prod"])
    instances = prices.rds_postgresql.instances
    assert prod.database == pytest.approx(instances["m7g.xlarge"].hour * 2 * 730)
    assert one.database == pytest.approx(instances["t4g.small"].hour * 730)
    proxy = replace(DEV, database=DatabaseSettings(proxy=True))
    extra = instances["t4g.small"].vcpus * prices.rds_postgresql.proxy_vcpu_hour * 730
    assert bill(Load(0), proxy).database == pytest.approx(one.database + extra)


def test_traces_cost_only_where_they_are_on() -> None:
    assert bill(Load(1e7)).traces == 0
    assert bill(Load(1e7), replace(DEV, tracing=True)).traces > 10
