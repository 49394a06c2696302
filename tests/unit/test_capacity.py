"""What a deployment carries: which limit breaks first, which database is chosen, and what is refused."""

from dataclasses import replace

import pytest

from bench.flow_simulation import TRAFFIC
from hooksaga.aws.deployment import ENVIRONMENTS, ApiSettings, Environment
from hooksaga.cost.capacity import (
    Capacity,
    TooMuch,
    capacity_of,
    connections_of,
    database_limits,
    database_rate,
    fitting,
    limits_at,
    with_database,
)
from hooksaga.cost.sources import read_inputs, read_prices
from hooksaga.cost.work import SECONDS, Load

DEV, PROD = ENVIRONMENTS["dev"], ENVIRONMENTS["prod"]
PRICES, INPUTS = read_prices(), read_inputs()


def capacity(load: Load, env: Environment) -> Capacity:
    return capacity_of(load, env, PRICES, INPUTS)


def most_used(rate: float, load: Load, env: Environment) -> float:
    return max(limit.used for limit in limits_at(rate, load, env, PRICES, INPUTS))


def test_prod_carries_the_traffic_of_the_simulation() -> None:
    traffic = TRAFFIC["prod"]
    load = Load(1, traffic.fan_out, receiver_ms=traffic.receiver_ms, failure_rate=0)
    assert traffic.rate * traffic.fan_out >= 3000
    assert {
        str(limit) for limit in limits_at(traffic.rate, load, PROD, PRICES, INPUTS) if limit.used > 1
    } == set()


def test_the_rate_is_where_the_first_limit_breaks() -> None:
    load = Load(1e7, 3)
    found = capacity(load, PROD)
    assert most_used(found.events_per_second, load, PROD) <= 1
    assert most_used(found.events_per_second * 1.01, load, PROD) > 1
    assert found.first.used > 1


@pytest.mark.parametrize(
    ("change", "load", "name"),
    [
        ({}, Load(1), "requests a second of the API"),
        (
            {"api": ApiSettings(requests_per_second=9000), "ingest": replace(PROD.ingest, concurrency=70)},
            Load(1),
            "processors of the database",
        ),
        ({}, Load(1, receiver_ms=10_000), "copies of delivery"),
        ({}, Load(1, fan_out=500), "copies of delivery"),
        ({"ingest": replace(PROD.ingest, concurrency=2)}, Load(1), "copies of ingest"),
        ({"database": replace(PROD.database, storage_limit_gb=110)}, Load(1, days=900), "GB in the database"),
    ],
)
def test_the_first_limit_is_named(change: dict[str, object], load: Load, name: str) -> None:
    assert capacity(load, replace(PROD, **change)).first.name == name


def test_connections_beyond_the_memory_are_a_limit_at_any_rate() -> None:
    small = with_database(PROD, "t4g.micro", 20)
    assert capacity(Load(1), small).events_per_second == 0
    assert connections_of(1) == 112
    assert connections_of(512) == 5000


def test_a_database_that_is_large_enough_stays() -> None:
    assert fitting(Load(1e7), DEV, PRICES, INPUTS).database == DEV.database


def test_the_smallest_larger_database_is_chosen() -> None:
    load = Load(1e9)
    chosen = fitting(load, DEV, PRICES, INPUTS)
    names = list(PRICES.rds_postgresql.instances)
    smaller = names[names.index(chosen.database.instance_class) - 1]
    rate = load.events / SECONDS * load.peak
    assert chosen.database.instance_class != DEV.database.instance_class
    assert database_rate(load, chosen, PRICES, INPUTS).events_per_second >= rate
    too_small = with_database(DEV, smaller, 400)
    assert database_rate(load, too_small, PRICES, INPUTS).events_per_second < rate


def test_a_larger_volume_is_chosen_when_writes_are_the_limit() -> None:
    load = Load(3e9, days=0)
    assert fitting(load, DEV, PRICES, INPUTS).database.storage_gb == 400


def test_what_no_database_carries_is_refused_with_the_limit() -> None:
    with pytest.raises(TooMuch, match=r"writes to its disk a second .*docs/scale\.md"):
        fitting(Load(1e11, days=0), DEV, PRICES, INPUTS)


def test_a_burstable_class_has_a_limit_for_all_day() -> None:
    load = Load(1e8, peak=1)
    limits = {limit.name: limit for limit in database_limits(load, load, DEV, PRICES, INPUTS)}
    peak, all_day = limits["processors of the database"], limits["processors of the database all day"]
    assert peak.needed == all_day.needed
    assert all_day.allowed < peak.allowed


def test_each_larger_class_carries_at_least_as_much() -> None:
    names = [name for name in PRICES.rds_postgresql.instances if name.startswith("m7g")]
    rates = [
        database_rate(Load(1, 3), with_database(PROD, name, 400), PRICES, INPUTS).events_per_second
        for name in names
    ]
    assert rates == sorted(rates)
