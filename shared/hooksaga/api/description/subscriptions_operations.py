"""Operations on subscriptions, and the link into the portal."""

from hooksaga.api.answers import attempts, subscriptions
from hooksaga.api.description.operation import BODY, Given, Operation
from hooksaga.core.models import NewSubscription, SecretRotation, SubscriptionChange
from hooksaga.core.portal_links import NewPortalLink

OPERATIONS = (
    Operation(
        "post",
        "/v1/subscriptions",
        "Create a subscription; its secret is shown this once",
        ("subscriptions:write",),
        {"201": Given(subscriptions.SubscriptionWithSecret)},
        words="It gets nothing until its address is verified.",
        problems=BODY,
        body=NewSubscription,
    ),
    Operation(
        "get",
        "/v1/subscriptions",
        "List subscriptions, newest first",
        ("subscriptions:write",),
        {"200": Given(subscriptions.SubscriptionList)},
        words="Those that were deleted are not listed.",
        problems="422",
        parameters=("event_type", "limit", "cursor"),
    ),
    Operation(
        "get",
        "/v1/subscriptions/{id}",
        "Show a subscription",
        ("subscriptions:write",),
        {"200": Given(subscriptions.Subscription)},
        problems="404",
        parameters=("id",),
    ),
    Operation(
        "patch",
        "/v1/subscriptions/{id}",
        "Change a subscription",
        ("subscriptions:write",),
        {"200": Given(subscriptions.ChangedSubscription)},
        words="Fields that are left out stay as they are. A new `callback_url` waits in "
        "`pending_callback_url` until it is verified; deliveries go on to the old one meanwhile. "
        "Switching on one that the health monitor switched off also answers what it `missed`.",
        problems=f"{BODY} 404",
        body=SubscriptionChange,
        parameters=("id",),
    ),
    Operation(
        "delete",
        "/v1/subscriptions/{id}",
        "Deactivate a subscription for good",
        ("subscriptions:write",),
        {"204": Given(None)},
        words="It is hidden from lists; what was delivered stays on record.",
        problems="404",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/subscriptions/{id}/verify",
        "Send the challenge to the callback URL",
        ("subscriptions:write",),
        {"200": Given(subscriptions.Subscription)},
        words="The endpoint has to answer a signed POST with the challenge that it carries, and nothing else. "
        "An address that is verified already is not asked again.",
        problems="404 409 422",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/subscriptions/{id}/rotate-secret",
        "Make a new secret; both sign until the old one expires",
        ("subscriptions:write",),
        {"200": Given(subscriptions.SubscriptionWithSecret)},
        problems=f"{BODY} 404 409",
        body=SecretRotation,
        body_is_optional=True,
        parameters=("id",),
    ),
    Operation(
        "get",
        "/v1/subscriptions/{id}/health",
        "How a subscription's endpoint does",
        ("subscriptions:write",),
        {"200": Given(subscriptions.EndpointHealth)},
        words="The failures since the last success, as far as they are counted, a minute behind. An endpoint "
        "that answers 410, or only fails for days, has its subscription switched off.",
        problems="404",
        parameters=("id",),
    ),
    Operation(
        "post",
        "/v1/portal-links",
        "Make a link to one tenant's own pages",
        ("subscriptions:write",),
        {"201": Given(subscriptions.PortalLink)},
        words="For your own signed-in users: make a new one each time. Its pages can do what this key can, "
        "for this tenant only, and end when the key is revoked.",
        problems=f"{BODY} 409",
        body=NewPortalLink,
        body_is_optional=True,
    ),
    Operation(
        "get",
        "/v1/subscriptions/{id}/stats",
        "How a subscription is doing",
        ("subscriptions:write", "admin"),
        {"200": Given(attempts.SubscriptionStats)},
        words="Counted over the newest 10,000 attempts of the window.",
        problems="404 422",
        parameters=("id", "window"),
    ),
)
