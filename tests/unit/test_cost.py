"""A month's bill: its sources have the right form, and it follows the load as it must."""

import datetime

import pytest

from hooksaga.aws.deployment import ENVIRONMENTS, Environment
from hooksaga.cost.bill import TITLES, Bill, bill_of
from hooksaga.cost.sources import read_inputs, read_prices
from hooksaga.cost.work import STEPS, TICKING, Load, work_of

DEV = ENVIRONMENTS["dev"]


def bill(load: Load, env: Environment = DEV) -> Bill:
    return bill_of(load, env, read_prices(), read_inputs())


def test_prices_are_dated_and_there_for_every_instance_that_an_environment_has() -> None:
    prices = read_prices()
    assert prices.dated <= datetime.datetime.now(datetime.UTC).date()
    assert set(prices.rds_postgresql.instance_hour) == set(prices.rds_postgresql.vcpus)
    assert {env.database.instance_class for env in ENVIRONMENTS.values()} <= set(prices.rds_postgresql.vcpus)


def test_inputs_have_every_step_with_both_batches() -> None:
    inputs = read_inputs()
    for size in ("1", "10"):
        assert set(inputs.invocations[size]) == {"ingest", *STEPS}
    assert set(inputs.ticks) <= set(TICKING)


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
        (Load(1e8), Load(1e8, days_kept=90)),
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
    slow, fast, faster = (work_of(Load(events, failure_rate=0), read_inputs()) for events in (1e5, 1e9, 2e9))
    assert slow.queue_invocations == pytest.approx(4 * 1e5)
    assert fast.queue_invocations == pytest.approx(4 * 1e8)
    assert faster.queue_invocations == pytest.approx(2 * fast.queue_invocations)


def test_a_second_zone_doubles_the_database() -> None:
    prices, one = read_prices(), bill(Load(0))
    prod = bill(Load(0), ENVIRONMENTS["prod"])
    hours = prices.rds_postgresql.instance_hour["m7g.large"] * 2 + 2 * prices.rds_postgresql.proxy_vcpu_hour
    assert prod.database == pytest.approx(hours * 730)
    assert one.database == pytest.approx(prices.rds_postgresql.instance_hour["t4g.micro"] * 730)
