"""Subscriptions: configuration only, without side effects."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from hooksaga.adapters.database import (
    Connection,
    fetch_found,
    fetch_one,
    fetch_rows,
    fetch_value,
    refusals,
    transaction,
)
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.callback_url import InvalidCallbackUrl, parse_callback_url
from hooksaga.core.cloud_event_output import DeliveryFormat
from hooksaga.core.errors import Conflict, InvalidInput, NotFound
from hooksaga.core.filters import compile_filter
from hooksaga.core.models import NewSubscription, SubscriptionChange
from hooksaga.stages.own_headers import StoredHeaders, change_headers, seal_headers

MAX_SECRETS = 10
"""Maximum of secrets that sign for one subscription at a time, including the new one."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A row of subscriptions. event_type: the type, if it is one exact type. Null limits mean the system's defaults
    at the time of each attempt; headers have the stored form of own_headers. filter: JSON text."""

    id: int
    tenant_id: str
    event_type: str | None
    event_types: list[str]
    callback_url: str
    pending_callback_url: str | None
    description: str
    active: bool
    verified: bool
    eligible_since: datetime | None
    max_retry_limit: int | None
    base_delay_seconds: float | None
    timeout_seconds: float | None
    max_in_flight: int | None
    rate_limit_count: int | None
    rate_limit_seconds: float | None
    ordered: bool
    max_wait_seconds: float | None
    circuit_breaker: bool
    format: DeliveryFormat
    paused_at: datetime | None
    headers: StoredHeaders
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    verified_by_key_id: int | None = None
    verified_reason: str | None = None
    filter: str | None = None

    @property
    def parsed_filter(self) -> dict[str, Any] | None:
        return None if self.filter is None else json.loads(self.filter)


def normal_callback_url(url: str, policy: AddressPolicy) -> str:
    """Return the normalized URL that is stored and called. Raises InvalidInput `invalid_callback_url` with the rule."""
    try:
        return parse_callback_url(url, policy).url
    except InvalidCallbackUrl as error:
        raise InvalidInput("invalid_callback_url", str(error), field="callback_url", status=422) from None


async def create_subscription(
    connection: Connection,
    new: NewSubscription,
    *,
    tenant_id: str,
    callback_url: str,
    sealed_secret: str,
    box: SecretBox,
    key_id: int | None = None,
) -> Subscription:
    """Store the subscription and its sealed secret, both or neither. box seals its headers. It is unverified unless the
    caller, whose key is key_id, vouches for its address."""
    params = {
        **_filter_columns(new.filter),
        **_columns(new.model_dump(exclude={"headers", "tenant_id", "callback_url", "secret", "filter"})),
        "tenant_id": tenant_id,
        "callback_url": callback_url,
        "headers": json.dumps(seal_headers(box, new.headers)),
        "secret": sealed_secret,
        "verified_by_key_id": key_id if new.verified else None,
        "verified_reason": new.verified_reason if new.verified else None,
    }
    async with refusals():
        return await fetch_one(
            connection, load_queries("subscriptions")["create_subscription"], params, Subscription
        )


async def list_subscriptions(
    connection: Connection,
    *,
    tenant_id: str | None,
    event_type: str | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[Subscription]:
    """List subscriptions with an id below before_id, newest first. tenant_id None: of all tenants. event_type: only
    those that receive it."""
    params = {"tenant_id": tenant_id, "event_type": event_type, "before_id": before_id, "limit": limit}
    return await fetch_rows(
        connection, load_queries("subscriptions")["list_subscriptions"], params, Subscription
    )


async def show_subscription(
    connection: Connection, subscription_id: int, *, tenant_id: str | None
) -> Subscription:
    """Return one subscription. Raises NotFound `subscription_not_found`, also for another tenant's."""
    return await _one(connection, "show_subscription", subscription_id, tenant_id)


async def _one(
    connection: Connection, query: str, subscription_id: int, tenant_id: str | None
) -> Subscription:
    params = {"id": subscription_id, "tenant_id": tenant_id}
    missing = NotFound("subscription_not_found", f"there is no subscription {subscription_id}")
    return await fetch_found(connection, load_queries("subscriptions")[query], params, Subscription, missing)


async def change_subscription(
    connection: Connection,
    subscription_id: int,
    change: SubscriptionChange,
    *,
    tenant_id: str | None,
    policy: AddressPolicy,
    box: SecretBox,
) -> Subscription:
    """Apply the given fields. A new callback_url of a verified subscription waits until it is verified itself. Only the
    given headers change, and box seals them.

    Raises NotFound `subscription_not_found`, InvalidInput `invalid_callback_url` or, for headers, `invalid_field`.
    """
    fields = _columns(change.model_dump(exclude_unset=True))
    if "callback_url" in fields:
        fields["callback_url"] = normal_callback_url(fields["callback_url"], policy)
    async with transaction(connection):
        present = await _one(connection, "lock_subscription", subscription_id, tenant_id)
        if "headers" in fields:
            fields["headers"] = change_headers(box, present.headers, fields["headers"])
        params = {**asdict(present), **_with_pending_url(present, fields)}
        params["headers"] = json.dumps(params["headers"])
        params |= _filter_columns(change.filter if "filter" in fields else present.parsed_filter)
        return await fetch_one(
            connection, load_queries("subscriptions")["update_subscription"], params, Subscription
        )


def _columns(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields as columns: a rate limit has two, and one event type is a list of one."""
    event_type, event_types = fields.pop("event_type", None), fields.pop("event_types", None)
    if event_type is not None:
        event_types = [event_type]
    fields = fields if event_types is None else {**fields, "event_types": event_types}
    if "rate_limit" not in fields:
        return fields
    limit = fields.pop("rate_limit") or {"count": None, "per_seconds": None}
    return {**fields, "rate_limit_count": limit["count"], "rate_limit_seconds": limit["per_seconds"]}


def _filter_columns(given: dict[str, Any] | None) -> dict[str, Any]:
    """Return the filter as it was given and compiled."""
    if given is None:
        return {"filter": None, "filter_path": None}
    return {"filter": json.dumps(given, ensure_ascii=False), "filter_path": compile_filter(given)}


def _with_pending_url(present: Subscription, fields: dict[str, Any]) -> dict[str, Any]:
    wanted = fields.get("callback_url", present.callback_url)
    if "callback_url" not in fields or not present.verified:
        return fields
    waiting = None if wanted == present.callback_url else wanted
    return {**fields, "callback_url": present.callback_url, "pending_callback_url": waiting}


async def deactivate_subscription(
    connection: Connection, subscription_id: int, *, tenant_id: str | None
) -> None:
    """Deactivate a subscription permanently and hide it from lists; its history stays. A repeat changes nothing.

    Raises NotFound `subscription_not_found`.
    """
    params = {"id": subscription_id, "tenant_id": tenant_id}
    query = load_queries("subscriptions")["deactivate_subscription"]
    if await fetch_value(connection, query, params) is None:
        raise NotFound("subscription_not_found", f"there is no subscription {subscription_id}")


async def rotate_secret(
    connection: Connection,
    subscription_id: int,
    *,
    tenant_id: str | None,
    sealed_secret: str,
    overlap_seconds: float,
) -> Subscription:
    """Make a new secret the current one. The old one signs beside it for overlap_seconds; 0 ends it, and all earlier
    secrets, at once.

    Raises NotFound `subscription_not_found`, or Conflict `too_many_secrets` when more than MAX_SECRETS would sign:
    each makes the signature header longer, and receivers limit its size.
    """
    queries = load_queries("subscriptions")
    params = {"id": subscription_id, "overlap_seconds": overlap_seconds, "secret": sealed_secret}
    async with transaction(connection):
        present = await _one(connection, "lock_subscription", subscription_id, tenant_id)
        await connection.execute(queries["retire_secrets"], params)
        await connection.execute(queries["delete_expired_secrets"], params)
        left = await fetch_value(connection, queries["count_secrets"], params)
        if left >= MAX_SECRETS:
            raise Conflict(
                "too_many_secrets",
                f"{left} secrets are valid; rotate with overlap_seconds 0, or wait until one expires",
            )
        await connection.execute(queries["add_secret"], params)
    return present
