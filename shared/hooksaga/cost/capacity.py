"""Limits of a deployment: which breaks first, at which rate, and which database carries a load."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hooksaga.aws.deployment import Environment
from hooksaga.aws.deployment_limits import least_storage_limit
from hooksaga.aws.deployment_order import CONNECTIONS_FOR_PEOPLE
from hooksaga.cost.demand import demand_of, stored_gb
from hooksaga.cost.sources import Inputs, Prices
from hooksaga.cost.work import SECONDS, Load, Part, ingest_of, steps_of

BUSY_SHARE = 0.7
"""Share of a database's processors, and of a function's copies, that may be busy at the peak: the rest is for chance,
for vacuum, and for what is not measured."""

ACCOUNT_COPIES = 1000
"""Lambda's default quota of concurrent executions in an account. AWS raises it on request."""

QUEUE_IN_FLIGHT = 120_000
"""Messages of a standard queue that are received and not yet deleted."""

BYTES_PER_CONNECTION = 9_531_392
"""RDS allows a connection for each so many bytes of the instance's memory, and at most MOST_CONNECTIONS."""

MOST_CONNECTIONS = 5000
CONNECTION_MB = 6
"""Memory of a connection's own, with the plans of its statements, as measured. Connections may take half of the
instance's memory: a quarter is for shared buffers, the rest for the system and its cache of files."""

STRIPED_GB = 400
"""From this size RDS stripes a gp3 volume over four."""

VOLUME = {False: (3000, 125), True: (12_000, 500)}
"""Operations and MiB a second of gp3, by whether it is striped, at no charge of their own."""

RATE_LIMIT = 1e6


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, and how much of it a load needs. remedy: which setting raises it; empty for the database's own."""

    name: str
    needed: float
    allowed: float
    remedy: str = ""

    @property
    def used(self) -> float:
        return self.needed / self.allowed

    def __str__(self) -> str:
        return f"{self.name} ({self.needed:,.4g} of {self.allowed:,.4g})"


@dataclass(frozen=True, slots=True)
class Capacity:
    """The highest rate without a broken limit, and the limit that breaks above it."""

    events_per_second: float
    first: Limit


class TooMuch(ValueError):
    """No single database carries the load."""


def limits_at(rate: float, load: Load, env: Environment, prices: Prices, inputs: Inputs) -> Iterator[Limit]:
    """Return all limits at so many events a second, which is the peak of the load."""
    peak = replace(load, events=rate * SECONDS)
    mean = replace(load, events=rate * SECONDS / load.peak)
    yield from database_limits(peak, mean, env, prices, inputs)
    yield from _service_limits(rate, peak, env, inputs)


def database_limits(
    peak: Load, mean: Load, env: Environment, prices: Prices, inputs: Inputs
) -> Iterator[Limit]:
    """Return the limits of the instance and its volume. Raises KeyError for an instance class without a price."""
    wanted = env.database
    instance = prices.rds_postgresql.instances[wanted.instance_class]
    at_peak, all_day = demand_of(peak, env, inputs), demand_of(mean, env, inputs)
    cores = instance.vcpus * instance.speed
    yield Limit("processors of the database", at_peak.cores, cores * BUSY_SHARE)
    yield Limit("processors of the database all day", all_day.cores, cores * instance.all_day)
    stored = stored_gb(mean, env, inputs)
    operations, mib = VOLUME[max(wanted.storage_gb, stored) >= STRIPED_GB]
    yield Limit("writes to its disk a second", at_peak.writes, min(operations, instance.iops))
    megabits = min(mib * 2**20 * 8 / 1e6, instance.megabits)
    yield Limit("Mbit/s to its disk", at_peak.written_bytes * 8 / 1e6, megabits)
    connections = min(wanted.connection_limit, connections_of(instance.memory_gib))
    yield Limit("connections", env.connections + CONNECTIONS_FOR_PEOPLE, connections)
    megabytes = env.connections * CONNECTION_MB
    yield Limit("memory for connections", megabytes, instance.memory_gib * 1024 / 2)
    yield Limit("GB in the database", stored, wanted.storage_limit_gb, "database.storage_limit_gb")


def connections_of(memory_gib: float) -> int:
    """Return the connections that RDS allows by default."""
    return min(MOST_CONNECTIONS, int(memory_gib * 2**30 // BYTES_PER_CONNECTION))


def _service_limits(rate: float, peak: Load, env: Environment, inputs: Inputs) -> Iterator[Limit]:
    api = "api.requests_per_second"
    yield Limit("requests a second of the API", rate, env.api.requests_per_second, api)
    steps, busy = steps_of(peak, env, inputs), dict[str, float]()
    for part in (ingest_of(peak, inputs), *steps):
        busy[part.function] = busy.get(part.function, 0) + _busy(part, env)
    for name, copies in busy.items():
        allowed = env.functions[name].concurrency - (env.slow_concurrency if name == "delivery" else 0)
        yield Limit(f"copies of {name}", copies, allowed * BUSY_SHARE, f"{name}.concurrency")
    yield Limit("Lambda's concurrent executions", sum(busy.values()), ACCOUNT_COPIES * BUSY_SHARE, "quota")
    in_flight = max(_in_flight(part, env) for part in steps)
    yield Limit("messages in flight", in_flight, QUEUE_IN_FLIGHT, "latency")


def _busy(part: Part, env: Environment) -> float:
    """Return the copies at work, on average, when `part` is of a month at a constant rate."""
    return part.invocations / SECONDS * part.milliseconds(env) / 1000


def _in_flight(part: Part, env: Environment) -> float:
    window = max(env.batching(queue).window_seconds for queue in ("routing", "orchestration", "delivery"))
    return part.invocations * part.filled / SECONDS * (window + part.milliseconds(env) / 1000)


def capacity_of(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> Capacity:
    """Return what the environment carries of events like those of the load."""
    return _highest(lambda rate: limits_at(rate, load, env, prices, inputs))


def database_rate(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> Capacity:
    """Return what the environment's database carries, whatever its other settings are."""

    def limits(rate: float) -> Iterator[Limit]:
        peak = replace(load, events=rate * SECONDS)
        mean = replace(load, events=rate * SECONDS / load.peak)
        return (limit for limit in database_limits(peak, mean, env, prices, inputs) if not limit.remedy)

    return _highest(limits)


def _highest(limits: Callable[[float], Iterable[Limit]]) -> Capacity:
    """Halve intervals: the more events a second, the more of each limit is used."""

    def worst(rate: float) -> Limit:
        return max(limits(rate), key=lambda limit: limit.used)

    low, high = 0.0, RATE_LIMIT
    while high - low > max(0.01, low / 1000):
        middle = (low + high) / 2
        low, high = (middle, high) if worst(middle).used <= 1 else (low, middle)
    return Capacity(low, worst(high))


def fitting(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> Environment:
    """Return the environment with its own database, or the smallest larger one that carries the load.

    Raises TooMuch if none does, KeyError for an instance class without a price.
    """
    names = list(prices.rds_postgresql.instances)
    prices.rds_postgresql.instances[env.database.instance_class]
    candidates = [
        with_database(env, name, storage_gb)
        for name in names[names.index(env.database.instance_class) :]
        for storage_gb in sorted({env.database.storage_gb, max(env.database.storage_gb, STRIPED_GB)})
    ]
    broken = list[Limit]()
    for candidate in candidates:
        broken = _broken(load, candidate, prices, inputs)
        if not broken:
            return candidate
    raise TooMuch(_refusal(load, candidates[-1], broken))


def with_database(env: Environment, instance_class: str, storage_gb: int) -> Environment:
    limit_gb = max(env.database.storage_limit_gb, least_storage_limit(storage_gb))
    database = replace(
        env.database, instance_class=instance_class, storage_gb=storage_gb, storage_limit_gb=limit_gb
    )
    return replace(env, database=database)


def _broken(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> list[Limit]:
    """Return the broken limits that a larger database can raise, unlike its settings."""
    peak = replace(load, events=load.events * load.peak)
    limits = database_limits(peak, load, env, prices, inputs)
    return [limit for limit in limits if limit.used > 1 and not limit.remedy]


def _refusal(load: Load, largest: Environment, broken: Sequence[Limit]) -> str:
    rate = load.events_per_second * load.peak
    return (
        f"{load.events:,.0f} events a month with a fan-out of {load.fan_out:g} are {math.ceil(rate):,} events a second "
        f"at the peak, and no database in shared/hooksaga/cost/prices.toml carries them: of "
        f"{largest.database.instance_class} they need {', '.join(map(str, broken))}. Divide the tenants among several "
        "deployments: docs/scale.md"
    )
