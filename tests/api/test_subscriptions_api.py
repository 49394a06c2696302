"""/v1/subscriptions: what is stored, what is shown, and what is refused."""

import json
from typing import Any

import pytest

from hooksaga.stages.own_headers import has_clear_values, open_headers
from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem
from tests.api.seeding import GOOD, create

FIELDS = {
    "id",
    "tenant_id",
    "event_type",
    "event_types",
    "callback_url",
    "pending_callback_url",
    "description",
    "active",
    "verified",
    "eligible_since",
    "max_retry_limit",
    "base_delay_seconds",
    "timeout_seconds",
    "max_in_flight",
    "rate_limit",
    "ordered",
    "max_wait_seconds",
    "circuit_breaker",
    "paused_at",
    "verified_by_key_id",
    "verified_reason",
    "flow",
    "headers",
    "created_at",
    "updated_at",
}


def test_the_secret_is_shown_once_and_stored_sealed(running: RunningSystem, api: Api) -> None:
    answer = api.post("/v1/subscriptions", GOOD)
    assert answer.status == 201
    created = answer.json()
    assert set(created) >= FIELDS | {"secret"}
    assert created["secret"].startswith("whsec_")
    assert len(created["secret"]) == len("whsec_") + 44
    target = f"/v1/subscriptions/{created['id']}"
    shown = [api.get(target), api.get("/v1/subscriptions"), api.patch(target, {"description": "x"})]
    assert all(answer.status == 200 for answer in shown)
    assert not any(created["secret"].encode() in answer.body for answer in shown)
    assert not any(b'"secret"' in answer.body for answer in shown)
    kept = running.rows("SELECT secret FROM subscription_secrets WHERE subscription_id = %s", created["id"])
    assert created["secret"] not in kept[0]["secret"]
    assert create(api)["secret"] != created["secret"]


def test_a_new_subscription_is_unverified_whatever_is_asked(running: RunningSystem, api: Api) -> None:
    created = create(api)
    assert (created["active"], created["verified"], created["eligible_since"]) == (True, False, None)
    with running.nothing_stored():
        for field in (
            "verified",
            "eligible_since",
            "id",
            "verified_by_key_id",
            "pending_callback_url",
            "deleted_at",
        ):
            answer = api.post("/v1/subscriptions", {**GOOD, field: None})
            assert_problem(answer, 422, "invalid_field", field)


def test_what_was_given_is_what_is_shown(api: Api) -> None:
    given = {
        "event_type": "a:b/c.d_e-1",
        "callback_url": "https://example.com/Path?q=%20&r=1",
        "tenant_id": "t-1",
        "description": "żółw 😀 <b>&",
        "active": False,
        "max_retry_limit": 50,
        "base_delay_seconds": 0.25,
        "timeout_seconds": 1.5,
        "headers": {"x-token": "a b;c=~", "authorization": "Basic eA=="},
    }
    created = create(api, **given)
    shown = {**given, "headers": {"x-token": "***", "authorization": "***"}}
    assert {name: created[name] for name in given} == shown
    shown = api.good("GET", f"/v1/subscriptions/{created['id']}")
    assert shown == {name: value for name, value in created.items() if name != "secret"}


BAD_FIELDS: list[tuple[str, Any]] = [
    ("event_type", ""),
    ("event_type", "x" * 101),
    ("event_type", "a b"),
    ("event_type", "a\n"),
    ("event_type", "*"),
    ("event_type", None),
    ("event_type", 1),
    ("event_type", "a.*"),
    ("tenant_id", ""),
    ("tenant_id", "a\u0000"),
    ("description", "x" * 501),
    ("description", "a\u0000b"),
    ("description", "a\nb"),
    ("description", None),
    ("active", None),
    ("active", "true"),
    ("active", 1),
    ("max_retry_limit", 0),
    ("max_retry_limit", 51),
    ("max_retry_limit", -1),
    ("max_retry_limit", 1.5),
    ("max_retry_limit", "5"),
    ("max_retry_limit", True),
    ("max_retry_limit", 10**30),
    ("base_delay_seconds", 0),
    ("base_delay_seconds", -1),
    ("base_delay_seconds", 3600.5),
    ("base_delay_seconds", "30"),
    ("timeout_seconds", 0.5),
    ("timeout_seconds", 31),
    ("timeout_seconds", False),
    ("headers", None),
    ("headers", []),
    ("headers", {"x-a": 1}),
    ("headers", {"x-a": None}),
    ("headers", {"": "v"}),
    ("headers", {"x a": "v"}),
    ("headers", {"x-ü": "v"}),
    ("headers", {"x-a:": "v"}),
    ("headers", {"x-a": ""}),
    ("headers", {"x-a": " v"}),
    ("headers", {"x-a": "v\r\nx-b: w"}),
    ("headers", {"x-a": "ü"}),
    ("headers", {"x-a": "v" * 1025}),
    ("headers", {"x-a\u0000": "v"}),
    ("headers", {"x-a": "1", "X-A": "2"}),
    ("headers", {f"x-{n}": "v" for n in range(21)}),
    ("callback_url", ""),
    ("callback_url", None),
    ("callback_url", "x" * 2001),
]
ONLY_BAD_AT_CREATION = [("headers", None), ("headers", {"x-a": None})]
"""A change may remove headers."""

RESERVED = [
    "Host",
    "Content-Type",
    "CONTENT-LENGTH",
    "user-agent",
    "webhook-id",
    "Webhook-Signature",
    "webhook-anything",
    "hooksaga-attempt",
    "Hooksaga-X",
    "cookie",
    "connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "content-encoding",
    "accept-encoding",
    "date",
]


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS, ids=range(len(BAD_FIELDS)))
def test_bad_field_is_refused_at_create_and_change(
    running: RunningSystem, api: Api, field: str, value: Any
) -> None:
    created = create(api)
    target = f"/v1/subscriptions/{created['id']}"
    before = api.get(target).body
    with running.nothing_stored():
        answer = api.post("/v1/subscriptions", {**GOOD, field: value})
        problem = assert_problem(answer, 422, "invalid_field", answer.json().get("field"))
        assert problem["field"].split(".")[0] == field
        if field != "tenant_id" and (field, value) not in ONLY_BAD_AT_CREATION:
            answer = api.patch(target, {"description": "must not be taken either", field: value})
            problem = assert_problem(answer, 422, "invalid_field", answer.json().get("field"))
            assert problem["field"].split(".")[0] == field
    assert api.get(target).body == before


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_headers_are_refused(running: RunningSystem, api: Api, name: str) -> None:
    created = create(api)
    with running.nothing_stored():
        answer = api.post("/v1/subscriptions", {**GOOD, "headers": {"x-good": "v", name: "v"}})
        assert_problem(answer, 422, "invalid_field", "headers")
        answer = api.patch(f"/v1/subscriptions/{created['id']}", {"headers": {name: "v"}})
        assert_problem(answer, 422, "invalid_field", "headers")
    assert api.good("GET", f"/v1/subscriptions/{created['id']}")["headers"] == {}


MASKED = {"x-a": "***", "x-b": "***"}


def test_header_values_are_write_only(api: Api) -> None:
    """No answer shows one, whichever way the subscription is looked at."""
    created = create(api, headers={"x-a": "secret-1", "X-B": "secret-2"})
    target = f"/v1/subscriptions/{created['id']}"
    answers = [
        created,
        api.good("GET", target),
        next(one for one in api.good("GET", "/v1/subscriptions")["items"] if one["id"] == created["id"]),
        api.good("PATCH", target, {"headers": {"x-a": "secret-3"}}),
        api.good("PATCH", target, {"description": "new"}),
        api.good("POST", f"{target}/rotate-secret"),
    ]
    assert [answer["headers"] for answer in answers] == [MASKED] * len(answers)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"x-b": "2"}, {"x-a": "1", "x-b": "2"}),
        ({"X-A": "2"}, {"x-a": "2", "x-b": "b"}),
        ({"x-c": "3"}, {"x-a": "1", "x-b": "b", "x-c": "3"}),
        ({"x-a": None}, {"x-b": "b"}),
        ({"x-a": None, "x-none": None}, {"x-b": "b"}),
        ({"x-a": "***", "x-b": "2"}, {"x-a": "1", "x-b": "2"}),
        (MASKED, {"x-a": "1", "x-b": "b"}),
        ({}, {"x-a": "1", "x-b": "b"}),
        (None, {}),
    ],
    ids=str,
)
def test_one_header_is_changed_without_knowing_the_others(
    running: RunningSystem, api: Api, change: dict[str, Any] | None, left: dict[str, str]
) -> None:
    created = create(api, headers={"x-a": "1", "x-b": "b"})
    changed = api.good("PATCH", f"/v1/subscriptions/{created['id']}", {"headers": change})
    assert changed["headers"] == dict.fromkeys(left, "***")
    (row,) = running.rows("SELECT headers FROM subscriptions WHERE id = %s", created["id"])
    assert running.services.box is not None
    assert open_headers(running.services.box, row["headers"]) == left
    assert not has_clear_values(row["headers"])


BAD_CHANGES = [
    {"x-none": "***"},
    {"x-a": "2", "X-A": None},
    {f"x-{n}": "v" for n in range(20)},
    {"host": None},
    {"x a": None},
]


@pytest.mark.parametrize("change", BAD_CHANGES, ids=range(len(BAD_CHANGES)))
def test_a_bad_change_of_headers_changes_none(running: RunningSystem, api: Api, change: Any) -> None:
    created = create(api, headers={"x-a": "1"})
    query = "SELECT headers FROM subscriptions WHERE id = %s"
    before = running.rows(query, created["id"])
    answer = api.patch(f"/v1/subscriptions/{created['id']}", {"headers": change, "description": "not this"})
    assert_problem(answer, 422, "invalid_field", "headers")
    assert running.rows(query, created["id"]) == before


def test_the_mask_is_no_value_of_a_new_header(running: RunningSystem, api: Api) -> None:
    """Copying a shown header into a new subscription fails, instead of sending three stars."""
    with running.nothing_stored():
        answer = api.post("/v1/subscriptions", {**GOOD, "headers": {"x-a": "***"}})
        assert_problem(answer, 422, "invalid_field", "headers")


RAW_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 5000, "1e-400", "0." + "7" * 5000]


@pytest.mark.parametrize("number", RAW_NUMBERS, ids=[number[:12] for number in RAW_NUMBERS])
@pytest.mark.parametrize("field", ["max_retry_limit", "base_delay_seconds", "timeout_seconds"])
def test_strange_numbers_are_refused_or_kept_within_bounds(
    running: RunningSystem, api: Api, field: str, number: str
) -> None:
    body = json.dumps(GOOD)[:-1] + f', "{field}": {number}}}'
    answer = api.call("POST", "/v1/subscriptions", body.encode())
    if answer.status == 201:
        assert field == "base_delay_seconds"
        assert 0 < answer.json()[field] < 1
    else:
        assert answer.status in (400, 422)
        assert_problem(answer, answer.status, answer.json()["code"], answer.json().get("field"))


def test_change_touches_only_what_is_given(api: Api) -> None:
    created = create(api, max_retry_limit=7, timeout_seconds=2, headers={"x-a": "1"}, description="old")
    target = f"/v1/subscriptions/{created['id']}"
    same = api.good("PATCH", target, {})
    kept = FIELDS - {"updated_at"}
    assert {name: same[name] for name in kept} == {name: created[name] for name in kept}
    changed = api.good("PATCH", target, {"max_retry_limit": None, "headers": {"X-B": "2"}, "active": False})
    assert changed["max_retry_limit"] is None
    assert changed["headers"] == {"x-a": "***", "x-b": "***"}
    assert changed["active"] is False
    assert (changed["timeout_seconds"], changed["description"]) == (2, "old")
    assert changed["updated_at"] > created["updated_at"]


def test_deleted_subscription_is_gone_and_its_row_stays(running: RunningSystem, api: Api) -> None:
    created = create(api)
    target = f"/v1/subscriptions/{created['id']}"
    for _ in range(2):
        answer = api.call("DELETE", target)
        assert (answer.status, answer.body) == (204, b"")
    for answer in (api.get(target), api.patch(target, {"active": True}), api.post(f"{target}/verify")):
        assert_problem(answer, 404, "subscription_not_found")
    assert created["id"] not in [item["id"] for item in api.good("GET", "/v1/subscriptions")["items"]]
    row = running.rows("SELECT active, deleted_at FROM subscriptions WHERE id = %s", created["id"])[0]
    assert row["active"] is False
    assert row["deleted_at"] is not None


SEVERAL = {"callback_url": "https://example.com/hook"}


def test_several_event_types_and_one(api: Api) -> None:
    several = ["order.created", "invoice.*", "*", "hooksaga.*"]
    created = api.good("POST", "/v1/subscriptions", {**SEVERAL, "event_types": [*several, "invoice.*"]})
    assert (created["event_type"], created["event_types"]) == (None, several)
    path = f"/v1/subscriptions/{created['id']}"
    one = api.good("PATCH", path, {"event_type": "order.paid"})
    assert (one["event_type"], one["event_types"]) == ("order.paid", ["order.paid"])
    prefix = api.good("PATCH", path, {"event_types": ["order.*"]})
    assert (prefix["event_type"], prefix["event_types"]) == (None, ["order.*"])
    assert api.good("PATCH", path, {"description": "x"})["event_types"] == ["order.*"]
    assert create(api)["event_types"] == ["order.created"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, "event_types"),
        ({"event_type": "a", "event_types": ["a"]}, "event_types"),
        ({"event_type": "a", "event_types": None}, None),
        ({"event_types": None}, "event_types"),
        ({"event_types": []}, "event_types"),
        ({"event_types": "a"}, "event_types"),
        ({"event_types": ["a b"]}, "event_types"),
        ({"event_types": ["a*"]}, "event_types"),
        ({"event_types": ["*.a"]}, "event_types"),
        ({"event_types": [f"t{n}" for n in range(101)]}, "event_types"),
        ({"event_types": [1]}, "event_types.0"),
    ],
)
def test_event_types_that_are_refused(
    running: RunningSystem, api: Api, wrong: dict[str, Any], field: str | None
) -> None:
    with running.nothing_stored():
        assert_problem(api.post("/v1/subscriptions", {**SEVERAL, **wrong}), 422, "invalid_field", field)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"event_type": "a", "event_types": ["a"]}, None),
        ({"event_types": None}, "event_types"),
        ({"event_types": ["a.*.b"]}, "event_types"),
    ],
)
def test_changes_of_event_types_that_are_refused(api: Api, wrong: dict[str, Any], field: str | None) -> None:
    path = f"/v1/subscriptions/{create(api)['id']}"
    assert_problem(api.patch(path, wrong), 422, "invalid_field", field)
    assert api.good("GET", path)["event_types"] == ["order.created"]
