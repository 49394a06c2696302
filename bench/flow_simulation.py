"""One endpoint that never answers, in SQS mode on AWS, simulated: what the others notice, and how many copies it takes.

    .venv/bin/python -m bench.flow_simulation [--env prod dev] [--seconds 60] [--silent-after 0] [--json]
    .venv/bin/python -m bench.flow_simulation --env prod --quick 40 160 240 --orchestrators 20 40

Discrete events from measured times (shared/hooksaga/cost/inputs.json), with the copies and batch sizes of
shared/hooksaga/aws/deployment.py; --quick and --orchestrators try others. `prod` has 1,000 events a second, each to 3
of 300 subscriptions; `dev` 20 a second, each to one of 20. One subscription has 5 % of the deliveries. In the first run
it answers like the others; in the second its endpoint is silent, from the first delivery on or after --silent-after
seconds. Latency goes from the 202 to the POST that succeeds. The same seed gives the same figures.
"""

import argparse
import itertools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from bench.figures import ms, shown
from bench.place import parser_of, report, run_command
from bench.simulated_orchestrator import Saga
from bench.simulated_pipeline import Pipeline, Traffic
from hooksaga.aws.deployment import ENVIRONMENTS, Environment
from hooksaga.aws.deployment_order import CONNECTIONS_FOR_PEOPLE
from hooksaga.cost.demand import demand_of
from hooksaga.cost.sources import Inputs, read_inputs
from hooksaga.cost.work import SECONDS, Load
from hooksaga.local.bench_figures import Percentiles, percentiles

TRAFFIC = {
    "prod": Traffic(rate=1000, subscriptions=300, fan_out=3, seconds=60),
    "dev": Traffic(rate=20, subscriptions=20, fan_out=1, seconds=60),
}
LAST_SECONDS = 1.0
"""Events of the last second of a run are not counted: they may be on their way."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The others in one run. A latency of null: not delivered. timeouts: attempts that the silent endpoint got. busy:
    copies at work, on average. database_cores: processors at work, by the measurements of `hooksaga cost`."""

    environment: str
    is_silent: bool
    quick_copies: int
    slow_copies: int
    orchestrators: int
    connections: int
    offered_per_second: float
    delivered_share: float
    latency_ms: Percentiles
    longest_ms: float | None
    dead_letters: int
    timeouts: int
    busy: dict[str, float]
    database_cores: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--env", nargs="+", choices=list(TRAFFIC), default=list(TRAFFIC))
    parser.add_argument("--seconds", type=float, default=60, help="of simulated time")
    parser.add_argument("--silent-after", type=float, default=0, help="the endpoint answers so many seconds")
    parser.add_argument("--receiver-ms", type=float, default=200, help="median of an answer")
    parser.add_argument("--quick", type=int, nargs="+", help="copies for quick receivers")
    parser.add_argument("--orchestrators", type=int, nargs="+", help="copies of the orchestrator")
    options = parser.parse_args()
    run_command(lambda: _run(options), table, json=options.json)


def _run(options: argparse.Namespace) -> list[Simulated]:
    changes = {"seconds": options.seconds, "receiver_ms": options.receiver_ms}
    done: list[Simulated] = []
    for name in options.env:
        for quick, copies in itertools.product(options.quick or [None], options.orchestrators or [None]):
            env = with_copies(ENVIRONMENTS[name], quick, copies)
            for silent_from in (math.inf, options.silent_after):
                traffic = replace(TRAFFIC[name], silent_from=silent_from, **changes)
                done.append(simulate(env, traffic, read_inputs()))
    return done


def with_copies(env: Environment, quick: int | None, orchestrators: int | None) -> Environment:
    """Return the environment with other copies, and a database that takes their connections."""
    concurrency = env.delivery.concurrency if quick is None else quick + env.slow_concurrency
    return replace(
        env,
        delivery=replace(env.delivery, concurrency=concurrency),
        orchestrator=replace(env.orchestrator, concurrency=orchestrators or env.orchestrator.concurrency),
        database=replace(env.database, connection_limit=5000),
    )


def simulate(env: Environment, traffic: Traffic, inputs: Inputs) -> Simulated:
    what = (
        f"{traffic.rate:,.0f} events a second to {traffic.fan_out} of {traffic.subscriptions} subscriptions"
    )
    is_silent = traffic.silent_from < traffic.seconds
    report(f"{env.name}: {what}" + (", one silent" if is_silent else ""))
    pipeline = Pipeline(env, traffic, inputs)
    pipeline.run()
    last = traffic.seconds - LAST_SECONDS
    others = [one for one in pipeline.sagas if one.subscription is not pipeline.one]
    offered = [one for one in others if one.accepted_at < last]
    waits = [_wait_ms(one) for one in offered]
    return Simulated(
        environment=env.name,
        is_silent=is_silent,
        quick_copies=pipeline.sources["delivery"].copies,
        slow_copies=env.slow_concurrency,
        orchestrators=env.orchestrator.concurrency,
        connections=env.connections + CONNECTIONS_FOR_PEOPLE,
        offered_per_second=round(len(offered) / last, 1),
        delivered_share=round(sum(wait < math.inf for wait in waits) / len(waits), 4),
        latency_ms=Percentiles(*map(_known, astuple(percentiles(waits)))),
        longest_ms=_known(max(waits)),
        dead_letters=pipeline.orchestrator.dead_letters,
        timeouts=pipeline.timeouts,
        database_cores=_database_cores(env, inputs, traffic),
        busy={name: round(one.busy_seconds / traffic.seconds, 1) for name, one in pipeline.sources.items()},
    )


def _database_cores(env: Environment, inputs: Inputs, traffic: Traffic) -> float:
    load = Load(traffic.rate * SECONDS, traffic.fan_out, failure_rate=0)
    return round(demand_of(load, env, inputs).cores, 2)


def _wait_ms(saga: Saga) -> float:
    return math.inf if saga.arrived_at is None else (saga.arrived_at - saga.accepted_at) * 1000


def _known(milliseconds: float | None) -> float | None:
    return None if milliseconds is None or milliseconds == math.inf else round(milliseconds, 1)


def table(result: Sequence[Simulated]) -> str:
    rows = [
        (
            one.environment,
            "one silent" if one.is_silent else "all good",
            one.quick_copies,
            one.orchestrators,
            one.connections,
            f"{one.offered_per_second:,.0f}",
            f"{one.delivered_share:.2%}",
            *map(ms, astuple(one.latency_ms)),
            ms(one.longest_ms),
            one.timeouts,
            f"{one.busy['delivery']:.1f}",
            f"{one.busy['orchestration']:.1f}",
            one.database_cores,
        )
        for one in result
    ]
    columns = (
        "",
        "receivers",
        "quick",
        "orchestr.",
        "connections",
        "offered/s",
        "delivered",
        "p50 ms",
        "p95 ms",
    )
    return shown((*columns, "p99 ms", "longest ms", "timeouts", "busy quick", "busy orch.", "db cores"), rows)


if __name__ == "__main__":
    main()
