"""/v1/subscriptions: what is stored, what is shown, and what is refused."""

import json
from typing import Any

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import subscribe

GOOD = {"event_type": "order.created", "callback_url": "https://example.com/hook"}
FIELDS = {
    "id",
    "tenant_id",
    "event_type",
    "callback_url",
    "pending_callback_url",
    "description",
    "active",
    "verified",
    "eligible_since",
    "max_retry_limit",
    "base_delay_seconds",
    "timeout_seconds",
    "headers",
    "created_at",
    "updated_at",
}


def create(api: Api, **more: Any) -> dict[str, Any]:
    return api.good("POST", "/v1/subscriptions", {**GOOD, **more})


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
        for field in ("verified", "eligible_since", "id", "secret", "pending_callback_url", "deleted_at"):
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
    assert {name: created[name] for name in given} == given
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

RESERVED = (
    "Host Content-Type CONTENT-LENGTH user-agent webhook-id Webhook-Signature webhook-anything "
    "hooksaga-attempt Hooksaga-X cookie connection transfer-encoding te trailer upgrade expect "
    "keep-alive proxy-authorization proxy-connection content-encoding accept-encoding date"
).split()


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
        if field != "tenant_id":
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


BAD_URLS = [
    "http://example.com/",
    "ftp://example.com/",
    "//example.com/",
    "https:/example.com/",
    "https://",
    "https:///path",
    "example.com",
    "https://user:pass@example.com/",
    "https://user@example.com/",
    "https://:@example.com/",
    "https://example.com/#fragment",
    "https://example.com/#",
    "https://example.com/a b",
    "https://example.com/\t",
    "https://example.com/\u0000",
    "https://example.com\\@10.0.0.1/",
    "https://exa mple.com/",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:22/",
    "https://example.com:99999999999999999999/",
    "https://10.0.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://0.0.0.0/",
    "https://255.255.255.255/",
    "https://224.0.0.1/",
    "https://192.0.0.192/",
    "https://198.18.0.1/",
    "https://203.0.113.5/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[64:ff9b:1::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0::]/",
    "https://[fec0::1]/",
    "https://[fd00::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[::1/",
    "https://intranet/",
    "https://service.internal/",
    "https://printer.local/",
    "https://xn--a.example.com/",
    "https://xn--/",
    "https://" + "a" * 64 + ".example.com/",
    "https://\u200b.example.com/",
    "https://\u0301.example.com/",
    "https://exa\u202emple.com/",
    "https://example.com/" + "x" * 480 + "y",
    "https://example..com/",
    "https://-example.com/",
]


@pytest.mark.parametrize("url", BAD_URLS, ids=range(len(BAD_URLS)))
def test_bad_callback_url_is_refused_at_create_and_change(
    running: RunningSystem, api: Api, url: str
) -> None:
    """In one uniform way, which repeats nothing of the URL."""
    created = create(api)
    target = f"/v1/subscriptions/{created['id']}"
    before = api.get(target).body
    with running.nothing_stored():
        for answer in (
            api.post("/v1/subscriptions", {**GOOD, "callback_url": url}),
            api.patch(target, {"callback_url": url}),
        ):
            problem = assert_problem(answer, 422, "invalid_callback_url", "callback_url")
            assert url not in problem["detail"]
            assert "pass" not in problem["detail"].replace("password", "")
    assert api.get(target).body == before


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("https://EXAMPLE.com", "https://example.com/"),
        ("HTTPS://example.com:443/", "https://example.com/"),
        ("https://example.com./x", "https://example.com/x"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://10.example.com/10.0.0.1/localhost", "https://10.example.com/10.0.0.1/localhost"),
        ("https://example.com/?u=http://169.254.169.254/", "https://example.com/?u=http://169.254.169.254/"),
        ("https://example.com/" + "x" * 480, "https://example.com/" + "x" * 480),
        ("https://172.32.0.1/", "https://172.32.0.1/"),
        ("https://localhost.example.com:8443/", "https://localhost.example.com:8443/"),
    ],
)
def test_honest_callback_urls_are_taken_in_their_normal_form(api: Api, given: str, stored: str) -> None:
    assert create(api, callback_url=given)["callback_url"] == stored


def test_change_touches_only_what_is_given(api: Api) -> None:
    created = create(api, max_retry_limit=7, timeout_seconds=2, headers={"x-a": "1"}, description="old")
    target = f"/v1/subscriptions/{created['id']}"
    same = api.good("PATCH", target, {})
    changing = {"updated_at"}
    kept = {name for name in FIELDS - changing}
    assert {name: same[name] for name in kept} == {name: created[name] for name in kept}
    changed = api.good("PATCH", target, {"max_retry_limit": None, "headers": {"X-B": "2"}, "active": False})
    assert changed["max_retry_limit"] is None
    assert changed["headers"] == {"x-b": "2"}
    assert changed["active"] is False
    assert (changed["timeout_seconds"], changed["description"]) == (2, "old")
    assert changed["updated_at"] > created["updated_at"]


def test_new_address_of_a_verified_subscription_waits_for_its_own_verification(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    created = subscribe(running, api, new_name("pending"), refusing_url)
    target = f"/v1/subscriptions/{created['id']}"
    eligible = api.good("GET", target)["eligible_since"]
    other = refusing_url + "/other"
    changed = api.good("PATCH", target, {"callback_url": other})
    assert (changed["callback_url"], changed["pending_callback_url"]) == (refusing_url, other)
    assert (changed["verified"], changed["eligible_since"]) == (True, eligible)
    refused = api.post(f"{target}/verify")
    problem = assert_problem(refused, 422, "verification_failed", "callback_url")
    assert "connection_refused" in problem["detail"]
    assert "127.0.0.1" not in problem["detail"]
    assert api.good("GET", target)["callback_url"] == refusing_url
    dropped = api.good("PATCH", target, {"pending_callback_url": None})
    assert dropped["pending_callback_url"] is None
    api.good("PATCH", target, {"callback_url": other})
    back = api.good("PATCH", target, {"callback_url": refusing_url.replace("https", "HTTPS")})
    assert (back["callback_url"], back["pending_callback_url"]) == (refusing_url, None)


def test_address_that_was_never_verified_is_simply_replaced(api: Api) -> None:
    created = create(api)
    changed = api.good(
        "PATCH", f"/v1/subscriptions/{created['id']}", {"callback_url": "https://example.org"}
    )
    assert (changed["callback_url"], changed["pending_callback_url"]) == ("https://example.org/", None)
    assert changed["verified"] is False


def test_pending_address_cannot_be_set_by_hand(running: RunningSystem, api: Api) -> None:
    created = create(api)
    answer = api.patch(
        f"/v1/subscriptions/{created['id']}", {"pending_callback_url": "https://example.org/"}
    )
    assert_problem(answer, 422, "invalid_field", "pending_callback_url")


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


WRONG_IDS = [
    "0",
    "-1",
    "1.0",
    "1e3",
    "0x1",
    "+1",
    "%201",
    "1%20",
    "x",
    "%00",
    "%31%00",
    "9223372036854775808",
    "9" * 20,
    "9" * 5000,
    "%D9%A1",
    "%EF%BC%91",
    "1;2",
    "null",
    "..",
]


@pytest.mark.parametrize("wrong", WRONG_IDS, ids=range(len(WRONG_IDS)))
def test_what_is_no_id_names_nothing(running: RunningSystem, api: Api, wrong: str) -> None:
    with running.nothing_stored():
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/verify")):
            body = b"{}" if method in ("PATCH", "POST") else None
            answer = api.call(method, f"/v1/subscriptions/{wrong}{path}", body)
            assert_problem(answer, 404, "subscription_not_found")
        assert_problem(api.get(f"/v1/dead-letters/{wrong}"), 404, "dead_letter_not_found")
        assert_problem(api.post(f"/v1/dead-letters/{wrong}/requeue"), 404, "dead_letter_not_found")


def test_largest_id_is_only_unknown(api: Api) -> None:
    assert_problem(api.get(f"/v1/subscriptions/{2**63 - 1}"), 404, "subscription_not_found")


def test_paging_shows_each_row_once_while_rows_are_added(running: RunningSystem, api: Api) -> None:
    tenant = new_name("paging")
    api = api.with_key(running.new_key(tenant_id=tenant))
    wanted = [create(api)["id"] for _ in range(23)]
    seen: list[int] = []
    target: str | None = "/v1/subscriptions?limit=5"
    while target:
        page = api.good("GET", target)
        seen += [item["id"] for item in page["items"]]
        create(api)
        target = page["next"] and f"/v1/subscriptions?limit=5&cursor={page['next']}"
    assert seen == sorted(wanted, reverse=True)


def test_last_page_says_so_and_leads_nowhere(running: RunningSystem, api: Api) -> None:
    api = api.with_key(running.new_key(tenant_id=new_name("paging")))
    assert api.good("GET", "/v1/subscriptions") == {"items": [], "next": None}
    for _ in range(4):
        create(api)
    assert api.good("GET", "/v1/subscriptions?limit=5")["next"] is None
    first = api.good("GET", "/v1/subscriptions?limit=2")
    second = api.good("GET", f"/v1/subscriptions?limit=2&cursor={first['next']}")
    if second["next"] is not None:
        last = api.good("GET", f"/v1/subscriptions?limit=2&cursor={second['next']}")
        assert last == {"items": [], "next": None}


def test_default_page_has_fifty_and_the_largest_two_hundred_and_fifty(
    running: RunningSystem, api: Api
) -> None:
    tenant = new_name("paging")
    running.run(
        "INSERT INTO subscriptions (tenant_id, event_type, callback_url) "
        "SELECT %s, 't' || n %% 2, 'https://example.com/' FROM generate_series(1, 260) AS n",
        tenant,
    )
    api = api.with_key(running.new_key(tenant_id=tenant))
    assert len(api.good("GET", "/v1/subscriptions")["items"]) == 50
    assert len(api.good("GET", "/v1/subscriptions?limit=250")["items"]) == 250
    only = api.good("GET", "/v1/subscriptions?limit=250&event_type=t0")["items"]
    assert len(only) == 130
    assert {item["event_type"] for item in only} == {"t0"}


BAD_PAGES = [
    ("limit=0", "invalid_parameter", "limit"),
    ("limit=251", "invalid_parameter", "limit"),
    ("limit=-1", "invalid_parameter", "limit"),
    ("limit=", "invalid_parameter", "limit"),
    ("limit=x", "invalid_parameter", "limit"),
    ("limit=1.0", "invalid_parameter", "limit"),
    ("limit=%EF%BC%95", "invalid_parameter", "limit"),
    ("limit=" + "9" * 5000, "invalid_parameter", "limit"),
    ("limit=%00", "invalid_parameter", "limit"),
    ("cursor=", "invalid_cursor", "cursor"),
    ("cursor=x", "invalid_cursor", "cursor"),
    ("cursor=1", "invalid_cursor", "cursor"),
    ("cursor=" + "0" * 16, "invalid_cursor", "cursor"),
    ("cursor=FFFFFFFFFFFFFFFF", "invalid_cursor", "cursor"),
    ("cursor=000000000000000a", "invalid_cursor", "cursor"),
    ("cursor=00000000000000000A", "invalid_cursor", "cursor"),
    ("cursor=" + "0" * 5000, "invalid_cursor", "cursor"),
    ("cursor=%00", "invalid_cursor", "cursor"),
    ("cursor=%C3%BC", "invalid_cursor", "cursor"),
    ("surprise=1", "unknown_parameter", "surprise"),
    ("Limit=1", "unknown_parameter", "Limit"),
    ("%00=1", "unknown_parameter", "\u0000"),
]


@pytest.mark.parametrize(("query", "code", "field"), BAD_PAGES, ids=[one[0][:24] for one in BAD_PAGES])
@pytest.mark.parametrize("path", ["/v1/subscriptions", "/v1/dead-letters"])
def test_bad_page_is_refused(api: Api, path: str, query: str, code: str, field: str) -> None:
    assert_problem(api.get(f"{path}?{query}"), 422, code, field)


@pytest.mark.parametrize("value", ["", "%00", "x%00", "x" * 101, "a%0Ab"])
@pytest.mark.parametrize("path", ["/v1/subscriptions", "/v1/dead-letters"])
def test_bad_event_type_filter_is_refused(api: Api, path: str, value: str) -> None:
    assert_problem(api.get(f"{path}?event_type={value}"), 422, "invalid_parameter", "event_type")


def test_filter_that_no_type_can_match_finds_nothing(api: Api) -> None:
    for path in ("/v1/subscriptions", "/v1/dead-letters"):
        for value in ("no%20such", "%FF", "%ED%A0%80", "%25"):
            assert api.good("GET", f"{path}?event_type={value}")["items"] == []
