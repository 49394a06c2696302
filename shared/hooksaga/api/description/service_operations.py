"""Operations about the system itself."""

from hooksaga.api.answers import service
from hooksaga.api.description.operation import Given, Operation

OPERATIONS = (
    Operation(
        "GET /v1/stats",
        "Show the current backlog",
        ("admin",),
        {"200": Given(service.Stats)},
        words="For all tenants, so the key must not be bound to a tenant.",
    ),
    Operation(
        "GET /v1/openapi.json",
        "This document",
        (),
        {"200": Given("OpenApi")},
    ),
    Operation(
        "GET /v1/docs",
        "This document as a web page",
        (),
        {"200": Given("ReferencePage")},
        answer_type="text/html",
    ),
    Operation(
        "GET /healthz",
        "Check that the database responds",
        (),
        {"200": Given(service.Health, "The database responds.")},
    ),
)
