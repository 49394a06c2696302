"""Operations on subscriptions, and the link into the portal."""

from hooksaga.api.answers import attempts, filters, portal_links, subscriptions
from hooksaga.api.description.operation import Given, Operation
from hooksaga.core.filter_input import FilterToTest
from hooksaga.core.models import NewSubscription, Resumption, SecretRotation, SubscriptionChange
from hooksaga.core.portal_links import NewPortalLink

OPERATIONS = (
    Operation(
        "POST /v1/subscriptions",
        "Create a subscription; its secret is shown only once",
        ("subscriptions:write",),
        {"201": Given(subscriptions.SubscriptionWithSecret)},
        words="It receives no events until its `callback_url` is verified. A key with the scope "
        "`subscriptions:verify` can vouch for it with `verified`.",
        body=NewSubscription,
    ),
    Operation(
        "GET /v1/subscriptions",
        "List subscriptions, newest first",
        ("subscriptions:write",),
        {"200": Given(subscriptions.SubscriptionList)},
        words="Deleted subscriptions are omitted.",
        parameters=("tenant_id", "event_type", "limit", "cursor", "format"),
        export=True,
    ),
    Operation(
        "GET /v1/subscriptions/{id}",
        "Show a subscription",
        ("subscriptions:write",),
        {"200": Given(subscriptions.Subscription)},
    ),
    Operation(
        "PATCH /v1/subscriptions/{id}",
        "Change a subscription",
        ("subscriptions:write",),
        {"200": Given(subscriptions.ChangedSubscription)},
        words="Omitted fields keep their values. A new `callback_url` waits in "
        "`pending_callback_url` until it is verified; until then deliveries use the old one. "
        "If this enables a disabled subscription, the response shows what it `missed`.",
        body=SubscriptionChange,
    ),
    Operation(
        "DELETE /v1/subscriptions/{id}",
        "Delete a subscription",
        ("subscriptions:write",),
        {"204": Given(None)},
        words="It receives no more events and is no longer listed; its deliveries stay on record.",
    ),
    Operation(
        "POST /v1/subscriptions/{id}/verify",
        "Send the challenge to the callback URL",
        ("subscriptions:write",),
        {"200": Given(subscriptions.Subscription)},
        words="The endpoint must answer a signed POST with the challenge in its body, and nothing else. "
        "A verified URL is not challenged again.",
        problems="409 422",
    ),
    Operation(
        "POST /v1/subscriptions/{id}/pause",
        "Pause a subscription",
        ("subscriptions:write",),
        {"200": Given(subscriptions.Subscription)},
        words="No further attempt starts; attempts in flight continue. Events are still routed to it, and "
        "wait. Pausing a paused subscription changes nothing.",
    ),
    Operation(
        "POST /v1/subscriptions/{id}/resume",
        "Resume a paused subscription",
        ("subscriptions:write",),
        {"200": Given(subscriptions.Subscription)},
        words="Waiting deliveries start within the limits of the subscription, or become dead letters with `discarded` "
        "if `backlog` is `discard`. Resuming a subscription that is not paused changes nothing.",
        body=Resumption,
        body_is_optional=True,
    ),
    Operation(
        "POST /v1/subscriptions/{id}/rotate-secret",
        "Create a new secret; both sign until the old one expires",
        ("subscriptions:write",),
        {"200": Given(subscriptions.SubscriptionWithSecret)},
        problems="409",
        body=SecretRotation,
        body_is_optional=True,
    ),
    Operation(
        "POST /v1/subscriptions/{id}/test-filter",
        "Compare recent events with a filter",
        ("subscriptions:write", "admin"),
        {"200": Given(filters.FilterTest)},
        words="Shows which of the newest events of its event types the filter of the subscription, or another one, "
        "matches, and the first condition that the others do not meet. Nothing is sent or changed. On a system with "
        "many tenants it may find fewer events than there are.",
        body=FilterToTest,
        body_is_optional=True,
    ),
    Operation(
        "GET /v1/subscriptions/{id}/health",
        "Show the health of an endpoint",
        ("subscriptions:write",),
        {"200": Given(subscriptions.EndpointHealth)},
        words="The failures since the last success, up to a minute late. The subscription of an endpoint "
        "that answers 410, or fails for days, is disabled.",
    ),
    Operation(
        "POST /v1/portal-links",
        "Create a link to one tenant's pages",
        ("subscriptions:write",),
        {"201": Given(portal_links.PortalLink)},
        words="For your own signed-in users: create a new link each time. Its pages have the rights of this key, "
        "for this tenant only, until the key is revoked.",
        problems="409",
        body=NewPortalLink,
        body_is_optional=True,
    ),
    Operation(
        "GET /v1/subscriptions/{id}/stats",
        "Show statistics of a subscription",
        ("subscriptions:write", "admin"),
        {"200": Given(attempts.SubscriptionStats)},
        words="Counts at most the newest 10,000 attempts of the window.",
        parameters=("window",),
    ),
)
