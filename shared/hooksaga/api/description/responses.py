"""Shared responses of the OpenAPI document, and links to operations that take an id from a response."""

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

_WAIT: Json = {
    "Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}, "description": "Seconds to wait."}
}
_SCHEME: Json = {
    "WWW-Authenticate": {
        "required": True,
        "schema": {"const": "Bearer"},
        "description": "The authentication scheme.",
    }
}
_PROBLEM: Json = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}

RESPONSES: Json = {
    "Problem": {"description": "The request failed", "content": _PROBLEM},
    "Unauthorized": {
        "description": "The API key is missing or invalid",
        "headers": _SCHEME,
        "content": _PROBLEM,
    },
    "Unavailable": {"description": "Temporarily unavailable", "headers": _WAIT, "content": _PROBLEM},
}

_OF_STATUS = {"401": "Unauthorized", "503": "Unavailable"}


def problem_responses(statuses: Iterable[str]) -> Json:
    """Return references to the responses with these statuses."""
    return {
        status: {"$ref": f"#/components/responses/{_OF_STATUS.get(status, 'Problem')}"} for status in statuses
    }


_OF_EVENT = ("get_events_one", "get_events_one_routing")
_OF_SUBSCRIPTION = (
    "get_subscriptions_one",
    "patch_subscriptions_one",
    "delete_subscriptions_one",
    "post_subscriptions_one_verify",
    "post_subscriptions_one_pause",
    "post_subscriptions_one_resume",
    "post_subscriptions_one_rotate_secret",
    "get_subscriptions_one_health",
    "get_subscriptions_one_stats",
    "post_subscriptions_one_retry_now",
)
_OF_NEW_SAGA = ("post_sagas_one_cancel", "post_sagas_one_retry_now")
_OF_BULK_OPERATION = (
    "get_bulk_operations_one",
    "patch_bulk_operations_one",
    *(f"post_bulk_operations_one_{verb}" for verb in ("pause", "resume", "stop")),
)
_LINKS: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("post_events", "202"): (_OF_EVENT, "/id"),
    ("post_events", "200"): (_OF_EVENT, "/id"),
    ("post_subscriptions", "201"): (_OF_SUBSCRIPTION, "/id"),
    ("post_dead_letters_one_requeue", "201"): (_OF_NEW_SAGA, "/saga_id"),
    ("post_sagas_one_resend", "201"): (_OF_NEW_SAGA, "/saga_id"),
    ("post_bulk_operations", "201"): (_OF_BULK_OPERATION, "/id"),
}
"""Maps an operation and a status to the operations that take the id at this place of the response. Lists have no
links: they may be empty."""


def links_of(operation_id: str, status: str) -> Json:
    """Return `{"links": …}` for a response with links, otherwise {}."""
    followers, place = _LINKS.get((operation_id, status), ((), ""))
    links = {
        name: {"operationId": name, "parameters": {"id": f"$response.body#{place}"}} for name in followers
    }
    return {"links": links} if links else {}
