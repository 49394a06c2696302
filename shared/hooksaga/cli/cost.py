"""`hooksaga cost`: the monthly cost of a deployment on AWS."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated

import typer

from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import AsJson, echo, echo_error, show_json

if TYPE_CHECKING:
    from hooksaga.cost.bill import Bill
    from hooksaga.cost.work import Load

EVENTS = (0, 1_000_000, 10_000_000, 100_000_000)


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
    receiver_ms: Annotated[
        float, typer.Option(min=0, help="Response time of receivers in milliseconds.")
    ] = 200,
    days_kept: Annotated[float, typer.Option(min=0, help="Days that events stay in the database.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Estimate the monthly cost of a deployment from list prices and measurements.

    It makes no network calls: prices and measurements are files of this version. docs/cost.md describes the formulas.
    """
    from hooksaga.cost.work import Load

    loads = [
        Load(events, takers, failing, receiver_ms, days_kept)
        for events, takers, failing in product(
            events_per_month or EVENTS, fan_out or [1.0], failure_rate or [0.02]
        )
    ]
    bills = _bills(env, loads)
    if as_json:
        show_json([_content(load, bill) for load, bill in zip(loads, bills, strict=True)])
        return
    from hooksaga.cost.sources import read_prices
    from hooksaga.cost.table import table_lines

    for line in table_lines(loads, bills):
        echo(line)
    prices = read_prices()
    echo_error(f"Prices of {prices.region} as of {prices.dated}, without free tiers: verify them before use.")


def _bills(env: str, loads: "Sequence[Load]") -> "list[Bill]":
    from hooksaga.aws.deployment import InvalidDeployment, environment_named
    from hooksaga.cost.bill import bill_of
    from hooksaga.cost.sources import read_inputs, read_prices

    try:
        chosen = environment_named(env)
        return [bill_of(load, chosen, read_prices(), read_inputs()) for load in loads]
    except InvalidDeployment as error:
        raise WrongUse(str(error)) from error
    except KeyError as error:
        raise WrongUse(
            f"shared/hooksaga/cost/prices.toml has no price for the instance class {error}"
        ) from error


def _content(load: "Load", bill: "Bill") -> dict[str, object]:
    from dataclasses import asdict

    dollars = {name: round(value, 2) for name, value in asdict(bill).items()}
    return {**asdict(load), "dollars_per_month": {**dollars, "total": round(bill.total, 2)}}
