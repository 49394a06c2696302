"""`hooksaga secrets`: the key that seals the signing secrets of all subscriptions."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.commands.deployment import Stack, ask_function
from infra.commands.failures import FAILED
from infra.commands.terminal import AsJson, complain, say, show_json

if TYPE_CHECKING:
    from shared.stages.reseal_secrets import Resealed

app = typer.Typer(no_args_is_help=True, help="The key that seals all signing secrets: rotate it.")


@app.command("new-key")
def new_key(as_json: AsJson = False) -> None:
    """Print a new key. It goes behind the old one in HOOKSAGA_SECRETS_KEY, with a comma between, and first only once
    every process knows it: docs/operations/keys.md.
    """
    from shared.adapters.secret_box import generate_key

    key = generate_key()
    show_json({"key": key}) if as_json else say(key)


@app.command()
def reseal(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and change nothing.")] = False,
    stack: Stack = None,
    as_json: AsJson = False,
) -> None:
    """Seal every stored signing secret anew, under the first of the configured keys.

    Each running process has to know that key already. Safe to repeat; afterwards no older key is needed. Exit code 1
    when there are secrets that no configured key opens.
    """
    done = _reseal_stack(stack, dry_run) if stack else asyncio.run(_reseal(dry_run))
    if as_json:
        show_json(done)
    else:
        _show(done, dry_run)
    raise typer.Exit(FAILED if done["unreadable"] else 0)


def _show(done: dict[str, Any], dry_run: bool) -> None:
    verb = "would be sealed anew" if dry_run else "sealed anew"
    say(f"{done['changed']} of {done['checked']} secrets {verb}")
    for subscription_id in done["unreadable"]:
        complain(
            f"subscription {subscription_id}: no configured key opens its secret; add the key that does, or "
            f"`hooksaga subscriptions rotate-secret {subscription_id}`"
        )


async def _reseal(dry_run: bool) -> dict[str, Any]:
    from infra.commands.database import open_database
    from infra.local.system import secret_box
    from shared.adapters.database import Role, Session
    from shared.runtime.settings import read_settings
    from shared.stages.reseal_secrets import reseal_batch, together

    async with open_database() as address:
        session = Session(address, Role.SUBSCRIPTIONS)
        run = partial(reseal_batch, box=secret_box(read_settings()), dry_run=dry_run)
        try:
            done = await session.run(run)
            while done.last_id is not None:
                done = together(done, await session.run(partial(run, after_id=done.last_id)))
        finally:
            await session.close()
    return _content(done)


def _content(done: "Resealed") -> dict[str, Any]:
    return {"checked": done.checked, "changed": done.changed, "unreadable": list(done.unreadable)}


def _reseal_stack(stack: str, dry_run: bool) -> dict[str, Any]:
    action = {"action": "reseal_secrets", "dry_run": dry_run}
    answer = ask_function(stack, "subscriptions", action)
    totals = {name: answer[name] for name in ("checked", "changed", "unreadable")}
    while answer["next"] is not None:
        answer = ask_function(stack, "subscriptions", {**action, "after": answer["next"]})
        totals = {name: totals[name] + answer[name] for name in totals}
    return totals
