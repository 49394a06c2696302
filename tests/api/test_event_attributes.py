"""Attributes of an event in every form of a request: shown as they were given, refused by name and rule."""

import json

import pytest

from tests.api.http_client import Answer, Api, assert_problem
from tests.api.running_system import RunningSystem

CLOUD_EVENT = {"specversion": "1.0", "source": "/shop", "type": "described", "data": 1}


def send(api: Api, attributes: str, *headers: tuple[str, str]) -> Answer:
    body = f'{{"event_type": "described", "payload": {{"n": 1.10}}, "attributes": {attributes}}}'
    return api.post_event(body.encode(), *headers)


def test_attributes_are_shown_as_they_were_given(api: Api) -> None:
    given = '{"order_id": "A-1", "total": 1.10, "big": 820982911946154508, "paid": true}'
    shown = api.get(f"/v1/events/{send(api, given).json()['id']}")
    assert '"total": 1.10' in shown.body.decode()
    assert shown.json()["attributes"] == json.loads(given)
    assert shown.body.endswith(b'"payload":{"n": 1.10}}')


@pytest.mark.parametrize("attributes", ["{}", "null"])
def test_an_event_may_have_none(api: Api, attributes: str) -> None:
    shown = api.good("GET", f"/v1/events/{send(api, attributes).json()['id']}")
    assert shown["attributes"] == {}


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        ("[]", "attributes"),
        ('{"order_id": ["A-1"]}', "attributes.order_id"),
        ('{"order_id": null}', "attributes.order_id"),
        ('{"order id": 1}', "attributes.order id"),
        (json.dumps({"note": "x" * 201}), "attributes.note"),
    ],
)
def test_an_error_names_attribute_and_rule(
    running: RunningSystem, api: Api, attributes: str, field: str
) -> None:
    with running.nothing_stored():
        problem = assert_problem(send(api, attributes), 422, "invalid_attributes", field)
        item = f'{{"items": [{{"event_type": "a", "payload": 1, "attributes": {attributes}}}]}}'
        (refused,) = api.good("POST", "/v1/events/batch", json.loads(item))["items"]
    assert problem["detail"].startswith(f"{field}: ")
    assert (refused["error"]["code"], refused["error"]["field"]) == ("invalid_attributes", field)


def test_a_repeat_with_other_attributes_is_a_conflict(api: Api) -> None:
    key = ("idempotency-key", "attributes-1")
    assert send(api, '{"a": 1}', key).status == 202
    assert send(api, '{"a": 1.0}', key).status == 200
    assert_problem(send(api, '{"a": 2}', key), 409, "idempotency_conflict")


def test_a_cloud_event_has_the_same_attributes_in_both_modes(api: Api) -> None:
    event = {**CLOUD_EVENT, "id": "both", "subject": "order 1", "region": "eu", "retries": 3}
    structured = api.post_event(json.dumps(event).encode(), content_type="application/cloudevents+json")
    headers = [(f"ce-{name}", str(value)) for name, value in event.items() if name != "data"]
    binary = api.post_event(b"1", *headers)
    assert (structured.status, binary.status) == (202, 200)
    shown = api.good("GET", f"/v1/events/{structured.json()['id']}")
    assert shown["attributes"] == {"subject": "order 1", "region": "eu", "retries": "3"}
