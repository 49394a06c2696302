"""Encrypts plain-text header values, in a process that has the key. Waits for no lock."""

from functools import partial

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.operations.reseal_headers import reseal_headers_batch
from hooksaga.operations.reseal_secrets import Resealed, reseal_all
from hooksaga.runtime.telemetry import logger


async def seal_clear_headers(address: DatabaseAddress, box: SecretBox) -> Resealed:
    """Encrypt plain-text header values, except in rows that another session has locked."""
    async with Session(address, Role.SUBSCRIPTIONS) as session:
        return await reseal_all(session, partial(reseal_headers_batch, box=box, only_clear=True))


async def seal_at_start(address: DatabaseAddress, box: SecretBox) -> None:
    """Do the same at the start of a process, with one warning about the locked rows."""
    done = await seal_clear_headers(address, box)
    if done.locked:
        reason = (
            "another session has locked their rows; the next start or `hooksaga secrets reseal` encrypts them"
        )
        logger.warning(
            "header values stay in plain text", extra={"subscriptions": len(done.locked), "reason": reason}
        )
