"""`hooksaga prune`: retention."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.deployment import Stack, ask_function
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import AsJson, echo, echo_error, moment_text, short_time, show_json

if TYPE_CHECKING:
    from hooksaga.operations.prune import Place, Pruned, Pruning

Totals = dict[str, Any]


def prune(
    older_than: Annotated[str, typer.Option(metavar="AGE", help="Minimum age: 30d, 12w; at least 1d.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count and delete nothing.")] = False,
    batch: Annotated[int, typer.Option(min=1, max=100_000, help="Jobs per transaction.")] = 5000,
    stack: Stack = None,
    as_json: AsJson = False,
) -> None:
    """Delete completed deliveries and finished attempts by age.

    Open work, events and dead letters are never deleted. Safe at any time, beside running workers. If it is stopped,
    run it again to continue.
    """
    wanted = _wanted(older_than, dry_run, batch)
    totals = _prune_stack(stack, older_than, wanted) if stack else asyncio.run(_prune(wanted))
    if as_json:
        show_json(totals)
        return
    did = "would be deleted" if dry_run else "deleted"
    echo(f"{did}: {totals['sagas']} completed deliveries, {totals['jobs']} attempts")
    echo(f"all ended before {short_time(totals['before'])}")


def _wanted(older_than: str, dry_run: bool, batch: int) -> "Pruning":
    from hooksaga.core.ages import parse_age
    from hooksaga.core.errors import InvalidInput
    from hooksaga.operations.prune import Pruning

    try:
        return Pruning(parse_age(older_than), dry_run, batch)
    except (ValueError, InvalidInput) as error:
        raise WrongUse(f"--older-than {str(error).removeprefix('older_than: ')}") from None


async def _prune(wanted: "Pruning") -> Totals:
    from hooksaga.adapters.database import Role, Session
    from hooksaga.local.given_database import open_database
    from hooksaga.operations.prune import prune as prune_all
    from hooksaga.operations.prune import prune_batch

    async with open_database() as address:
        session = Session(address, Role.ADMIN)

        async def run_batch(after: "Place | None") -> "Pruned":
            return await session.run(partial(prune_batch, wanted=wanted, after=after))

        try:
            done = await prune_all(run_batch, may_go_on=_report)
        finally:
            await session.close()
    before = moment_text(done.before)
    return {"sagas": done.sagas, "jobs": done.jobs, "before": before, "dry_run": wanted.dry_run}


def _report(so_far: "Pruned") -> bool:
    if so_far.jobs:
        echo_error(f"so far {so_far.sagas} deliveries, {so_far.jobs} attempts")
    return True


def _prune_stack(stack: str, older_than: str, wanted: "Pruning") -> Totals:
    action = {"action": "prune", "older_than": older_than, "dry_run": wanted.dry_run, "batch": wanted.batch}
    answer = ask_function(stack, "admin", action)
    totals = {name: answer[name] for name in ("sagas", "jobs", "before", "dry_run")}
    while answer["next"]:
        answer = ask_function(stack, "admin", {**action, "after": answer["next"]})
        totals |= {name: totals[name] + answer[name] for name in ("sagas", "jobs")}
    return totals
