"""The catalogue: stored, listed and deleted by an operator, and applied to every event after that."""

import json
from typing import Any

import pytest

from tests.api.http_client import Answer, Api, assert_problem
from tests.api.running_system import RunningSystem, new_name

SCHEMA = {
    "type": "object",
    "required": ["order"],
    "properties": {"order": {"type": "integer"}, "customer": {"properties": {"country": {"type": "string"}}}},
}
RULES = [
    {"name": "country", "pointer": "/customer/country", "kind": "string"},
    {"name": "order", "pointer": "/order", "kind": "number"},
    {"name": "express", "pointer": "/express", "kind": "boolean"},
]


def call(api: Api, method: str, path: str, body: bytes = b"") -> Answer:
    return api.call(method, path, body)


def put(api: Api, name: str, **entry: Any) -> dict[str, Any]:
    return api.good("PUT", f"/v1/event-types/{name}", entry)


def post(api: Api, name: str, payload: Any, *headers: tuple[str, str], **more: Any) -> Answer:
    body = json.dumps({"event_type": name, "payload": payload, **more}).encode()
    return api.post_event(body, *headers)


def shown(api: Api, answer: Answer) -> dict[str, Any]:
    assert answer.status == 202, answer.body
    return api.good("GET", f"/v1/events/{answer.json()['id']}")


def mismatched(api: Api) -> float:
    """The count of accepted events whose payload does not match."""
    lines = api.get("/metrics").body.decode().splitlines()
    name = "hooksaga_payloads_mismatched_total"
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0.0)


def test_an_entry_is_shown_as_it_was_put(api: Api) -> None:
    name = new_name("catalogue")
    text = (
        '{"description": "An order.\\nOf a customer.", '
        '"attributes": [{"name": "n", "pointer": "/n", "kind": "number"}],'
        ' "schema": {"properties": {"n": {"maximum": 1e2}}}, "sample": {"n": 1.10}, "on_mismatch": "warn"}'
    )
    created = call(api, "PUT", f"/v1/event-types/{name}", text.encode())
    assert created.status == 201
    assert b'"sample":{"n": 1.10}' in created.body
    assert b'"schema":{"properties": {"n": {"maximum": 1e2}}}' in created.body
    assert call(api, "PUT", f"/v1/event-types/{name}", text.encode()).status == 200
    entry = api.good("GET", f"/v1/event-types/{name}")
    assert entry["attributes"] == [{"name": "n", "pointer": "/n", "kind": "number"}]
    assert (entry["description"], entry["on_mismatch"], entry["archived"]) == (
        "An order.\nOf a customer.",
        "warn",
        False,
    )
    replaced = put(api, name)
    assert (replaced["schema"], replaced["sample"], replaced["attributes"]) == (None, None, [])


def test_a_name_may_have_slashes_and_colons(api: Api) -> None:
    name = new_name("a/b:c")
    put(api, name)
    for path in (name, name.replace("/", "%2F")):
        assert api.good("GET", f"/v1/event-types/{path}")["name"] == name


def test_entries_are_listed_page_by_page(api: Api) -> None:
    names = [new_name("listed") for _ in range(3)]
    for name in names:
        put(api, name, archived=name == names[0])
    first = api.good("GET", "/v1/event-types?limit=2")
    second = api.good("GET", f"/v1/event-types?limit=2&cursor={first['next']}")
    assert [one["name"] for one in [*first["items"], *second["items"]]][:3] == names[::-1]
    assert names[0] in [one["name"] for one in api.good("GET", "/v1/event-types?archived=true")["items"]]
    assert names[1] not in [one["name"] for one in api.good("GET", "/v1/event-types?archived=true")["items"]]
    assert_problem(api.get("/v1/event-types?archived=1"), 422, "invalid_parameter", "archived")


def test_a_deleted_entry_is_gone_and_its_type_is_free(api: Api) -> None:
    name = new_name("deleted")
    put(api, name, schema={"type": "string"})
    assert post(api, name, 1).status == 422
    assert call(api, "DELETE", f"/v1/event-types/{name}").status == 204
    assert post(api, name, 1).status == 202
    for method in ("GET", "DELETE"):
        assert_problem(call(api, method, f"/v1/event-types/{name}"), 404, "event_type_not_found")


@pytest.mark.parametrize(
    ("entry", "code", "field"),
    [
        ({"schema": {"properties": {"a": {"type": "text"}}}}, "invalid_schema", "schema/properties/a/type"),
        ({"schema": {"items": {"$ref": "https://example.com/x"}}}, "invalid_schema", "schema/items/$ref"),
        ({"schema": {"pattern": "(?=a)"}}, "invalid_schema", "schema/pattern"),
        ({"schema": {"description": "x" * 66_000}}, "invalid_schema", "schema"),
        ({"schema": []}, "invalid_field", "schema"),
        ({"schema": {"type": "string"}, "sample": 1}, "invalid_sample", "sample"),
        ({"schema": SCHEMA, "sample": {"order": "x"}}, "invalid_sample", "sample/order"),
        (
            {"attributes": [{"name": "a", "pointer": "a", "kind": "string"}]},
            "invalid_field",
            "attributes.0.pointer",
        ),
        (
            {"attributes": [{"name": "a b", "pointer": "/a", "kind": "string"}]},
            "invalid_field",
            "attributes.0.name",
        ),
        (
            {"attributes": [{"name": "a", "pointer": "/a", "kind": "date"}]},
            "invalid_field",
            "attributes.0.kind",
        ),
        (
            {"attributes": [{"name": "a", "pointer": "/a", "kind": "string"}] * 21},
            "invalid_field",
            "attributes",
        ),
        ({"on_mismatch": "ignore"}, "invalid_field", "on_mismatch"),
        ({"payload_schema": {}}, "invalid_field", "payload_schema"),
        ({"description": "a\u0000b"}, "invalid_field", "description"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_error_names_the_place_and_nothing_is_stored(
    api: Api, entry: dict[str, Any], code: str, field: str
) -> None:
    name = new_name("refused")
    assert_problem(call(api, "PUT", f"/v1/event-types/{name}", json.dumps(entry).encode()), 422, code, field)
    assert_problem(api.get(f"/v1/event-types/{name}"), 404, "event_type_not_found")


@pytest.mark.parametrize("name", ["a b", "x" * 101, "hooksaga.x", "%00"])
def test_a_name_that_no_event_can_have_is_refused(api: Api, name: str) -> None:
    answer = call(api, "PUT", f"/v1/event-types/{name.replace(' ', '%20')}", b"{}")
    assert answer.status in (404, 422)


def test_attributes_are_extracted_and_kept_apart(api: Api) -> None:
    name = new_name("extracted")
    put(api, name, attributes=RULES)
    payload = {"order": 7, "customer": {"country": "DE"}, "express": "yes"}
    key = ("idempotency-key", new_name("key"))
    answer = post(api, name, payload, key, attributes={"order": "given"})
    event = shown(api, answer)
    assert event["attributes"] == {"order": "given"}
    assert event["extracted_attributes"] == {"country": "DE", "order": 7}
    put(api, name)
    again = post(api, name, payload, key, attributes={"order": "given"})
    assert (again.status, again.json()["id"]) == (200, event["id"]), "what is extracted is not compared"


def test_a_payload_that_does_not_match_is_refused(running: RunningSystem, api: Api) -> None:
    name = new_name("strict")
    put(api, name, schema=SCHEMA)
    with running.nothing_stored():
        problem = assert_problem(
            post(api, name, {"order": 1, "customer": {"country": 7}}),
            422,
            "payload_mismatch",
            "payload/customer/country",
        )
        assert problem["detail"] == 'payload/customer/country: the value is not of type "string"'
    assert post(api, name, {"order": 1}).status == 202


def test_a_warning_is_in_the_answer_and_counted(api: Api) -> None:
    name = new_name("warned")
    put(api, name, schema=SCHEMA, on_mismatch="warn")
    before = mismatched(api)
    answer = post(api, name, {})
    assert answer.status == 202
    assert mismatched(api) == before + 1
    assert answer.json()["warning"] == {
        "code": "payload_mismatch",
        "field": "payload",
        "detail": '"order" is a required property',
    }
    assert "warning" not in post(api, name, {"order": 1}).json()


def test_a_bad_item_of_a_batch_fails_alone(api: Api) -> None:
    strict, archived, free = (new_name("batch") for _ in range(3))
    put(api, strict, schema=SCHEMA)
    put(api, archived, archived=True)
    given = [(strict, {"order": 1}), (strict, {}), (archived, 1), (free, 2), (strict, {"order": 3})]
    items = [{"event_type": name, "payload": payload} for name, payload in given]
    told = api.good("POST", "/v1/events/batch", {"items": items})["items"]
    codes = [one["error"]["code"] if "error" in one else None for one in told]
    assert codes == [None, "payload_mismatch", "event_type_archived", None, None]
    for (name, payload), one in zip(given, told, strict=True):
        if "id" in one:
            event = api.good("GET", f"/v1/events/{one['id']}")
            assert (event["event_type"], event["payload"]) == (name, payload)


def test_a_repeat_is_answered_even_if_its_type_has_changed(api: Api) -> None:
    name, key = new_name("repeated"), ("idempotency-key", new_name("key"))
    first = post(api, name, {}, key)
    put(api, name, schema=SCHEMA)
    again = post(api, name, {}, key)
    assert (again.status, again.json()["id"]) == (200, first.json()["id"])
    assert_problem(post(api, name, {"other": 1}, key), 422, "payload_mismatch", "payload")
    put(api, name, archived=True)
    assert post(api, name, {}, key).status == 200


def test_a_change_applies_to_the_next_event(api: Api) -> None:
    name = new_name("changed")
    assert post(api, name, {}).status == 202
    put(api, name, schema=SCHEMA)
    assert post(api, name, {}).status == 422
    put(api, name, schema={})
    assert post(api, name, {}).status == 202
    put(api, name, archived=True)
    assert_problem(post(api, name, {}), 422, "event_type_archived", "event_type")
    put(api, name)
    assert post(api, name, {}).status == 202


def test_a_test_event_has_the_sample_of_its_type(running: RunningSystem, api: Api) -> None:
    name = new_name("sampled")
    call(api, "PUT", f"/v1/event-types/{name}", b'{"sample": {"n": 1.10}}')
    created = api.good(
        "POST", "/v1/subscriptions", {"event_type": name, "callback_url": "https://127.0.0.1:1/"}
    )
    running.run("UPDATE subscriptions SET verified = true WHERE id = %s", created["id"])
    test = f"/v1/subscriptions/{created['id']}/test"
    answer = call(api, "POST", test, b"")
    assert api.get(f"/v1/events/{answer.json()['id']}").body.endswith(b'"payload":{"n": 1.10}}')
    answer = call(api, "POST", test, b'{"payload": 7}')
    assert api.good("GET", f"/v1/events/{answer.json()['id']}")["payload"] == 7


@pytest.mark.parametrize("scopes", [["event-types:write"], ["admin"]])
def test_a_key_with_the_scope_writes(running: RunningSystem, api: Api, scopes: list[str]) -> None:
    put(api.with_key(running.new_key(*scopes)), new_name("scoped"))


@pytest.mark.parametrize("scope", ["events:write", "subscriptions:write"])
def test_other_keys_read_only(running: RunningSystem, api: Api, scope: str) -> None:
    name = new_name("scoped")
    put(api, name)
    other = api.with_key(running.new_key(scope, tenant_id="acme"))
    assert other.good("GET", f"/v1/event-types/{name}")["name"] == name
    assert other.good("GET", "/v1/event-types?limit=1")["items"]
    for method in ("PUT", "DELETE"):
        assert_problem(call(other, method, f"/v1/event-types/{name}", b"{}"), 403, "forbidden")


def test_a_key_of_one_tenant_does_not_write_for_all(running: RunningSystem, api: Api) -> None:
    bound = api.with_key(running.new_key("admin", "event-types:write", tenant_id="acme"))
    for method in ("PUT", "DELETE"):
        assert_problem(call(bound, method, "/v1/event-types/a", b"{}"), 403, "tenant_not_allowed")
