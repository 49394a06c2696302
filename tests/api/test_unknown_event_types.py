"""A system that accepts only the types of its catalogue."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.http_client import Api, assert_problem, event_body
from tests.api.running_system import RunningSystem


@pytest.fixture(scope="module")
def running(module_database: str, folder: Path) -> Iterator[RunningSystem]:
    system = RunningSystem(folder, database_url=module_database, unknown_event_types="reject")
    yield system
    system.stop()


def test_an_unknown_type_is_refused_with_similar_ones(running: RunningSystem, api: Api) -> None:
    assert_problem(api.post_event(event_body("order.created")), 422, "unknown_event_type", "event_type")
    api.good("PUT", "/v1/event-types/order.created", {})
    with running.nothing_stored():
        problem = assert_problem(
            api.post_event(event_body("order.craeted")), 422, "unknown_event_type", "event_type"
        )
    assert problem["detail"].endswith("known types like it: order.created")
    assert api.post_event(event_body("order.created")).status == 202


def test_unknown_types_of_a_batch_fail_alone(api: Api) -> None:
    api.good("PUT", "/v1/event-types/order.paid", {})
    types = ["order.paid", *(f"order.payed{n}" for n in range(499))]
    told = api.good(
        "POST", "/v1/events/batch", {"items": [{"event_type": one, "payload": 1} for one in types]}
    )["items"]
    assert "id" in told[0]
    assert {one["error"]["code"] for one in told[1:]} == {"unknown_event_type"}
    assert "order.paid" in told[1]["error"]["detail"]
