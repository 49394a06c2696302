"""Ids, limits, cursors and filters, good and bad."""

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import create

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
        "INSERT INTO subscriptions (tenant_id, event_types, callback_url) "
        "SELECT %s, ARRAY['t' || n %% 2], 'https://example.com/' FROM generate_series(1, 260) AS n",
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
    ("limit=1.5", "invalid_parameter", "limit"),
    ("limit=1.", "invalid_parameter", "limit"),
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


@pytest.mark.parametrize("value", ["", "%00", "x%00", "x" * 101, "a%0Ab", "%FF", "%ED%A0%80", "%EF%BF%BD"])
@pytest.mark.parametrize("path", ["/v1/subscriptions", "/v1/dead-letters"])
def test_bad_event_type_filter_is_refused(api: Api, path: str, value: str) -> None:
    assert_problem(api.get(f"{path}?event_type={value}"), 422, "invalid_parameter", "event_type")


def test_a_whole_number_may_have_a_fraction_of_zero(api: Api) -> None:
    assert len(api.good("GET", "/v1/subscriptions?limit=1.0")["items"]) <= 1
    assert api.good("GET", "/v1/dead-letters?subscription_id=664.00")["items"] == []


def test_filter_that_no_type_can_match_finds_nothing(api: Api) -> None:
    for path in ("/v1/subscriptions", "/v1/dead-letters"):
        for value in ("no%20such", "%E2%80%AE", "%F0%9F%98%80", "%25"):
            assert api.good("GET", f"{path}?event_type={value}")["items"] == []
