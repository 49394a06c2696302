"""The verification handshake: nothing else makes a subscription verified (r04 §2.3 rule 2, spec §8).

A signed POST carries a random challenge to the address that waits; a 2xx answer that repeats it proves that the
receiver wants this. No transaction is open meanwhile, and an address that changed meanwhile stays unverified.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from shared.adapters.database import Connection, fetch_row, fetch_rows
from shared.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from shared.adapters.queries import load_queries
from shared.adapters.secret_box import SecretBox, UnreadableSecret
from shared.core.errors import Conflict, InvalidInput
from shared.core.product import USER_AGENT
from shared.core.signing import InvalidSecret, decode_secret, sign
from shared.stages.subscriptions import Subscription

VERIFY_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """One of a subscription's secrets, sealed, and the database's time, in Unix seconds, when it was read."""

    secret: str
    read_at: int


class _Answer(msgspec.Struct):
    """A receiver's answer; whatever else it holds is not read."""

    challenge: str


async def sealed_secrets(connection: Connection, subscription_id: int) -> list[SealedSecret]:
    """The subscription's valid secrets, the current one first."""
    params = {"id": subscription_id}
    return await fetch_rows(
        connection, load_queries("subscriptions")["current_secrets"], params, SealedSecret
    )


async def challenge(
    sender: HttpSender, box: SecretBox, subscription: Subscription, sealed: Sequence[SealedSecret]
) -> str:
    """Send a challenge to the address that waits for verification, and give that address back once it answers.

    Raises InvalidInput `verification_failed` (422) with the reason. The reason never says what stands behind a
    refused address, and never repeats an answer.
    """
    url = subscription.pending_callback_url or subscription.callback_url
    token = secrets.token_urlsafe(32)
    body = json.dumps({"type": "subscription.verification", "challenge": token}).encode()
    outcome = await sender.send(_signed(url, body, box, subscription, sealed))
    if outcome.error_code is not None:
        raise _failed(f"the callback URL did not answer with 2xx ({outcome.error_code})")
    if not answers_challenge(outcome, token):
        raise _failed("the answer must be the challenge as text, or JSON with the challenge in `challenge`")
    return url


def answers_challenge(outcome: SendOutcome, token: str) -> bool:
    """Whether a 2xx body repeats the challenge.

    Accepted: the bare text, a JSON string, or a JSON object whose `challenge` is the text; blanks and line ends
    around it do not matter.
    """
    text = (outcome.response_body or "").strip()
    if secrets.compare_digest(text.encode(), token.encode()):
        return True
    try:
        answer = msgspec.json.decode(text, type=str | _Answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    given = answer if isinstance(answer, str) else answer.challenge
    return secrets.compare_digest(given.encode(), token.encode())


async def mark_verified(connection: Connection, subscription_id: int, url: str) -> Subscription:
    """Make the address that answered the verified one. Raises Conflict `callback_url_changed` when it is no longer
    the address that waits."""
    query = load_queries("subscriptions")["mark_verified"]
    row = await fetch_row(connection, query, {"id": subscription_id, "url": url}, Subscription)
    if row is None:
        raise Conflict(
            "callback_url_changed", "the callback URL was changed during verification; verify it again"
        )
    return row


def _signed(
    url: str, body: bytes, box: SecretBox, subscription: Subscription, sealed: Sequence[SealedSecret]
) -> OutgoingRequest:
    """Dated by the database's clock, as deliveries are."""
    webhook_id = f"msg_{secrets.token_hex(16)}"
    try:
        keys = [decode_secret(box.open(one.secret)) for one in sealed]
        timestamp = sealed[0].read_at
    except (UnreadableSecret, InvalidSecret, IndexError) as error:
        raise _failed("the subscription's secret cannot be read; rotate it") from error
    headers = {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(keys, webhook_id, timestamp, body),
        **subscription.headers,
    }
    timeout = min(subscription.timeout_seconds or VERIFY_TIMEOUT_SECONDS, VERIFY_TIMEOUT_SECONDS)
    return OutgoingRequest(url, headers, body, timeout)


def _failed(reason: str) -> InvalidInput:
    return InvalidInput("verification_failed", reason, field="callback_url", status=422)
