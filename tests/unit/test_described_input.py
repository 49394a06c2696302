"""The JSON Schema of a request allows exactly what its model accepts."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hooksaga.core.described_input import described_one_of, described_without_null
from hooksaga.core.erasures import NewErasure
from hooksaga.core.field_types import StrictModel
from hooksaga.core.models import NewSubscription, SubscriptionChange
from hooksaga.core.requeue_models import NewBulkOperation

URL = {"callback_url": "https://receiver.example.com/"}
TIME = "2026-01-31T12:00:00Z"


def schema_with(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    class Body(StrictModel):
        model_config = ConfigDict(json_schema_extra=change)

        a: int | None = Field(default=None, ge=1, description="About a.")
        b: str | None = None
        c: bool | None = None

    return Body.model_json_schema()


@pytest.mark.parametrize(
    ("change", "allowed", "refused"),
    [
        (
            described_without_null,
            [{}, {"a": 1}, {"a": 1, "b": "x"}, {"c": None}],
            [{"a": None}, {"b": None}, {"a": 0}, {"b": 1}],
        ),
        (
            described_one_of,
            [{"a": 1}, {"b": "x"}, {"b": "x", "c": None}],
            [{}, {"c": True}, {"a": 1, "b": "x"}, {"a": None}, {"a": 1, "b": None}],
        ),
    ],
    ids=["without null", "one of"],
)
def test_a_change_of_a_schema_refuses_what_it_names_and_no_more(
    change: Callable[..., Callable[[dict[str, Any]], None]], allowed: list[Any], refused: list[Any]
) -> None:
    schema = schema_with(change("a", "b"))
    found = [body for body in (*allowed, *refused) if jsonschema_rs.is_valid(schema, body)]
    assert found == allowed


def test_a_field_without_null_keeps_its_description_and_has_no_default() -> None:
    properties = schema_with(described_without_null("a"))["properties"]
    assert properties["a"] == {"type": "integer", "minimum": 1, "title": "A", "description": "About a."}
    assert properties["b"]["default"] is None


BODIES: list[tuple[type[BaseModel], dict[str, Any], bool]] = [
    (NewSubscription, {**URL, "event_type": "a"}, True),
    (NewSubscription, {**URL, "event_types": ["a", "b.*"]}, True),
    (NewSubscription, URL, False),
    (NewSubscription, {**URL, "event_type": "a", "event_types": ["a"]}, False),
    (NewSubscription, {**URL, "event_type": None}, False),
    (NewSubscription, {**URL, "event_types": None}, False),
    (NewSubscription, {**URL, "event_type": "a", "event_types": None}, False),
    (NewSubscription, {**URL, "event_type": None, "event_types": ["a"]}, False),
    (NewSubscription, {**URL, "event_types": []}, False),
    (SubscriptionChange, {}, True),
    (SubscriptionChange, {"event_type": "a", "max_in_flight": None, "headers": None, "filter": None}, True),
    (SubscriptionChange, {"event_types": ["a"]}, True),
    (SubscriptionChange, {"event_type": "a", "event_types": ["a"]}, False),
    *(
        (SubscriptionChange, {name: None}, False)
        for name in (
            "event_type",
            "event_types",
            "callback_url",
            "description",
            "active",
            "ordered",
            "format",
        )
    ),
    (SubscriptionChange, {"circuit_breaker": None}, False),
    (NewErasure, {"event_id": f"evt_{'0' * 32}", "reason": "r"}, True),
    (NewErasure, {"tenant_id": "a", "reason": "r"}, True),
    (NewErasure, {"tenant_id": "a", "attribute": "customer:1", "reason": "r"}, True),
    (NewErasure, {"reason": "r"}, False),
    (NewErasure, {"tenant_id": "a"}, False),
    (NewErasure, {"tenant_id": "a", "reason": " "}, False),
    (NewErasure, {"tenant_id": "a", "attribute": None, "reason": "r"}, False),
    (NewErasure, {"tenant_id": None, "reason": "r"}, False),
    (NewErasure, {"event_id": f"evt_{'0' * 32}", "tenant_id": "a", "reason": "r"}, False),
    (NewErasure, {"event_id": f"evt_{'0' * 32}", "attribute": "customer:1", "reason": "r"}, False),
    (NewBulkOperation, {"kind": "requeue"}, True),
    (NewBulkOperation, {"kind": "requeue", "filter": {"failed_after": TIME, "since": None}}, True),
    (NewBulkOperation, {"kind": "requeue", "filter": {"since": TIME}}, False),
    (NewBulkOperation, {"kind": "requeue", "filter": {"status": "Completed"}}, False),
    (NewBulkOperation, {"kind": "backfill", "filter": {"subscription_id": 1, "since": TIME}}, True),
    (NewBulkOperation, {"kind": "backfill", "filter": {"subscription_id": 1}}, False),
    (NewBulkOperation, {"kind": "backfill"}, False),
    (
        NewBulkOperation,
        {"kind": "backfill", "filter": {"subscription_id": 1, "since": TIME, "event_type": "a"}},
        False,
    ),
    (NewBulkOperation, {"kind": "resend", "filter": {"ended_after": TIME, "status": "Completed"}}, True),
    (NewBulkOperation, {"kind": "resend", "filter": {"ended_before": TIME}}, False),
    (NewBulkOperation, {"kind": "resend", "filter": {"ended_after": TIME, "until": TIME}}, False),
]


@pytest.mark.parametrize(
    ("model", "body", "accepted"), BODIES, ids=[f"{one.__name__} {body}"[:90] for one, body, _ in BODIES]
)
def test_a_schema_allows_what_its_model_accepts(
    model: type[BaseModel], body: dict[str, Any], accepted: bool
) -> None:
    text = json.dumps(body)
    try:
        model.model_validate_json(text)
        by_model = True
    except ValidationError:
        by_model = False
    assert (by_model, jsonschema_rs.is_valid(model.model_json_schema(), body)) == (accepted, accepted)
