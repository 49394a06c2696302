"""Keys of the HTTP API. Only their SHA-256 is stored; database functions check, create and revoke them."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_rows, fetch_value
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound
from hooksaga.core.scopes import Scope

KEY_PREFIX = "hs_"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A valid key. tenant_id None: it may act for every tenant."""

    hash: bytes
    id: int
    tenant_id: str | None
    scopes: list[str]


@dataclass(frozen=True, slots=True)
class ApiKeyView:
    """List entry of a key, without the key."""

    id: int
    name: str
    last_four: str
    tenant_id: str | None
    scopes: list[str]
    created_at: datetime
    revoked_at: datetime | None


def generate_api_key() -> str:
    """Return a new key of 256 random bits."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def hash_api_key(key: str) -> bytes:
    """Return the SHA-256 of the key. Keys are random, so a slow hash would add no security."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


async def check_api_keys(connection: Connection, hashes: Sequence[bytes]) -> list[ApiKey]:
    """Return the valid keys among the hashes. The lookup is by hash, so its duration reveals nothing about a key."""
    return await fetch_rows(
        connection, load_queries("api_keys")["check_api_keys"], {"hashes": list(hashes)}, ApiKey
    )


async def create_api_key(
    connection: Connection,
    key: str,
    *,
    name: str,
    tenant_id: str | None = None,
    scopes: Sequence[str] = tuple(Scope),
) -> int:
    """Make the key valid and return its id. A key that already exists keeps its rights."""
    params = {
        "name": name,
        "hash": hash_api_key(key),
        "last_four": key[-4:],
        "tenant_id": tenant_id,
        "scopes": list(scopes),
    }
    return await fetch_value(connection, load_queries("api_keys")["create_api_key"], params)


async def list_api_keys(connection: Connection) -> list[ApiKeyView]:
    return await fetch_rows(connection, load_queries("api_keys")["list_api_keys"], {}, ApiKeyView)


async def revoke_api_key(connection: Connection, key_id: int) -> None:
    """Revoke the key: a second later no process takes it any more. Raises NotFound `api_key_not_found`."""
    if not await fetch_value(connection, load_queries("api_keys")["revoke_api_key"], {"id": key_id}):
        raise NotFound("api_key_not_found", f"there is no key {key_id}")
