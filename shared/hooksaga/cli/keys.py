"""`hooksaga keys`: API keys. The commands use the database directly, so the first key needs no key."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import typer

from hooksaga.cli.deployment import Stack, ask_function
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import (
    AsJson,
    Columns,
    echo,
    echo_error,
    moment_text,
    short_time,
    show_fields,
    show_items,
    show_json,
)
from hooksaga.core.scopes import DEFAULT_SCOPES, Scope

app = typer.Typer(no_args_is_help=True, help="API keys: create, list, revoke.")

MAX_NAME = 100
T = TypeVar("T")


def _moment(value: Any) -> str:
    """Format a time: a stack returns text, this machine's database a datetime, or none."""
    return short_time(value if value is None or isinstance(value, str) else moment_text(value))


_COLUMNS: Columns = {
    "id": "id",
    "name": "name",
    "key": lambda key: f"...{key['last_four']}",
    "scopes": lambda key: ", ".join(key["scopes"]),
    "tenant": lambda key: key["tenant_id"] or "all",
    "created": lambda key: _moment(key["created_at"]),
    "revoked": lambda key: _moment(key["revoked_at"]),
}


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Name of the key's user.")],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="Scope of the key; repeatable.", show_default=", ".join(DEFAULT_SCOPES)),
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
    keys = _listed(stack)
    if as_json:
        show_json({"items": keys})
        return
    show_items(_COLUMNS, keys)


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
        from hooksaga.operations.api_keys import revoke_api_key

        _on_database(revoke_api_key, key_id)
    if as_json:
        show_json({"id": key_id, "revoked": True})
    else:
        echo(f"key {key_id} is revoked")


def _create(name: str, scopes: list[str], tenant_id: str | None, stack: str | None) -> tuple[str, int]:
    if stack:
        made = _ask_admin(stack, action="create_key", name=name, scopes=scopes, tenant_id=tenant_id)
        return made["key"], made["id"]
    from hooksaga.operations.api_keys import create_api_key, generate_api_key

    key = generate_api_key()
    return key, _on_database(create_api_key, key, name=name, tenant_id=tenant_id, scopes=scopes)


def _listed(stack: str | None) -> list[dict[str, Any]]:
    if stack:
        return _ask_admin(stack, action="list_keys")["items"]
    from hooksaga.operations.api_keys import list_api_keys

    return [asdict(key) for key in _on_database(list_api_keys)]


def _ask_admin(stack: str, **action: Any) -> dict[str, Any]:
    return ask_function(stack, "admin", action)


def _on_database(unit: Callable[..., Awaitable[T]], *arguments: Any, **more: Any) -> T:
    from hooksaga.adapters.database import Role
    from hooksaga.local.given_database import open_database, run_as

    async def run() -> T:
        async with open_database() as address:
            return await run_as(address, Role.ADMIN, unit, *arguments, **more)

    return asyncio.run(run())
