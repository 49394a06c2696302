"""`hooksaga keys`: API keys. The commands use the database directly, so the first key needs no key."""

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.deployment import Stack, ask_function
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import (
    AsJson,
    echo,
    echo_error,
    moment_text,
    short_time,
    show_fields,
    show_json,
    show_table,
)

if TYPE_CHECKING:
    from hooksaga.operations.api_keys import ApiKeyView

app = typer.Typer(no_args_is_help=True, help="API keys: create, list, revoke.")

MAX_NAME = 100


class Scope(StrEnum):
    """Scopes of a key."""

    EVENTS = "events:write"
    SUBSCRIPTIONS = "subscriptions:write"
    VERIFY = "subscriptions:verify"
    ERASE = "events:erase"
    EVENT_TYPES = "event-types:write"
    ADMIN = "admin"


DEFAULT_SCOPES = (Scope.EVENTS, Scope.SUBSCRIPTIONS, Scope.ADMIN)


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Name of the key's user.")],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            help="Scope of the key; repeatable.", show_default="events:write, subscriptions:write, admin"
        ),
    ] = None,
    tenant_id: Annotated[
        str | None, typer.Option(help="Bind the key to one tenant.", show_default="all tenants")
    ] = None,
    stack: Stack = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and show it once. Only its hash is stored."""
    from hooksaga.core.event_input import check_tenant

    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise WrongUse(f"--name must have 1 to {MAX_NAME} printable characters")
    if tenant_id is not None:
        check_tenant(tenant_id, None)
    scopes = [one.value for one in scope or DEFAULT_SCOPES]
    key, key_id = _create(name, scopes, tenant_id, stack)
    shown = {"id": key_id, "name": name, "tenant_id": tenant_id, "scopes": scopes, "key": key}
    if as_json:
        show_json(shown)
    else:
        show_fields({**shown, "scopes": ", ".join(scopes), "tenant_id": tenant_id or "all tenants"})
        echo_error("The key is not shown again.")


@app.command("list")
def list_all(stack: Stack = None, as_json: AsJson = False) -> None:
    """List keys, newest first, including revoked ones, with their last four characters."""
    keys = _keys_of(stack) if stack else [_as_dict(key) for key in asyncio.run(_list())]
    if as_json:
        show_json({"items": keys})
        return
    columns = ("id", "name", "key", "scopes", "tenant", "created", "revoked")
    show_table(columns, [_row(key) for key in keys])


@app.command()
def revoke(
    key_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The key's number, as in the list.")],
    stack: Stack = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key. The next request with it is refused."""
    if stack:
        _ask_admin(stack, action="revoke_key", id=key_id)
    else:
        asyncio.run(_revoke(key_id))
    if as_json:
        show_json({"id": key_id, "revoked": True})
    else:
        echo(f"key {key_id} is revoked")


def _create(name: str, scopes: list[str], tenant_id: str | None, stack: str | None) -> tuple[str, int]:
    if not stack:
        return asyncio.run(_create_here(name, scopes, tenant_id))
    made = _ask_admin(stack, action="create_key", name=name, scopes=scopes, tenant_id=tenant_id)
    return made["key"], made["id"]


def _keys_of(stack: str) -> list[dict[str, Any]]:
    return _ask_admin(stack, action="list_keys")["items"]


def _ask_admin(stack: str, **action: Any) -> dict[str, Any]:
    return ask_function(stack, "admin", action)


async def _create_here(name: str, scopes: list[str], tenant_id: str | None) -> tuple[str, int]:
    from hooksaga.adapters.database import Role
    from hooksaga.local.given_database import open_database, run_as
    from hooksaga.operations.api_keys import create_api_key, generate_api_key

    key = generate_api_key()
    async with open_database() as address:
        key_id = await run_as(
            address,
            Role.ADMIN,
            lambda connection: create_api_key(connection, key, name=name, tenant_id=tenant_id, scopes=scopes),
        )
    return key, key_id


async def _list() -> "list[ApiKeyView]":
    from hooksaga.adapters.database import Role
    from hooksaga.local.given_database import open_database, run_as
    from hooksaga.operations.api_keys import list_api_keys

    async with open_database() as address:
        return await run_as(address, Role.ADMIN, list_api_keys)


async def _revoke(key_id: int) -> None:
    from hooksaga.adapters.database import Role
    from hooksaga.local.given_database import open_database, run_as
    from hooksaga.operations.api_keys import revoke_api_key

    async with open_database() as address:
        await run_as(address, Role.ADMIN, lambda connection: revoke_api_key(connection, key_id))


def _as_dict(key: "ApiKeyView") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(key)


def _row(key: dict[str, Any]) -> tuple[object, ...]:
    revoked = "" if key["revoked_at"] is None else short_time(_moment(key["revoked_at"]))
    tenant = key["tenant_id"] or "all"
    scopes = ", ".join(key["scopes"])
    return (
        key["id"],
        key["name"],
        f"...{key['last_four']}",
        scopes,
        tenant,
        short_time(_moment(key["created_at"])),
        revoked,
    )


def _moment(value: Any) -> str:
    """Parse a time: a stack returns text, this machine's database a datetime."""
    return value if isinstance(value, str) else moment_text(value)
