"""Subscriptions and endpoint health."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from hooksaga.api.answers.answer import (
    Answer,
    Count,
    ErrorCode,
    EventType,
    EventTypes,
    Filter,
    LastErrorCode,
    Page,
    RowId,
    SubscriptionId,
    TenantId,
    Time,
    described,
    one_of,
)
from hooksaga.core.cloud_event_output import DeliveryFormat
from hooksaga.core.endpoint_health import DisabledReason, HealthState
from hooksaga.core.flow import FlowStatus


class RateLimit(Answer):
    """A token bucket: it holds `count` tokens, refills at `count` per `per_seconds`, and each attempt takes one."""

    count: Annotated[Count, described("Attempts that may start per `per_seconds`.", 50)]
    per_seconds: Annotated[float, described("The period in seconds.", 1.0)]


class SubscriptionFlow(Answer):
    """Flow control of a subscription: its state, and what is in flight and waiting."""

    state: Annotated[
        str,
        one_of(FlowStatus),
        described(
            "`open`, or why no further delivery starts. `paused`: until it is resumed. `retry_after`: the endpoint "
            "answered 429 or 503 with `Retry-After`. `breaker_open`: the circuit breaker is open. `limited`: the rate "
            "limit or the limit of deliveries in flight is reached.",
            FlowStatus.OPEN.value,
        ),
    ]
    since: Annotated[
        Time | None,
        described("Time of the pause, or when the circuit breaker opened; `null` in other states.", None),
    ]
    until: Annotated[
        Time | None,
        described(
            "Time when deliveries start again, or the next probe of the circuit breaker; `null` if unknown.",
            None,
        ),
    ]
    limit: Annotated[
        Count,
        described(
            "Deliveries that may be in flight now. It adapts to the endpoint, up to `max_in_flight`; 0 if none may "
            "start.",
            10,
        ),
    ]
    in_flight: Annotated[Count, described("Deliveries whose attempt has started and is not recorded yet.", 3)]
    waiting: Annotated[
        Count,
        described("Deliveries that wait for their first attempt or a retry; 10,000 means 10,000 or more.", 0),
    ]
    oldest_waiting_at: Annotated[
        Time | None, described("Time when the first of them was or is due; `null` if none waits.", None)
    ]


class SubscriptionFacts(Answer):
    """The registration of an endpoint for event types."""

    id: Annotated[RowId, described("Id.", 7)]
    tenant_id: TenantId
    event_type: Annotated[
        EventType | None,
        described("The event type, if `event_types` is one exact type; otherwise `null`.", "order.created"),
    ]
    event_types: EventTypes
    filter: Filter
    callback_url: Annotated[
        str,
        described(
            "The endpoint: `https://`, on the public internet, at most 500 characters.",
            "https://shop.example.com/hooks",
        ),
    ]
    pending_callback_url: Annotated[
        str | None,
        described(
            "A new endpoint that replaces `callback_url` once it is verified, and receives nothing before.",
            None,
        ),
    ]
    description: Annotated[str, described("Free text.", "orders of the web shop")]
    active: Annotated[bool, described("Whether it receives deliveries. `false` stops them at once.", True)]
    verified: Annotated[
        bool,
        described("Whether `callback_url` has answered the challenge, or a key vouched for it.", True),
    ]
    verified_by_key_id: Annotated[
        RowId | None,
        described("The API key that vouched for it at creation; `null` if it answered a challenge.", None),
    ]
    verified_reason: Annotated[str | None, described("The reason that was given for that.", None)]
    eligible_since: Annotated[
        Time | None,
        described(
            "It receives the events accepted since this time; `null` while it is inactive or not verified.",
            "2026-03-01T08:00:00.000000Z",
        ),
    ]
    max_retry_limit: Annotated[
        Count | None,
        described(
            "Limit of attempts, after which a delivery becomes a dead letter. `null`: the system's default.",
            8,
        ),
    ]
    base_delay_seconds: Annotated[
        float | None,
        described(
            "The wait after the first failure; it doubles with each further failure, up to an hour. "
            "`null`: the system's default.",
            None,
        ),
    ]
    timeout_seconds: Annotated[
        float | None, described("Timeout of one attempt. `null`: the system's default.", None)
    ]
    max_in_flight: Annotated[
        Count | None, described("Limit of deliveries in flight at a time. `null`: 1,000.", None)
    ]
    rate_limit: Annotated[RateLimit | None, described("Limit of attempts per time. `null`: none.", None)]
    ordered: Annotated[
        bool,
        described("Whether the events of one `ordering_key` are delivered one at a time, in order.", False),
    ]
    max_wait_seconds: Annotated[
        float | None,
        described(
            "Deliveries that are overdue for longer become dead letters with `expired`. `null`: 3 days.",
            None,
        ),
    ]
    circuit_breaker: Annotated[
        bool, described("Whether a circuit breaker stops deliveries after 10 failures in a row.", True)
    ]
    format: Annotated[
        DeliveryFormat,
        described(
            "What a delivery carries: the payload alone, or a CloudEvent in structured or binary mode.",
            "payload",
        ),
    ]
    paused_at: Annotated[
        Time | None,
        described("Time of the pause; `null` if not paused. Events are kept and wait.", None),
    ]
    headers: Annotated[
        dict[str, str],
        described(
            "Custom headers of each delivery. Values are write-only and shown as `***`.", {"x-shop": "***"}
        ),
    ]
    created_at: Annotated[Time, described("Time of creation.", "2026-03-01T07:55:10.118000Z")]
    updated_at: Annotated[Time, described("Time of the last change.", "2026-03-01T08:00:00.000000Z")]


class HealthSummary(Answer):
    """The health of an endpoint in brief."""

    state: Annotated[
        str,
        one_of(HealthState),
        described(
            "`healthy`: its last attempt succeeded. `failing`: its last attempt failed. `disabled`: the health monitor "
            "disabled it. `unknown`: no attempt was counted yet.",
            "healthy",
        ),
    ]
    consecutive_failures: Annotated[Count, described("Failed attempts since the last success.", 0)]
    last_error_code: LastErrorCode


class ListedSubscription(SubscriptionFacts):
    """A subscription, as part of a list."""

    health: Annotated[HealthSummary, described("The health of its endpoint.")]


class Subscription(SubscriptionFacts):
    """A subscription with its flow control."""

    flow: Annotated[SubscriptionFlow, described("Its flow control now.")]


class SubscriptionWithSecret(Subscription):
    """A subscription with its new secret."""

    secret: Annotated[
        str,
        Meta(pattern="^whsec_"),
        described(
            "The signing secret. It is shown only once.",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
        ),
    ]


class Missed(Answer):
    """What a subscription missed while it was disabled by the monitor, or switched off."""

    failing_since: Annotated[
        Time,
        described("Time of the first failure, or when it was switched off.", "2026-03-09T09:00:12.000000Z"),
    ]
    since: Annotated[Time, described("Time when it was disabled.", "2026-03-14T09:00:30.000000Z")]
    dead_letters: Annotated[
        Count, described("Dead letters since `failing_since` that were not requeued.", 1204)
    ]
    events: Annotated[Count, described("Events of its types accepted since `since`.", 530)]
    at_least: Annotated[bool, described("Whether the counts are lower limits.", False)]


class ChangedSubscription(Subscription):
    """A subscription after a change."""

    missed: Annotated[
        Missed | UnsetType,
        described("What it missed while it was disabled; only in the response to enabling it again."),
    ] = UNSET


class SubscriptionList(Page[ListedSubscription]):
    """A page of subscriptions."""


class EndpointHealth(Answer):
    """The health of an endpoint."""

    subscription_id: SubscriptionId
    consecutive_failures: Annotated[Count, described("Failed attempts since the last success.", 31)]
    first_failure_at: Annotated[
        Time | None,
        described(
            "Time of the first of these failures; `null` if there is none.",
            "2026-03-12T21:14:05.520000Z",
        ),
    ]
    last_failure_at: Annotated[
        Time | None, described("Time of the last failed attempt.", "2026-03-14T09:20:44.007000Z")
    ]
    last_success_at: Annotated[
        Time | None, described("Time of the last successful attempt.", "2026-03-12T21:02:59.713000Z")
    ]
    last_error_code: Annotated[
        ErrorCode | None, described("Error code of the last failure; kept after a later success.", "http_503")
    ]
    disabled_at: Annotated[
        Time | None,
        described("Time when the health monitor disabled it; `null` if it is not disabled.", None),
    ]
    disabled_reason: Annotated[
        Annotated[str, one_of(DisabledReason)] | None,
        described("`gone`: the endpoint answered 410. `failing`: all attempts failed for days.", None),
    ]
    counted_until: Annotated[
        Time, described("Attempts that finished before this time are counted.", "2026-03-14T09:25:51.000000Z")
    ]
    will_be_disabled_at: Annotated[
        Time | None,
        described(
            "Time when it will be disabled if all attempts fail until then; `null` if it will not be.",
            "2026-03-17T21:14:05.520000Z",
        ),
    ]
