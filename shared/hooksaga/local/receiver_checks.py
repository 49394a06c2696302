"""Checks that a careful subscriber makes before it accepts a request."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError

from hooksaga.local.receiver_journal import Signature

ANY_PATH = ""
SIGNED_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
REMEMBERED = 100_000


class SignatureChecks:
    """The secrets by path, and one for every path."""

    def __init__(self, secret: str | None = None) -> None:
        self._webhooks: dict[str, list[Webhook]] = {}
        if secret is not None:
            self.add(ANY_PATH, secret)

    def add(self, path: str, secret: str) -> None:
        """Raises ValueError for an invalid secret."""
        try:
            webhook = Webhook(secret)
        except EmptyWebhookSecretError as error:
            raise ValueError(str(error)) from error
        self._webhooks.setdefault(path, []).append(webhook)

    def check(self, path: str, headers: Mapping[str, str], body: bytes) -> Signature:
        if not self._webhooks:
            return Signature.UNCHECKED
        webhooks = [*self._webhooks.get(path, ()), *self._webhooks.get(ANY_PATH, ())]
        if not webhooks:
            return Signature.UNCHECKED
        signed = {name: headers.get(name, "") for name in SIGNED_HEADERS}
        return Signature.GOOD if any(_verifies(one, body, signed) for one in webhooks) else Signature.BAD


class BoundedCounts:
    """Counts per key; the least recently used keys are dropped first."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._size = size

    def count(self, key: str) -> int:
        """Return how often this key was counted, including now."""
        self._counts[key] = self._counts.pop(key, 0) + 1
        if len(self._counts) > self._size:
            self._counts.popitem(last=False)
        return self._counts[key]


def challenge_in(body: bytes) -> str | None:
    """Return the challenge of a `subscription.verification` request; None for any other body."""
    if b"subscription.verification" not in body:  # avoids parsing every event
        return None
    try:
        request = msgspec.json.decode(body, type=_Verification)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return request.challenge if request.type == "subscription.verification" else None


class _Verification(msgspec.Struct):
    """The relevant members only: Python's parser rejects or changes some payloads."""

    type: str
    challenge: str


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; empty for anything else."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _verifies(webhook: Webhook, body: bytes, headers: dict[str, str]) -> bool:
    try:
        webhook.verify(body, headers, json_parse=False)
    except (WebhookVerificationError, ValueError):  # ValueError: undecodable bytes or signatures
        return False
    return True
