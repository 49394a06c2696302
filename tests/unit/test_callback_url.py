"""The text rules of callback URLs, against the table of known tricks beside this file."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.callback_url import CallbackUrl, InvalidCallbackUrl, UrlRule, parse_callback_url
from tests.case_names import case_name

STRICT = AddressPolicy()
DEMO = AddressPolicy.parse("127.0.0.0/8")
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("callback_urls.jsonl").read_text("utf-8").splitlines()
]


def _name(row: dict[str, Any]) -> str:
    return case_name(row["url"])


def refusal(url: str, policy: AddressPolicy = STRICT) -> InvalidCallbackUrl:
    with pytest.raises(InvalidCallbackUrl) as raised:
        parse_callback_url(url, policy)
    return raised.value


def test_the_table_is_whole() -> None:
    assert len(ROWS) == 175


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["when"] == "text" and row["want"] == "refuse"], ids=_name
)
def test_refused_by_its_text(row: dict[str, Any]) -> None:
    refusal(row["url"])


@pytest.mark.parametrize("row", [row for row in ROWS if row["want"] == "accept"], ids=_name)
def test_accepted_and_in_normal_form(row: dict[str, Any]) -> None:
    parsed = parse_callback_url(row["url"], STRICT)
    assert parse_callback_url(parsed.url, STRICT) == parsed
    for address in row["dns"]:
        assert STRICT.permits(address)


@pytest.mark.parametrize("row", [row for row in ROWS if row["when"] == "resolve"], ids=_name)
def test_the_rest_is_decided_by_what_the_name_stands_for(row: dict[str, Any]) -> None:
    parse_callback_url(row["url"], STRICT)
    assert all(STRICT.permits(address) for address in row["dns"]) == (row["want"] == "accept")


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTPS://EXAMPLE.COM", "https://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:00443/", "https://example.com/"),
        ("https://example.com:/a", "https://example.com/a"),
        ("https://example.com:8443", "https://example.com:8443/"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://example.com?x=1", "https://example.com/?x=1"),
        ("https://example.com/?", "https://example.com/"),
        ("https://example.com/??", "https://example.com/??"),
        ("https://example.com/A%2fb%2F..%zz/../x", "https://example.com/A%2fb%2F..%zz/../x"),
        ("https://example.com/a?b=c?d&e=%00+%20", "https://example.com/a?b=c?d&e=%00+%20"),
        ('https://example.com/{a}|^`"<>', 'https://example.com/{a}|^`"<>'),
        ("https://b\u00fccher.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://B\u00dcCHER.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://xn--bcher-kva.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://fa\u00df.example.com/", "https://xn--fa-hia.example.com/"),
        ("https://\u24d4\u24e7\u24d0\u24dc\u24df\u24db\u24d4.\u24d2\u24de\u24dc/", "https://example.com/"),
        ("https://example\u3002com/", "https://example.com/"),
        ("https://8.8.8.8.:8443/", "https://8.8.8.8:8443/"),
        ("https://[2606:4700:0:0::0001]/x", "https://[2606:4700::1]/x"),
        ("https://r3---sn-x.example.com/", "https://r3---sn-x.example.com/"),
    ],
)
def test_normal_forms(url: str, normal: str) -> None:
    assert parse_callback_url(url, STRICT).url == normal


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://example.com/" + "a" * 481, UrlRule.LENGTH),
        ("https://example.com/" + "a" * 100_000, UrlRule.LENGTH),
        (" https://example.com/", UrlRule.CHARACTERS),
        ("https://example.com/\n", UrlRule.CHARACTERS),
        ("https://example.com/a b", UrlRule.CHARACTERS),
        ("https://example.com/caf\u00e9", UrlRule.CHARACTERS),
        ("https://example.com/?q=\u2713", UrlRule.CHARACTERS),
        ("https://example.com/\x7f", UrlRule.CHARACTERS),
        ("https://exam\u200bple.com/", UrlRule.CHARACTERS),
        ("https://exam\u00adple.com/", UrlRule.CHARACTERS),
        ("https://\u202eexample.com/", UrlRule.CHARACTERS),
        ("https://example.com/\ud800", UrlRule.CHARACTERS),
        ("http://example.com/", UrlRule.SCHEME),
        ("https:example.com", UrlRule.SCHEME),
        ("wss://example.com/", UrlRule.SCHEME),
        ("https://example.com/#", UrlRule.FRAGMENT),
        ("https://@example.com/", UrlRule.USERINFO),
        ("https://a:b@example.com/", UrlRule.USERINFO),
        ("https:///hook", UrlRule.HOST),
        ("https://./", UrlRule.HOST),
        ("https://example..com/", UrlRule.HOST),
        ("https://.example.com/", UrlRule.HOST),
        ("https://example.com../", UrlRule.HOST),
        ("https://-a.example.com/", UrlRule.HOST),
        ("https://a-.example.com/", UrlRule.HOST),
        ("https://a_b.example.com/", UrlRule.HOST),
        ("https://a%62.example.com/", UrlRule.HOST),
        ("https://" + "a" * 64 + ".example.com/", UrlRule.HOST),
        ("https://" + ".".join(["a" * 60] * 5) + "/", UrlRule.HOST),
        ("https://\u0301.example.com/", UrlRule.HOST),
        ("https://a\uff3fb.example.com/", UrlRule.HOST),
        ("https://a\uff20b.example.com/", UrlRule.HOST),
        ("https://a\uff1a8443.example.com/", UrlRule.HOST),
        ("https://a\uff0fb.example.com/", UrlRule.HOST),
        ("https://a\u2100b.example.com/", UrlRule.HOST),
        ("https://8.8.8.8\uff1a443/", UrlRule.HOST),
        ("https://xn--a.example.com/", UrlRule.HOST),
        ("https://xn--bcher-kvA1.example.com/", UrlRule.HOST),
        ("https://127.1/", UrlRule.HOST),
        ("https://0x7f000001/", UrlRule.HOST),
        ("https://8.8.8.08/", UrlRule.HOST),
        ("https://example.0x1/", UrlRule.HOST),
        ("https://[::1", UrlRule.HOST),
        ("https://[2606:4700::1]x/", UrlRule.HOST),
        ("https://[]/", UrlRule.HOST),
        ("https://::1/", UrlRule.HOST),
        ("https://intranet/", UrlRule.LOCAL_NAME),
        ("https://a.home.arpa/", UrlRule.LOCAL_NAME),
        ("https://abc.onion/", UrlRule.LOCAL_NAME),
        ("https://a.localhost/", UrlRule.LOCAL_NAME),
        ("https://127.0.0.1/", UrlRule.ADDRESS),
        ("https://\uff11\uff12\uff17.0.0.1/", UrlRule.ADDRESS),
        ("https://[::1]/", UrlRule.ADDRESS),
        ("https://[::ffff:8.8.8.8]/", UrlRule.ADDRESS),
        ("https://example.com:0/", UrlRule.PORT),
        ("https://example.com:65536/", UrlRule.PORT),
        ("https://example.com:-1/", UrlRule.PORT),
        ("https://example.com:+443/", UrlRule.PORT),
        ("https://example.com:443443/", UrlRule.PORT),
        ("https://example.com:22/", UrlRule.PORT),
        ("https://example.com:11211/", UrlRule.PORT),
    ],
)
def test_the_refusal_names_the_rule(url: str, rule: UrlRule) -> None:
    assert refusal(url).rule == rule


def test_500_characters_is_the_limit() -> None:
    url = "https://example.com/".ljust(500, "a")
    assert parse_callback_url(url, STRICT).url == url
    assert refusal(url + "a").rule == UrlRule.LENGTH


def test_the_limit_counts_the_normal_form() -> None:
    tail = "/".ljust(500 - len("https://example.com"), "a")
    assert len(parse_callback_url("https://example.com:443" + tail, STRICT).url) == 500
    assert refusal("https://b\u00fccher.example.com" + tail).rule == UrlRule.LENGTH


def test_the_demo_may_use_this_machine() -> None:
    for host in ("127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST.", "dead.localhost"):
        parse_callback_url(f"https://{host}:8443/hook", DEMO)
    for host in ("[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "localhost.localdomain", "intranet", "a.local"):
        refusal(f"https://{host}:8443/hook", DEMO)


def test_logs_get_the_origin_and_no_more() -> None:
    named = parse_callback_url("https://Example.com/secret?token=1", STRICT)
    assert named == CallbackUrl("https://example.com/secret?token=1", "example.com", 443)
    assert named.origin == "https://example.com:443"
    assert parse_callback_url("https://[2606:4700::1]:8443/x", STRICT).origin == "https://[2606:4700::1]:8443"


@pytest.mark.parametrize("row", [row for row in ROWS if row["want"] == "refuse"], ids=_name)
def test_messages_are_for_people_and_hold_no_part_of_the_url(row: dict[str, Any]) -> None:
    if row["when"] == "text":
        message = str(refusal(row["url"]))
        assert " " in message
        assert not any(part in message for part in ("127.0.0.1", "example.com", "169.254", "latest"))


@given(st.text())
def test_any_text_is_accepted_or_refused(text: str) -> None:
    for url in (text, "https://" + text, "https://example.com/" + text, f"https://example.com:{text}/"):
        try:
            parsed = parse_callback_url(url, STRICT)
        except InvalidCallbackUrl:
            continue
        assert parsed.url.isascii()
        assert parse_callback_url(parsed.url, STRICT) == parsed


@given(st.from_regex(r"https://[0-9a-fxA-F.:\[\]%]{1,30}/", fullmatch=True))
def test_hosts_made_of_digits_are_plain_addresses_or_refused(url: str) -> None:
    try:
        parsed = parse_callback_url(url, STRICT)
    except InvalidCallbackUrl:
        return
    last = parsed.host.rpartition(".")[2]
    assert not last.isdigit() or STRICT.permits(parsed.host)


WORDS = {
    "https://a.example.com/" + "x" * 2000: "callback_url must have at most 500 characters",
    "https://a.example.com/" + "x" * 500: "callback_url must have at most 500 characters",
    "https://a.example.com/ ": (
        "callback_url must not contain spaces, control or invisible characters, or backslashes"
    ),
    "https://a.example.com\\": (
        "callback_url must not contain spaces, control or invisible characters, or backslashes"
    ),
    "http://a.example/": "callback_url must start with https://",
    "https://a.example.com/#": "callback_url must not have a fragment (#)",
    "https://a.example.com/\u00fc": (
        "callback_url must percent-encode non-ASCII characters in its path and query"
    ),
    "https://u@a.example.com/": "callback_url must not contain a user name or password (@)",
    "https://[::1": "callback_url has unbalanced brackets around its host",
    "https://[::1]x/": "callback_url has unbalanced brackets around its host",
    "https://[2606:4700::1]:1]/": "the port of callback_url must be a number from 1 to 65535",
    "https://::1/": "an IPv6 address in callback_url must be in brackets",
    "https://a.example.com:0/": "the port of callback_url must be a number from 1 to 65535",
    "https://a.example.com:65536/": "the port of callback_url must be a number from 1 to 65535",
    "https://a.example.com:22/": "callback_url must not use port 22, the port of another service",
    "https:///": "callback_url must have a host",
    "https://[x]/": "the bracketed host of callback_url must be an IPv6 address",
    "https://[fe80::1%25eth0]/": "an IPv6 address in callback_url must not have a zone id",
    "https://1.2.3/": "an IPv4 address in callback_url must be four decimal numbers",
    "https://10.0.0.1/": "the address in callback_url is not permitted",
    "https://a_b.example.com/": "the host of callback_url must be a valid domain name",
    "https://\u00fc\u2488.example.com/": "the host of callback_url must be a valid domain name",
    "https://host/": "the host of callback_url must be a public DNS name",
}


@pytest.mark.parametrize(("url", "words"), WORDS.items(), ids=range(len(WORDS)))
def test_the_owner_of_a_bad_url_is_told_the_rule_that_it_breaks(url: str, words: str) -> None:
    assert str(refusal(url)) == words


SPECIAL_USE_NAMES = {
    "RFC 6761": "example invalid localhost test 10.in-addr.arpa 16.172.in-addr.arpa 31.172.in-addr.arpa "
    "168.192.in-addr.arpa",
    "RFC 6762": "local 254.169.in-addr.arpa 8.e.f.ip6.arpa b.e.f.ip6.arpa",
    "RFC 7686": "onion",
    "RFC 8375": "home.arpa",
    "RFC 8880": "ipv4only.arpa 170.0.0.192.in-addr.arpa 171.0.0.192.in-addr.arpa",
    "RFC 9031": "6tisch.arpa",
    "RFC 9140": "eap-noob.arpa",
    "RFC 9462": "resolver.arpa",
    "RFC 9476": "alt",
    "RFC 9665": "service.arpa",
    "ICANN 2024-07-29": "internal",
    "reverse look-ups": "arpa 8.8.8.8.in-addr.arpa 1.0.0.2.ip6.arpa",
    "Kubernetes": "svc web.svc default.svc.cluster.local web.default.svc pod.cluster.local cluster.local",
    "services inside": "consul web.service.consul host.docker.internal",
    "networks inside": "corp home intranet lan localdomain mail private workgroup",
}


@pytest.mark.parametrize(
    "name", [name for names in SPECIAL_USE_NAMES.values() for name in names.split()], ids=str
)
def test_a_name_that_is_not_for_the_public_dns_is_refused(name: str) -> None:
    """Itself, below it, and however it is spelled; not where it is a label before a public suffix."""
    for host in (name, f"hook.{name}", f"hook.{name}.", f"HOOK.{name.upper()}", f"hook\uff0e{name}"):
        assert refusal(f"https://{host}/").rule in (UrlRule.LOCAL_NAME, UrlRule.HOST)
    assert refusal(f"https://hook.{name}/").rule == UrlRule.LOCAL_NAME
    parse_callback_url(f"https://{name}.example.com/", STRICT)
    parse_callback_url(f"https://my{name.rpartition('.')[2]}.com/", STRICT)


@pytest.mark.parametrize(
    "host", ["example.com", "example.net", "example.org", "svc.com", "arpa.dev", "alt.io"]
)
def test_names_of_the_public_dns_are_taken(host: str) -> None:
    assert parse_callback_url(f"https://{host}/", STRICT).host == host


@pytest.mark.parametrize("port", [1, 2, 8443, 65535])
def test_ports_from_the_first_to_the_last(port: int) -> None:
    assert parse_callback_url(f"https://a.example.com:{port}/", STRICT).port == port


def test_a_host_has_253_characters_at_the_most() -> None:
    host = ".".join(["a" * 63] * 3 + ["b" * 57, "com"])
    assert len(host) == 253
    assert parse_callback_url(f"https://{host}/", STRICT).host == host
    assert refusal(f"https://x{host}/").rule == "host"


def test_a_colon_after_a_port_is_no_port() -> None:
    assert refusal("https://a.example.com:443:443/").rule == "host"


def test_a_zone_is_refused_as_a_host() -> None:
    assert refusal("https://[fe80::1%eth0]/").rule == "host"
