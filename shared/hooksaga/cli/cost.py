"""`hooksaga cost`: the monthly cost of a deployment on AWS, and what it carries."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated

import typer

from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import AsJson, echo, echo_error, show_json

if TYPE_CHECKING:
    from hooksaga.aws.deployment import Environment
    from hooksaga.aws.deployment_parts import DatabaseSettings
    from hooksaga.cost.estimate import Estimate
    from hooksaga.cost.work import Load

EVENTS = (0, 1_000_000, 10_000_000, 100_000_000)

Levels = Annotated[
    list[str] | None,
    typer.Option(help="low, balanced or economy; repeatable.", show_default="the environment's"),
]
Days = Annotated[
    float, typer.Option(min=0, help="Age of the deployment in days. Retention may delete data earlier.")
]
Peak = Annotated[
    float, typer.Option(min=1, help="Events per second at the peak, as a multiple of the month's average.")
]


def cost(
    events_per_month: Annotated[
        list[float] | None,
        typer.Option(min=0, help="Events per month; repeatable.", show_default="0, and 1 to 100 million"),
    ] = None,
    fan_out: Annotated[
        list[float] | None, typer.Option(min=0, help="Subscriptions per event; repeatable.", show_default="1")
    ] = None,
    failure_rate: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="Share of failed attempts; repeatable.", show_default="0.02"),
    ] = None,
    env: Annotated[str, typer.Option(help="Environment in shared/hooksaga/aws/deployment.py.")] = "dev",
    latency: Levels = None,
    receiver_ms: Annotated[
        float, typer.Option(min=0, help="Median response time of receivers in milliseconds.")
    ] = 200,
    days: Days = 30,
    peak: Peak = 5,
    as_json: AsJson = False,
) -> None:
    """Estimate the monthly cost of a deployment, and what it carries, from list prices and measurements.

    It makes no network calls: prices and measurements are files of this version. docs/cost.md describes the formulas.
    If the environment's database is too small for a load, the estimate has the smallest one that carries it.
    """
    from hooksaga.cost.work import Load

    loads = [
        Load(events, takers, failing, receiver_ms, days, peak)
        for events, takers, failing in product(
            events_per_month or EVENTS, fan_out or [1.0], failure_rate or [0.02]
        )
    ]
    estimates = _estimates(env, latency or [], loads)
    if as_json:
        show_json([_content(one) for one in estimates])
        return
    from hooksaga.aws.deployment import environment_named
    from hooksaga.cost.sources import read_prices
    from hooksaga.cost.table import table_lines

    for line in table_lines(estimates):
        echo(line)
    configured = environment_named(env).database
    for one in estimates:
        for remark in _remarks(one, env, configured):
            echo_error(remark)
    prices = read_prices()
    echo_error(f"Prices of {prices.region} as of {prices.dated}, without free tiers: verify them before use.")


def _estimates(name: str, levels: Sequence[str], loads: "Sequence[Load]") -> "list[Estimate]":
    from hooksaga.aws.deployment import InvalidDeployment, environment_named
    from hooksaga.cost.capacity import TooMuch
    from hooksaga.cost.estimate import estimate_of
    from hooksaga.cost.sources import read_inputs, read_prices

    try:
        envs = [_with_latency(environment_named(name), level) for level in levels or [None]]
        return [estimate_of(load, env, read_prices(), read_inputs()) for load, env in product(loads, envs)]
    except (InvalidDeployment, TooMuch) as error:
        raise WrongUse(str(error)) from error
    except KeyError as error:
        raise WrongUse(
            f"shared/hooksaga/cost/prices.toml has no price for the instance class {error}"
        ) from error


def _with_latency(env: "Environment", level: str | None) -> "Environment":
    from hooksaga.aws.latency import Latency

    if level is None:
        return env
    if level not in list(Latency):
        raise WrongUse(f"--latency {level!r}: there are {', '.join(Latency)}")
    return env.with_latency(Latency(level))


def _remarks(one: "Estimate", name: str, configured: "DatabaseSettings") -> list[str]:
    """Return what a reader of the table must know about one column. configured: the database of the environment."""
    from hooksaga.cost.table import title_of

    title, chosen = title_of(one.load), one.env.database
    remarks: list[str] = []
    if chosen != configured:
        remarks.append(
            f"{title}: the database of {name} ({configured.instance_class}, {configured.storage_gb} GB) is too small; "
            f"the estimate has {chosen.instance_class} with {chosen.storage_gb} GB."
        )
    if not one.is_carried:
        first = one.capacity.first
        remedy = f" Raise {first.remedy}." if first.remedy else ""
        remarks.append(
            f"{title}: {one.peak_per_second:,.0f} events/s at the peak, but {name} carries "
            f"{one.capacity.events_per_second:,.0f}: {first}.{remedy}"
        )
    return remarks


def _content(one: "Estimate") -> dict[str, object]:
    from dataclasses import asdict

    dollars = {name: round(value, 2) for name, value in asdict(one.bill).items()}
    database = one.env.database
    return {
        **asdict(one.load),
        "latency": one.env.latency.value,
        "instance_class": database.instance_class,
        "storage_gb": database.storage_gb,
        "peak_events_per_second": round(one.peak_per_second, 1),
        "carries_events_per_second": round(one.capacity.events_per_second, 1),
        "first_limit": one.capacity.first.name,
        "dollars_per_month": {**dollars, "total": round(one.bill.total, 2)},
    }
