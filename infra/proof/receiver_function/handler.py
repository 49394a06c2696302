"""The receiver of the proof, a Lambda function with a URL: verifies each request's signature and counts it in a table.

It uses nothing of hooksaga, so that a mistake there cannot hide itself here. Items of the table, by `id`:

    secret <path>         `secret`, written by the proof before the endpoint is verified
    bad <path>            `requests` whose signature was refused
    got <path> <event>    `requests` with a good signature, `first_at` in Unix milliseconds, and their `agents`
"""

import base64
import hashlib
import hmac
import json
import os
import time
from typing import Any

import boto3

TOLERANCE_SECONDS = 300
FAILING = "/fails-first"
"""Begins the path of an endpoint that answers 503 to the first attempt of some events."""

ONE_IN = 10

_secrets: dict[str, str] = {}
_tables: list[Any] = []


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    if event["requestContext"]["http"]["method"] != "POST":
        return _answer(200, {"now": _now()})
    path, headers = event["rawPath"], event["headers"]
    body = _body_of(event)
    secret = _secret_of(path)
    if secret is None:
        return _answer(404, {"error": "no secret is known for this path"})
    if not verifies(secret, headers, body, time.time()):
        _count(f"bad {path}", headers)
        return _answer(401, {"error": "the signature is wrong"})
    challenge = challenge_in(body)
    if challenge is not None:
        return _answer(200, {"challenge": challenge})
    event_id = headers["webhook-id"]
    times = _count(f"got {path} {event_id}", headers)
    return _answer(503 if times == 1 and fails_first(path, event_id) else 200, {})


def fails_first(path: str, event_id: str) -> bool:
    """Return whether the first attempt of the event is answered with 503 at this path."""
    return path.startswith(FAILING) and hashlib.sha256(event_id.encode()).digest()[0] % ONE_IN == 0


def verifies(secret: str, headers: dict[str, str], body: bytes, now: float) -> bool:
    """Return whether one of the signatures is valid by https://www.standardwebhooks.com, and recent."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    event_id, timestamp, signatures = (headers.get(name, "") for name in names)
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = hmac.new(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    wanted = "v1," + base64.b64encode(signed).decode()
    return any(hmac.compare_digest(wanted.encode(), one.encode()) for one in signatures.split())


def challenge_in(body: bytes) -> str | None:
    """Return the challenge of the request that verifies an endpoint; None for any other body."""
    try:
        content = json.loads(body)
    except ValueError:
        return None
    if isinstance(content, dict) and content.get("type") == "subscription.verification":
        return str(content["challenge"])
    return None


def _body_of(event: dict[str, Any]) -> bytes:
    text = event.get("body") or ""
    return base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()


def _secret_of(path: str) -> str | None:
    if path not in _secrets:
        item = _table().get_item(Key={"id": f"secret {path}"}, ConsistentRead=True).get("Item")
        if item is None:
            return None
        _secrets[path] = item["secret"]
    return _secrets[path]


def _count(item: str, headers: dict[str, str]) -> int:
    """Add a request in one atomic write, and return how many there were with it."""
    done = _table().update_item(
        Key={"id": item},
        UpdateExpression="SET first_at = if_not_exists(first_at, :now) ADD requests :one, agents :agent",
        ExpressionAttributeValues={
            ":now": _now(),
            ":one": 1,
            ":agent": {headers.get("user-agent", "none")},
        },
        ReturnValues="UPDATED_NEW",
    )
    return int(done["Attributes"]["requests"])


def _table() -> Any:
    if not _tables:
        _tables.append(boto3.resource("dynamodb").Table(os.environ["TABLE"]))
    return _tables[0]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _answer(status: int, content: dict[str, Any]) -> dict[str, Any]:
    print(status)  # noqa: T201 - the log of the function
    return {
        "statusCode": status,
        "headers": {"content-type": "application/json"},
        "body": json.dumps(content),
    }
