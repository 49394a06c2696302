"""Descriptions of the routes of erasures."""

from hooksaga.api.answers import erasures
from hooksaga.api.description.operation import Given, Operation
from hooksaga.core.erasures import NewErasure

OPERATIONS = (
    Operation(
        "POST /v1/erasures",
        "Erase an event, or all events of a tenant",
        ("events:erase",),
        {
            "202": Given(erasures.ErasureStarted, "The erasure, which has started."),
            "200": Given(erasures.ErasureStarted, "The same erasure, which is running."),
        },
        words="Removes the payload, the idempotency key, the source, the ordering key and the trace of the event, and "
        "the answers of endpoints. The rows stay, marked as erased. Waiting deliveries end as dead letters with "
        "`erased`; a request that is being sent cannot be recalled, but its answer is not stored. Events that the "
        "tenant sends later are not affected. Safe to repeat. It cannot be undone.",
        problems="404",
        body=NewErasure,
    ),
    Operation(
        "GET /v1/erasures",
        "List erasures, newest first",
        ("events:erase", "admin"),
        {"200": Given(erasures.ErasureList)},
        parameters=("limit", "cursor", "format"),
        export=True,
    ),
    Operation(
        "GET /v1/erasures/{id}",
        "Show an erasure and how far it is",
        ("events:erase", "admin"),
        {"200": Given(erasures.Erasure)},
    ),
)
