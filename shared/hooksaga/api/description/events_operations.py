"""Operations on events and their attempts."""

from hooksaga.api.answers import attempts, events, routing
from hooksaga.api.description.operation import Given, Operation
from hooksaga.api.routes.attempts import FILTERS

OPERATIONS = (
    Operation(
        "POST /v1/events",
        "Accept one event",
        ("events:write",),
        {
            "202": Given(events.AcceptedEvent, "The event is stored."),
            "200": Given(
                events.AcceptedEvent,
                "The key was used before for the same content; repeats the first response, with `duplicate`.",
            ),
        },
        words="After the response the event is stored and will be delivered. With an `Idempotency-Key` the "
        "call is safe to repeat: the same content gets the first response again, other content is rejected. "
        "CloudEvents in binary mode are accepted too.",
        problems="409",
        body="NewEvent",
        parameters=("idempotency_key", "traceparent"),
        media_types=("application/json", "application/cloudevents+json"),
    ),
    Operation(
        "POST /v1/events/batch",
        "Accept up to 500 events",
        ("events:write",),
        {"200": Given(events.BatchAnswer)},
        words="All in one transaction. A rejected item gets an error in its place and does not affect the others.",
        body="NewEvents",
        parameters=("traceparent",),
    ),
    Operation(
        "POST /v1/subscriptions/{id}/test",
        "Send a test event to one subscription",
        ("events:write",),
        {"202": Given(events.AcceptedEvent, "The test event is stored.")},
        words="No other subscription receives it, and the receiver gets it with the header `hooksaga-test: true`.",
        problems="409",
        body="TestEvent",
        body_is_optional=True,
        parameters=("traceparent",),
    ),
    Operation(
        "GET /v1/events",
        "Find events, newest first",
        ("admin",),
        {"200": Given(events.FoundEventList)},
        words="Filters can be combined. One call scans at most 20,000 events: if few match, a page may be short or "
        "empty and still have a `next`. With `subscription_id` or `error_code` the times are those at which an attempt "
        "ended. With `search` there is one page, the best match first.",
        parameters=(
            "search",
            "tenant_id",
            "event_type",
            "idempotency_key_filter",
            "attribute",
            "event_status",
            "subscription_id",
            "error_code",
            "accepted_after",
            "accepted_before",
            "limit",
            "attempts_cursor",
            "format",
        ),
        export=True,
    ),
    Operation(
        "GET /v1/events/{id}",
        "Show an event with its sagas, attempts and routing",
        ("events:write", "admin"),
        {"200": Given(events.Event)},
        words="Includes the delivery to each subscription with all its attempts.",
    ),
    Operation(
        "GET /v1/events/{id}/routing",
        "Show which subscriptions an event matched, and why others did not match",
        ("events:write", "admin"),
        {"200": Given(routing.EventRouting)},
        words="Uses the state at the time of routing, even if it has changed since. A page may be short: only "
        "`next: null` marks the end.",
        parameters=("limit", "routing_cursor"),
    ),
    Operation(
        "GET /v1/attempts",
        "List finished attempts, newest first",
        ("admin",),
        {"200": Given(attempts.LoggedAttemptList)},
        words="Filters can be combined. One call scans at most 10,000 attempts: if few match, a "
        "page may be short or empty and still have a `next`.",
        parameters=(
            *FILTERS,
            "finished_after",
            "finished_before",
            "limit",
            "attempts_cursor",
            "format",
        ),
        export=True,
    ),
    Operation(
        "GET /v1/attempts/follow",
        "Follow attempts as they finish",
        ("admin",),
        {"200": Given(attempts.FollowedAttempts)},
        words="Without a cursor it starts now. Oldest first. Pass `next` each time, at once while `more` is "
        "true. No attempt is omitted, but one may be repeated within a minute: drop repeats by `id`.",
        parameters=(*FILTERS, "limit", "follow_cursor"),
    ),
    Operation(
        "GET /v1/attempts/{id}",
        "Show an attempt with its request headers and response",
        ("admin",),
        {"200": Given(attempts.WholeAttempt)},
        words="In any state. Secret values are `***`.",
    ),
)
