"""`hooksaga secrets`: the key that encrypts signing secrets and header values."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.deployment import Stack, ask_function
from hooksaga.cli.failures import FAILED
from hooksaga.cli.terminal import AsJson, echo, echo_error, show_json

if TYPE_CHECKING:
    from hooksaga.operations.reseal_secrets import Resealed

app = typer.Typer(no_args_is_help=True, help="Rotate the key that encrypts all secrets.")


@app.command("new-key")
def new_key(as_json: AsJson = False) -> None:
    """Print a new key. Append it to HOOKSAGA_SECRETS_KEY after a comma; move it to the front when every process has it.

    docs/operations/keys.md describes the rotation.
    """
    from hooksaga.adapters.secret_box import generate_key

    key = generate_key()
    show_json({"key": key}) if as_json else echo(key)


@app.command()
def reseal(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count and change nothing.")] = False,
    stack: Stack = None,
    as_json: AsJson = False,
) -> None:
    """Re-encrypt every stored signing secret and header value with the first configured key.

    Plain-text header values are encrypted too. Each running process must already have that key. Safe to repeat;
    afterwards no older key is needed. Exit code 1 if no configured key decrypts a value, or if another session has
    locked a row: the row is skipped.
    """
    secrets, headers = _reseal_stack(stack, dry_run) if stack else asyncio.run(_reseal(dry_run))
    unreadable = sorted({*secrets.unreadable, *headers.unreadable})
    locked = sorted({*secrets.locked, *headers.locked})
    if as_json:
        counts = {
            "checked": secrets.checked + headers.checked,
            "changed": secrets.changed + headers.changed,
        }
        show_json({**counts, "unreadable": unreadable, "locked": locked})
    else:
        _show(secrets, headers, "would be re-encrypted" if dry_run else "re-encrypted")
    raise typer.Exit(FAILED if unreadable or locked else 0)


def _show(secrets: "Resealed", headers: "Resealed", verb: str) -> None:
    echo(f"{secrets.changed} of {secrets.checked} secrets {verb}")
    if headers.checked:
        echo(f"headers of {headers.changed} of {headers.checked} subscriptions with headers {verb}")
    for subscription_id in secrets.unreadable:
        echo_error(
            f"subscription {subscription_id}: no configured key decrypts its secret; add the right key, or "
            f"`hooksaga subscriptions rotate-secret {subscription_id}`"
        )
    for subscription_id in headers.unreadable:
        echo_error(
            f"subscription {subscription_id}: no configured key decrypts its headers; add the right key, or "
            f"`hooksaga subscriptions update {subscription_id} --header NAME=VALUE`, for each of them"
        )
    for values, done in (("secrets", secrets), ("headers", headers)):
        if done.locked:
            echo_error(
                f"the {values} of {len(done.locked)} subscriptions are not re-encrypted, because another session has "
                f"locked their rows: {', '.join(map(str, done.locked))}; keep the older key, and run this command "
                "again when the lock is released"
            )


async def _reseal(dry_run: bool) -> "tuple[Resealed, Resealed]":
    from hooksaga.adapters.database import Role, Session
    from hooksaga.local.given_database import open_database
    from hooksaga.local.system import secret_box
    from hooksaga.operations.reseal_headers import reseal_headers_batch
    from hooksaga.operations.reseal_secrets import reseal_all, reseal_batch
    from hooksaga.runtime.settings import read_settings

    async with open_database() as address:
        box = secret_box(read_settings())
        async with Session(address, Role.SUBSCRIPTIONS) as session:
            secrets = await reseal_all(session, partial(reseal_batch, box=box, dry_run=dry_run))
            return secrets, await reseal_all(session, partial(reseal_headers_batch, box=box, dry_run=dry_run))


def _reseal_stack(stack: str, dry_run: bool) -> "tuple[Resealed, Resealed]":
    def ask(action: dict[str, Any]) -> dict[str, Any]:
        return ask_function(stack, "subscriptions", action)

    from hooksaga.aws.deployed_stack import reseal_by

    return reseal_by(ask, "reseal_secrets", dry_run), reseal_by(ask, "reseal_headers", dry_run)
