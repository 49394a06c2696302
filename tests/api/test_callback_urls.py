"""Callback URLs at create and change: refused in one uniform way, or taken in their normal form."""

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import create, subscribe

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
def test_bad_callback_url_is_refused_at_create_and_change(running: RunningSystem, api: Api, url: str) -> None:
    """In one uniform way, which repeats nothing of the URL."""
    created = create(api)
    target = f"/v1/subscriptions/{created['id']}"
    before = api.get(target).body
    with running.nothing_stored():
        for answer in (
            api.post("/v1/subscriptions", {"event_type": "t", "callback_url": url}),
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
        ("https://bücher.example.com/", "https://xn--bcher-kva.example.com/"),
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
    changed = api.good("PATCH", f"/v1/subscriptions/{created['id']}", {"callback_url": "https://example.org"})
    assert (changed["callback_url"], changed["pending_callback_url"]) == ("https://example.org/", None)
    assert changed["verified"] is False


def test_pending_address_cannot_be_set_by_hand(running: RunningSystem, api: Api) -> None:
    created = create(api)
    answer = api.patch(f"/v1/subscriptions/{created['id']}", {"pending_callback_url": "https://example.org/"})
    assert_problem(answer, 422, "invalid_field", "pending_callback_url")
