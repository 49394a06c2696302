"""`hooksaga prune`: retention."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.deployment import Stack, ask_function
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import AsJson, echo, echo_error, moment_text, short_time, show_json

if TYPE_CHECKING:
    from datetime import timedelta

    from hooksaga.operations.prune import Place, Pruned, Pruning

Totals = dict[str, Any]

WORDS = {
    "sagas": "deliveries",
    "jobs": "attempts",
    "dead_letters": "dead letters",
    "payloads": "payloads",
    "events": "events",
}

Age = Annotated[str | None, typer.Option(metavar="AGE", help="Age of deliveries: 30d, 12w; at least 1d.")]


def prune(
    older_than: Age = None,
    dead_letters: Annotated[str | None, typer.Option(metavar="AGE", help="Age of dead letters.")] = None,
    payloads: Annotated[str | None, typer.Option(metavar="AGE", help="Age of payloads.")] = None,
    events: Annotated[str | None, typer.Option(metavar="AGE", help="Age of events.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count and delete nothing.")] = False,
    batch: Annotated[int, typer.Option(min=1, max=100_000, help="Rows read per transaction.")] = 5000,
    stack: Stack = None,
    as_json: AsJson = False,
) -> None:
    """Delete what ended long ago: deliveries, dead letters, payloads, events, each by its age.

    Without an age, those of the settings HOOKSAGA_RETENTION_DAYS, HOOKSAGA_DEAD_LETTER_DAYS, HOOKSAGA_PAYLOAD_DAYS and
    HOOKSAGA_EVENT_DAYS. Open work is never deleted. Safe at any time, beside running workers. If it is stopped, run it
    again to continue.
    """
    given = {
        "deliveries": ("--older-than", older_than),
        "dead_letters": ("--dead-letters", dead_letters),
        "payloads": ("--payloads", payloads),
        "events": ("--events", events),
    }
    wanted = _wanted(given, dry_run, batch) if any(text for _, text in given.values()) else []
    if stack:
        totals = _prune_stack(
            stack, {kind: text for kind, (_, text) in given.items() if text}, dry_run, batch
        )
    else:
        totals = asyncio.run(_prune(wanted or _of_settings(dry_run, batch)))
    if as_json:
        show_json(totals)
        return
    counts = [f"{totals[name]} {word}" for name, word in WORDS.items()]
    echo(f"{'would be deleted' if dry_run else 'deleted'}: {', '.join(counts)}")
    for kind, before in totals["before"].items():
        echo(f"{kind.replace('_', ' ')}: older than {short_time(before)}")


def _wanted(given: dict[str, tuple[str, str | None]], dry_run: bool, batch: int) -> "list[Pruning]":
    from hooksaga.core.ages import parse_age
    from hooksaga.core.retention import RetentionKind

    found = list["Pruning"]()
    for kind, (option, text) in given.items():
        if text is not None:
            try:
                found.append(_pruning(parse_age(text), RetentionKind(kind), dry_run, batch))
            except ValueError as error:
                raise WrongUse(f"{option} {str(error).removeprefix('older_than: ')}") from None
    return found


def _pruning(age: "timedelta", kind: Any, dry_run: bool, batch: int) -> "Pruning":
    from hooksaga.core.errors import InvalidInput
    from hooksaga.operations.prune import Pruning

    try:
        return Pruning(age, dry_run, batch, kind)
    except InvalidInput as error:
        raise ValueError(str(error)) from None


def _of_settings(dry_run: bool, batch: int) -> "list[Pruning]":
    from hooksaga.runtime.settings import read_settings

    policy = read_settings().retention_policy
    if not policy.kinds:
        raise WrongUse("no age: give --older-than, or set HOOKSAGA_RETENTION_DAYS")
    ages = ((kind, policy.age_of(kind)) for kind in policy.kinds)
    return [_pruning(age, kind, dry_run, batch) for kind, age in ages if age is not None]


async def _prune(wanted: "list[Pruning]") -> Totals:
    from hooksaga.adapters.database import Role, Session
    from hooksaga.local.given_database import open_database

    totals = _nothing_yet(wanted[0].dry_run)
    async with open_database() as address, Session(address, Role.ADMIN) as session:
        for one in wanted:
            done = await _prune_kind(session, one)
            totals |= {name: totals[name] + many for name, many in done.counts().items()}
            assert done.before is not None
            totals["before"][one.kind.value] = moment_text(done.before)
    return totals


def _nothing_yet(dry_run: bool) -> Totals:
    return {**dict.fromkeys(WORDS, 0), "before": {}, "dry_run": dry_run}


async def _prune_kind(session: Any, wanted: "Pruning") -> "Pruned":
    from hooksaga.operations.prune import prune as prune_all
    from hooksaga.operations.prune import prune_batch

    async def run_batch(after: "Place | None") -> "Pruned":
        return await session.run(prune_batch, wanted, after)

    return await prune_all(run_batch, may_go_on=_report)


def _report(so_far: "Pruned") -> bool:
    if so_far.rows:
        parts = [f"{many} {WORDS[name]}" for name, many in so_far.counts().items() if many]
        echo_error(f"so far {', '.join(parts)}")
    return True


def _prune_stack(stack: str, ages: dict[str, str], dry_run: bool, batch: int) -> Totals:
    """Ask the admin function kind by kind: it has the settings of the stack."""
    totals = _nothing_yet(dry_run)
    for kind in ages or ("deliveries", "dead_letters", "payloads", "events"):
        action = {"action": "prune", "kind": kind, "dry_run": dry_run, "batch": batch}
        if kind in ages:
            action["older_than"] = ages[kind]
        following: Any = None
        while True:
            answer = ask_function(stack, "admin", {**action, "after": following} if following else action)
            totals |= {name: totals[name] + answer[name] for name in WORDS}
            following = answer["next"]
            if not following:
                break
        if answer["before"]:
            totals["before"][kind] = answer["before"]
    return totals
