"""Answers about subscriptions: who gets which events, how the endpoint does, and the link into the portal."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from hooksaga.api.answers.answer import (
    Answer,
    Count,
    ErrorCode,
    EventType,
    Page,
    RowId,
    SubscriptionId,
    TenantId,
    Time,
    one_of,
    said,
)
from hooksaga.core.endpoint_health import DisabledReason


class Subscription(Answer):
    """Who gets which events, and where."""

    id: Annotated[RowId, said("The number that names it.", 7)]
    tenant_id: TenantId
    event_type: Annotated[EventType, said("Which events it gets.")]
    callback_url: Annotated[
        str,
        said(
            "Where deliveries are POSTed: `https://`, on the public internet, at most 500 characters.",
            "https://shop.example.com/hooks",
        ),
    ]
    pending_callback_url: Annotated[
        str | None,
        said(
            "A new address that gets nothing until it is verified, and then takes the old one's place.", None
        ),
    ]
    description: Annotated[str, said("A note for people.", "orders of the web shop")]
    active: Annotated[bool, said("Whether it takes deliveries. `false` stops them at once.", True)]
    verified: Annotated[bool, said("Whether `callback_url` has answered the challenge.", True)]
    eligible_since: Annotated[
        Time | None,
        said(
            "Events accepted since then are delivered to it; `null` while it is inactive or not verified.",
            "2026-03-01T08:00:00.000000Z",
        ),
    ]
    max_retry_limit: Annotated[
        Count | None,
        said(
            "Attempts in all, before a delivery becomes a dead letter. `null`: the system's default.",
            8,
        ),
    ]
    base_delay_seconds: Annotated[
        float | None,
        said(
            "The wait after the first failure; it doubles with each further one, up to an hour. "
            "`null`: the system's default.",
            None,
        ),
    ]
    timeout_seconds: Annotated[
        float | None, said("How long one attempt may take. `null`: the system's default.", None)
    ]
    headers: Annotated[
        dict[str, str],
        said(
            "Added to each delivery. Their values are write-only: `***` stands for each.", {"x-shop": "***"}
        ),
    ]
    created_at: Annotated[Time, said("When it was stored.", "2026-03-01T07:55:10.118000Z")]
    updated_at: Annotated[Time, said("When it was last changed.", "2026-03-01T08:00:00.000000Z")]


class SubscriptionWithSecret(Subscription):
    """A subscription with its new secret."""

    secret: Annotated[
        str,
        Meta(pattern="^whsec_"),
        said(
            "Signs the deliveries. Shown this once.",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
        ),
    ]


class Missed(Answer):
    """What a subscription missed while the health monitor had it switched off."""

    failing_since: Annotated[Time, said("When its failures began.", "2026-03-09T09:00:12.000000Z")]
    since: Annotated[Time, said("When it was switched off.", "2026-03-14T09:00:30.000000Z")]
    dead_letters: Annotated[
        Count, said("Deliveries that died since `failing_since` and were not requeued.", 1204)
    ]
    events: Annotated[Count, said("Events of its type that were accepted since `since`.", 530)]
    at_least: Annotated[bool, said("Whether there may be more of both than was looked at.", False)]


class ChangedSubscription(Subscription):
    """A subscription after a change."""

    missed: Annotated[
        Missed | UnsetType,
        said("What it missed while it was switched off; only in the answer that switches it on again."),
    ] = UNSET


class SubscriptionList(Page[Subscription]):
    """A page of subscriptions."""


class EndpointHealth(Answer):
    """How an endpoint does, as far as its attempts are counted."""

    subscription_id: SubscriptionId
    consecutive_failures: Annotated[Count, said("Failed attempts since the last success.", 31)]
    first_failure_at: Annotated[
        Time | None,
        said(
            "When the first of these failures ended; `null` where there is none.",
            "2026-03-12T21:14:05.520000Z",
        ),
    ]
    last_failure_at: Annotated[
        Time | None, said("When an attempt last failed.", "2026-03-14T09:20:44.007000Z")
    ]
    last_success_at: Annotated[
        Time | None, said("When an attempt last succeeded.", "2026-03-12T21:02:59.713000Z")
    ]
    last_error_code: Annotated[
        ErrorCode | None, said("The word of the last failure; kept after a later success.", "http_503")
    ]
    disabled_at: Annotated[
        Time | None, said("When the health monitor switched it off; `null` while it did not.", None)
    ]
    disabled_reason: Annotated[
        Annotated[str, one_of(DisabledReason)] | None,
        said("`gone`: it answered 410. `failing`: it only failed for days.", None),
    ]
    counted_until: Annotated[
        Time, said("Attempts that finished until then are counted.", "2026-03-14T09:25:51.000000Z")
    ]
    will_be_disabled_at: Annotated[
        Time | None,
        said(
            "When it is switched off if it only fails until then; `null` where it will not be.",
            "2026-03-17T21:14:05.520000Z",
        ),
    ]


class PortalLink(Answer):
    """A link that opens one tenant's own pages."""

    url: Annotated[
        str,
        Meta(pattern="^https?://"),
        said(
            "To be opened in a browser, or in a frame of `embed_origin`. Whoever has it gets in. Begins with "
            "HOOKSAGA_PUBLIC_URL.",
            "https://hooks.example.com/portal/enter?token=gAAAAA",
        ),
    ]
    tenant_id: Annotated[TenantId, said("Whose pages it opens.", "acme")]
    expires_at: Annotated[
        Time,
        said(
            "When it opens nothing any more. Pages that were opened before go on for an hour.",
            "2026-03-14T09:36:53.000000Z",
        ),
    ]
