"""Operations about the system itself."""

from hooksaga.api.answers import service
from hooksaga.api.description.operation import Given, Operation

OPERATIONS = (
    Operation(
        "get",
        "/v1/stats",
        "The backlog now",
        ("admin",),
        {"200": Given(service.Stats)},
        words="Of all tenants, so the key must be bound to none.",
    ),
    Operation(
        "get",
        "/v1/openapi.json",
        "This document",
        (),
        {"200": Given("OpenApi")},
    ),
    Operation(
        "get",
        "/v1/docs",
        "This document, to be read",
        (),
        {"200": Given("ReferencePage")},
        answer_type="text/html",
    ),
    Operation(
        "get",
        "/healthz",
        "Whether the database answers",
        (),
        {"200": Given(service.Health, "The database answers.")},
    ),
)
