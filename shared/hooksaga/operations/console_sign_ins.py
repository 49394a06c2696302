"""Sign-in and sign-out of the pages: single-use links and ended sessions. Only hashes are stored."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from hooksaga.adapters.database import Connection, fetch_value
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import NotFound

SIGN_IN_SECONDS = 3600
"""An unused link expires after this time."""


async def create_sign_in(connection: Connection, key_hash: bytes) -> str:
    """Create a link for this key and return its token. Raises NotFound `api_key_not_found`."""
    token = secrets.token_urlsafe(32)
    params = {"token_hash": _hash(token), "key_hash": key_hash, "valid_seconds": SIGN_IN_SECONDS}
    if not await fetch_value(connection, load_queries("console")["create_sign_in"], params):
        raise NotFound("api_key_not_found", "there is no such key, or it was revoked")
    return token


async def use_sign_in(connection: Connection, token: str) -> bytes | None:
    """Use a link: return the hash of its key at the first use in time; None for any other token or use."""
    params = {"token_hash": _hash(token)}
    return await fetch_value(connection, load_queries("console")["use_sign_in"], params)


async def end_sessions(connection: Connection, ids: Sequence[str], *, valid_until: datetime) -> None:
    """End the sessions with these ids at once, everywhere. valid_until: when the last of them would have ended."""
    params = {
        "hashes": [_hash(one) for one in ids],
        "valid_until": valid_until,
        "callers_now": datetime.now(UTC),
    }
    await connection.execute(load_queries("console")["end_sessions"], params)


async def session_has_ended(connection: Connection, session_id: str) -> bool:
    params = {"hash": _hash(session_id)}
    return bool(await fetch_value(connection, load_queries("console")["session_has_ended"], params))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
