"""Verification handshake: the only way to make a subscription verified.

A signed POST carries a random challenge to the pending address; a 2xx response with this challenge and nothing else
proves that the receiver wants deliveries (decision 0069). No transaction is open meanwhile, and an address that changed
meanwhile stays unverified.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from hooksaga.adapters.database import Connection, fetch_found, fetch_rows
from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret
from hooksaga.core.errors import Conflict, HooksagaError
from hooksaga.core.outcomes import NO_PUBLIC_ADDRESS, subscriber_error_code
from hooksaga.core.product import USER_AGENT
from hooksaga.core.signing import InvalidSecret, decode_secret, sign
from hooksaga.operations.subscriptions import Subscription
from hooksaga.stages.own_headers import open_headers

VERIFY_TIMEOUT_SECONDS = 10


class VerificationFailed(HooksagaError):
    """Failed verification. The message is for the subscriber; error_code is for operators, None when the endpoint
    answered 2xx with another body."""

    def __init__(self, message: str, error_code: str | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """A sealed secret of a subscription, and the database's time of the read, in Unix seconds."""

    secret: str
    read_at: int


async def sealed_secrets(connection: Connection, subscription_id: int) -> list[SealedSecret]:
    """Return the subscription's valid secrets, the current one first."""
    params = {"id": subscription_id}
    return await fetch_rows(
        connection, load_queries("subscriptions")["current_secrets"], params, SealedSecret
    )


async def challenge(
    sender: HttpSender, box: SecretBox, subscription: Subscription, sealed: Sequence[SealedSecret]
) -> str:
    """Send a challenge to the pending address; return that address once it has answered.

    Raises VerificationFailed. Its message never repeats an answer, and is the same whether the host has no address
    or one that is refused.
    """
    url = subscription.pending_callback_url or subscription.callback_url
    token = secrets.token_urlsafe(32)
    body = json.dumps({"type": "subscription.verification", "challenge": token}).encode()
    outcome = await sender.send(_signed(url, body, box, subscription, sealed))
    if outcome.error_code is not None:
        raise VerificationFailed(_reason(outcome.error_code), outcome.error_code)
    if not answers_challenge(outcome, token):
        raise VerificationFailed(_NOT_THE_CHALLENGE)
    return url


_NOT_THE_CHALLENGE = (
    'the response body must be the challenge only, as text, or as {"challenge": "<the challenge>"}'
)


def _reason(error_code: str) -> str:
    shown = subscriber_error_code(error_code)
    if shown == NO_PUBLIC_ADDRESS:
        return f"DNS returns no public address for the host of callback_url ({shown})"
    return f"callback_url did not answer with 2xx ({shown})"


def answers_challenge(outcome: SendOutcome, token: str) -> bool:
    """Return whether a 2xx body is the challenge and nothing else.

    Accepted: the text itself, a JSON string of it, or a JSON object with it in `challenge` and no other member; blanks
    and line ends around it do not matter. A server that repeats what it gets, whole, wrapped or merged into its own
    object, always sends more than that.
    """
    text = (outcome.response_body or "").strip()
    if text == token:
        return True
    try:
        return json.loads(text) in (token, {"challenge": token})
    except (ValueError, RecursionError):
        return False


async def mark_verified(connection: Connection, subscription_id: int, url: str) -> Subscription:
    """Mark the address that answered as verified. Raises Conflict `callback_url_changed` when it is no longer the
    pending address."""
    params = {"id": subscription_id, "url": url}
    changed = Conflict(
        "callback_url_changed", "callback_url was changed during verification; verify it again"
    )
    query = load_queries("subscriptions")["mark_verified"]
    return await fetch_found(connection, query, params, Subscription, changed)


def _signed(
    url: str, body: bytes, box: SecretBox, subscription: Subscription, sealed: Sequence[SealedSecret]
) -> OutgoingRequest:
    """Build the signed request, dated by the database's clock like deliveries."""
    webhook_id = f"msg_{secrets.token_hex(16)}"
    try:
        keys = [decode_secret(box.open(one.secret)) for one in sealed]
        timestamp = sealed[0].read_at
    except (UnreadableSecret, InvalidSecret, IndexError) as error:
        raise VerificationFailed("the subscription's secret cannot be read; rotate it") from error
    try:
        own = open_headers(box, subscription.headers)
    except (UnreadableSecret, ValueError) as error:
        raise VerificationFailed("the subscription's headers cannot be read; set them again") from error
    headers = {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(keys, webhook_id, timestamp, body),
        **own,
    }
    timeout = min(subscription.timeout_seconds or VERIFY_TIMEOUT_SECONDS, VERIFY_TIMEOUT_SECONDS)
    return OutgoingRequest(url, headers, body, timeout)
