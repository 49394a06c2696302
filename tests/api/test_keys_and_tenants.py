"""Authorization on every route: key, scopes and tenant."""

import re
import uuid

import pytest

from tests.api.http_client import Answer, Api, assert_problem
from tests.api.routes import BY_NAME, ROUTES, SERVED, WITH_ID, Route
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe

every_route = pytest.mark.parametrize("route", BY_NAME.values(), ids=BY_NAME)
every_route_with_id = pytest.mark.parametrize("route", WITH_ID.values(), ids=WITH_ID)


def call(api: Api, route: Route, identity: object = 1) -> Answer:
    body = b"{}" if route.method in ("POST", "PATCH") else None
    return api.call(route.method, route.at(identity), body)


def test_no_route_is_forgotten_here() -> None:
    open_to_all = {("GET", "/healthz"), ("GET", "/v1/openapi.json"), ("GET", "/v1/docs")}
    assert SERVED - open_to_all == {(route.method, route.path) for route in ROUTES}
    assert len(ROUTES) >= 13


@every_route
def test_without_a_valid_key_nothing_is_told(running: RunningSystem, api: Api, route: Route) -> None:
    valid = running.new_key()
    wrong: list[list[tuple[str, str | bytes]]] = [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Bearer ")],
        [("authorization", valid)],
        [("authorization", f"Basic {valid}")],
        [("authorization", f"Bearer {valid}x")],
        [("authorization", f"Bearer {valid[:-1]}")],
        [("authorization", f"Bearer {valid.swapcase()}")],
        [("authorization", f"Bearer {valid} {valid}")],
        [("authorization", f"Bearer {'x' * 20_000}")],
        [("authorization", b"Bearer \xff\xfe")],
        [("authorization", b"Bearer " + "ключ".encode())],
        [("x-api-key", valid)],
    ]
    nobody = api.with_key(None)
    with running.nothing_stored():
        answers = [nobody.call(route.method, route.at(1), b"{", *headers) for headers in wrong]
        answers.append(nobody.call(route.method, f"{route.at(1)}?authorization={valid}", b"{"))
    for answer in answers:
        problem = assert_problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert valid not in str(problem)
    good = nobody.call(route.method, route.at(0), b"{", ("authorization", f"bearer  {valid} "))
    assert good.status != 401


@every_route
def test_a_revoked_key_is_refused(running: RunningSystem, api: Api, route: Route) -> None:
    key = running.new_key()
    theirs = api.with_key(key)
    assert call(theirs, route, 0).status != 401
    running.revoke(key)
    running.services.key_checks.forget()
    assert_problem(call(theirs, route, 0), 401, "unauthorized")


def test_a_key_that_another_process_has_revoked_is_refused_within_a_second(
    running: RunningSystem, api: Api
) -> None:
    key = running.new_key()
    theirs = api.with_key(key)
    assert theirs.get("/v1/subscriptions").status == 200
    running.revoke(key)
    wait_until(lambda: theirs.get("/v1/subscriptions").status == 401, "it is refused")


@every_route
def test_each_route_needs_one_of_its_scopes(running: RunningSystem, api: Api, route: Route) -> None:
    for scope in ("events:write", "subscriptions:write", "admin", "events:erase"):
        answer = call(api.with_key(running.new_key(scope)), route, 0)
        if scope in route.scopes:
            assert answer.status not in (401, 403)
        else:
            assert_problem(answer, 403, "forbidden")


def test_health_asks_for_no_key_and_tells_nothing(api: Api) -> None:
    answer = api.with_key(None).get("/healthz")
    assert (answer.status, answer.json()) == (200, {"status": "ok"})
    assert api.with_key("hs_wrong").get("/healthz").status == 200


@pytest.fixture(scope="module")
def first_tenant(running: RunningSystem) -> str:
    return new_name("first")


@pytest.fixture(scope="module")
def identities(running: RunningSystem, first_tenant: str, refusing_url: str) -> dict[str, object]:
    """An event, a subscription, a dead letter and a bulk operation of the first tenant."""
    api = running.api.with_key(running.new_key(tenant_id=first_tenant))
    event_type = new_name("theirs")
    subscription = subscribe(running, api, event_type, refusing_url)
    event_id = post(api, event_type, b'"private"')
    dead_letter = dead_letters(running, subscription["id"], 1)[0]
    saga = api.with_key(running.key).good("GET", f"/v1/events/{event_id}")["sagas"][0]
    nothing_matches = {"kind": "requeue", "filter": {"error_code": "http_418"}}
    operation = api.good("POST", "/v1/bulk-operations", nothing_matches)
    other_id = post(api, new_name("nobody"), b'"erased"')
    erasure = api.good("POST", "/v1/erasures", {"event_id": other_id, "reason": "request"})
    return {
        "erasures": erasure["id"],
        "events": event_id,
        "subscriptions": subscription["id"],
        "dead-letters": dead_letter,
        "sagas": saga["id"],
        "attempts": saga["attempts"][0]["id"],
        "bulk-operations": operation["id"],
    }


@every_route_with_id
def test_ids_of_another_tenant_answer_exactly_as_unknown_ids(
    running: RunningSystem, api: Api, identities: dict[str, object], route: Route
) -> None:
    kind = route.path.split("/")[2]
    theirs = identities[kind]
    unknown: object = f"evt_{uuid.uuid4().hex}" if kind == "events" else 2**62
    stranger = api.with_key(running.new_key(tenant_id=new_name("second")))
    before = running.rows(
        "SELECT * FROM subscriptions ORDER BY id"
    )  # a refused DELETE or PATCH changes nothing
    with running.nothing_stored():
        answers = [call(stranger, route, identity) for identity in (theirs, unknown)]
    assert running.rows("SELECT * FROM subscriptions ORDER BY id") == before
    assert [answer.status for answer in answers] == [404, 404]
    texts = [
        re.sub(r"req_\w+", "req", re.sub(rf"\b{identity}\b", "ID", answer.body.decode()))
        for answer, identity in zip(answers, (theirs, unknown), strict=True)
    ]
    assert texts[0] == texts[1]
    assert "private" not in texts[0]


def test_lists_and_filters_show_nothing_of_another_tenant(
    running: RunningSystem, api: Api, identities: dict[str, object], first_tenant: str
) -> None:
    stranger = api.with_key(running.new_key(tenant_id=new_name("second")))
    owner = api.with_key(running.new_key(tenant_id=first_tenant))
    theirs = identities["subscriptions"]
    for target in (
        "/v1/subscriptions",
        "/v1/dead-letters",
        f"/v1/dead-letters?subscription_id={theirs}",
        "/v1/dead-letters?error_code=connection_refused",
        "/v1/attempts",
        "/v1/attempts?error_code=connection_refused",
        f"/v1/attempts?subscription_id={theirs}",
        f"/v1/attempts?subscription_id={theirs}&outcome=failed",
        "/v1/bulk-operations",
    ):
        assert stranger.good("GET", target) == {"items": [], "next": None}
        assert len(owner.good("GET", target)["items"]) == 1
    for dry_run in (True, False):
        asked = {"subscription_id": theirs, "dry_run": dry_run}
        done = stranger.good("POST", "/v1/dead-letters/requeue", asked)
        assert (done["matched"], done["requeued"]) == (0, 0)
    for wanted, matched in ((stranger, 0), (owner, 1)):
        bulk = {"kind": "requeue", "dry_run": True}
        assert wanted.good("POST", "/v1/bulk-operations", bulk)["matched"] == matched
    backfill = {"kind": "backfill", "filter": {"subscription_id": theirs, "since": "2026-01-01T00:00:00Z"}}
    assert stranger.post("/v1/bulk-operations", backfill).status == 404
    assert owner.good("POST", "/v1/dead-letters/requeue", {"dry_run": True})["matched"] == 1


LISTS = ("subscriptions", "dead-letters", "attempts", "bulk-operations")


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_one_tenant_has_no_row_of_another(
    running: RunningSystem, api: Api, identities: dict[str, object], first_tenant: str, name: str
) -> None:
    """Named by an operator, or the key's own; and another's is refused to a key that belongs to one."""
    (item,) = api.good("GET", f"/v1/{name}?tenant_id={first_tenant}")["items"]
    assert (item["id"], item["tenant_id"]) == (identities[name], first_tenant)
    assert api.good("GET", f"/v1/{name}?tenant_id={new_name('nobody')}") == {"items": [], "next": None}
    owner = api.with_key(running.new_key(tenant_id=first_tenant))
    assert owner.good("GET", f"/v1/{name}?tenant_id={first_tenant}")["items"] == [item]
    assert_problem(owner.get(f"/v1/{name}?tenant_id=default"), 403, "tenant_not_allowed", "tenant_id")
    assert_problem(api.get(f"/v1/{name}?tenant_id="), 422, "invalid_tenant_id", "tenant_id")


def test_an_endpoints_health_is_in_the_list(
    running: RunningSystem, api: Api, identities: dict[str, object], first_tenant: str
) -> None:
    """In one word: of one that was never tried, and of one that only fails."""

    def health() -> dict[str, object]:
        return api.good("GET", f"/v1/subscriptions?tenant_id={first_tenant}")["items"][0]["health"]

    unknown = {"state": "unknown", "consecutive_failures": 0, "last_error_code": None}
    assert health() == unknown
    running.run(
        "UPDATE subscription_health SET consecutive_failures = 3, first_failure_at = now(), "
        "last_error_code = 'dns_error' WHERE subscription_id = %s",
        identities["subscriptions"],
    )
    assert health() == {"state": "failing", "consecutive_failures": 3, "last_error_code": "dns_error"}
    owner = api.with_key(running.new_key(tenant_id=first_tenant))
    seen = owner.good("GET", "/v1/subscriptions")["items"][0]["health"]
    assert seen["last_error_code"] == "no_public_address"
    running.run(
        "UPDATE subscription_health SET consecutive_failures = 0, first_failure_at = NULL, last_error_code = NULL "
        "WHERE subscription_id = %s",
        identities["subscriptions"],
    )
    assert health() == unknown


def test_a_bound_key_writes_for_its_own_tenant_only(running: RunningSystem, api: Api) -> None:
    tenant = new_name("bound")
    bound = api.with_key(running.new_key(tenant_id=tenant))
    event_id = post(bound, "bound.event")
    assert bound.good("GET", f"/v1/events/{event_id}")["tenant_id"] == tenant
    wanted = {"event_type": "bound.event", "callback_url": "https://example.com/"}
    assert bound.good("POST", "/v1/subscriptions", wanted)["tenant_id"] == tenant
    assert bound.good("POST", "/v1/subscriptions", {**wanted, "tenant_id": tenant})["tenant_id"] == tenant
    with running.nothing_stored():
        for other in ("default", tenant + "x", tenant.upper()):
            refused = bound.post("/v1/events", {"event_type": "t", "payload": 1, "tenant_id": other})
            assert_problem(refused, 403, "tenant_not_allowed", "tenant_id")
            refused = bound.post("/v1/subscriptions", {**wanted, "tenant_id": other})
            assert_problem(refused, 403, "tenant_not_allowed", "tenant_id")


def test_a_tenant_cannot_be_changed_later(running: RunningSystem, api: Api) -> None:
    created = api.good(
        "POST", "/v1/subscriptions", {"event_type": "t", "callback_url": "https://example.com/"}
    )
    for field, value in (("tenant_id", "other"), ("id", 1), ("verified", True), ("created_at", "x")):
        answer = api.patch(f"/v1/subscriptions/{created['id']}", {field: value})
        assert_problem(answer, 422, "invalid_field", field)
    shown = api.good("GET", f"/v1/subscriptions/{created['id']}")
    assert {name: created[name] for name in shown} == shown


def test_stats_of_all_tenants_are_not_for_a_bound_key(running: RunningSystem, api: Api) -> None:
    bound = api.with_key(running.new_key(tenant_id=new_name("bound")))
    assert_problem(bound.get("/v1/stats"), 403, "tenant_not_allowed")
    stats = api.good("GET", "/v1/stats")
    assert set(stats) >= {
        "outbox",
        "sagas_waiting",
        "sagas_due",
        "jobs_pending",
        "jobs_leased",
        "results_unapplied",
        "dead_letters_24h",
        "oldest_due_seconds",
        "delivered_last_minute",
    }
