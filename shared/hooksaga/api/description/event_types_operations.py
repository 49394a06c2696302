"""Operations on the catalogue of event types."""

from hooksaga.api.answers import event_types
from hooksaga.api.description.operation import Given, Operation
from hooksaga.core.event_type_models import NewEventType

_READ = ("events:write", "subscriptions:write", "event-types:write", "admin")
_WRITE = ("event-types:write", "admin")
_ONE = "/v1/event-types/{name}"

OPERATIONS = (
    Operation(
        "GET /v1/event-types",
        "List the event types of the catalogue, newest first",
        _READ,
        {"200": Given(event_types.EventTypeList)},
        parameters=("archived", "limit", "cursor", "format"),
        export=True,
    ),
    Operation(
        f"GET {_ONE}",
        "Show an event type with its schema and its sample",
        _READ,
        {"200": Given(event_types.CatalogueEntry)},
    ),
    Operation(
        f"PUT {_ONE}",
        "Store an event type",
        _WRITE,
        {
            "200": Given(event_types.CatalogueEntry, "It takes the place of the entry with this name"),
            "201": Given(event_types.CatalogueEntry, "It is new"),
        },
        words="The body is the whole entry. It applies to every event that is accepted after the response. The key "
        "must not be bound to a tenant.",
        problems="409",
        body=NewEventType,
    ),
    Operation(
        f"DELETE {_ONE}",
        "Delete an event type from the catalogue",
        _WRITE,
        {"204": Given(None)},
        words="Its events and subscriptions stay. To refuse further events of the type, archive it instead. The key "
        "must not be bound to a tenant.",
    ),
)
