"""Operations on events and their attempts."""

from hooksaga.api.answers import attempts, events, routing
from hooksaga.api.description.operation import BODY, Given, Operation

_ATTEMPT_FILTERS = ("subscription_id", "event_type", "status_class", "error_code", "outcome")

OPERATIONS = (
    Operation(
        "post",
        "/v1/events",
        "Accept one event",
        ("events:write",),
        {
            "202": Given(events.AcceptedEvent, "The event is stored."),
            "200": Given(
                events.AcceptedEvent,
                "The key was used before for the same content: the first answer, with `duplicate`.",
            ),
        },
        words="Once it is answered, the event is stored and will be delivered. With an `Idempotency-Key` the "
        "call is safe to repeat: the same bytes get the first answer again, other content is refused. "
        "CloudEvents in binary mode are taken as well.",
        problems=f"{BODY} 409",
        body="NewEvent",
        parameters=("idempotency_key", "traceparent"),
        media_types=("application/json", "application/cloudevents+json"),
    ),
    Operation(
        "post",
        "/v1/events/batch",
        "Accept up to 500 events, with an answer each",
        ("events:write",),
        {"200": Given(events.BatchAnswer)},
        words="All in one transaction. An item that is refused is answered in its place and rejects no other.",
        problems=BODY,
        body="NewEvents",
        parameters=("traceparent",),
    ),
    Operation(
        "get",
        "/v1/events/{id}",
        "One event, its sagas, their attempts, and how it was routed",
        ("events:write", "admin"),
        {"200": Given(events.Event)},
        words="Follows the event to every subscription and every attempt.",
        problems="404",
        parameters=("event_id",),
    ),
    Operation(
        "get",
        "/v1/events/{id}/routing",
        "Which subscriptions the event was routed to, and why not to the others",
        ("events:write", "admin"),
        {"200": Given(routing.EventRouting)},
        words="With the facts of the moment of routing, whatever has changed since. A page may be short: only "
        "`next: null` is the end.",
        problems="404 422",
        parameters=("event_id", "limit", "routing_cursor"),
    ),
    Operation(
        "get",
        "/v1/attempts",
        "List finished attempts, newest first",
        ("admin",),
        {"200": Given(attempts.LoggedAttemptList)},
        words="By any of the filters. One call passes 10,000 attempts at the most: where little matches, a "
        "page may be short, or empty, and still have a `next`.",
        problems="422",
        parameters=(*_ATTEMPT_FILTERS, "finished_after", "finished_before", "limit", "attempts_cursor"),
    ),
    Operation(
        "get",
        "/v1/attempts/follow",
        "Attempts as they finish, none left out",
        ("admin",),
        {"200": Given(attempts.FollowedAttempts)},
        words="Without a cursor: from now on. Oldest first; pass `next` each time, at once while `more` is "
        "true. An attempt may come again, for up to a minute: drop repeats by `id`.",
        problems="422",
        parameters=(*_ATTEMPT_FILTERS, "limit", "follow_cursor"),
    ),
    Operation(
        "get",
        "/v1/attempts/{id}",
        "Show an attempt with the headers sent and the answer",
        ("admin",),
        {"200": Given(attempts.WholeAttempt)},
        words="In any state. Values that only the receiver may know are `***`.",
        problems="404",
        parameters=("id",),
    ),
)
