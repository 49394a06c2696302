"""Receivers that misbehave below HTTP, through the whole system: a Failed attempt with its word, in time."""

import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hooksaga.cli.attempts import result_of
from hooksaga.cli.event_tree import attempt_line
from hooksaga.local.tls import Certificates, ensure_certificates
from tests.delivery.breaking_listener import (
    Stage,
    handshake_only,
    plain_http_listener,
    resetting_listener,
    self_signed_tls,
)
from tests.delivery.hostile_receiver import (
    Authority,
    Behaviour,
    dribbling,
    endlessly,
    raw,
    receiver,
    well,
)
from tests.delivery.test_hostile_answers import NOT_HTTP
from tests.delivery.test_http_sender_faults import never, resetting
from tests.delivery.test_reused_connections import ENDS, Ending
from tests.e2e.raw_receivers import RawReceivers
from tests.e2e.world import Subscriber, World

FAILED = b"HTTP/1.1 500 X\r\n"
DEADLINE_MS = 1000
SLACK_MS = 4000
"""For a machine that is busy with all of them at once."""

# What the receiver does after its handshake, and the word.
BEHAVIOURS: dict[str, tuple[Behaviour, str]] = {
    **{name: (behave, "protocol_error") for name, behave in NOT_HTTP.items()},
    "reset instead of an answer": (resetting(b""), "connection_reset"),
    "reset within the head": (resetting(b"HTTP/1.1 200 OK\r\nContent-Le"), "connection_reset"),
    "reset within the body of a 500": (resetting(FAILED + b"Content-Length: 9\r\n\r\nab"), "http_500"),
    "close instead of an answer": (raw(b""), "connection_reset"),
    "silence": (never, "timeout_total"),
    "a head of one byte now and then": (dribbling(b"HTTP/1.1 500 ", b"a" * 10_000, 0.1), "timeout_total"),
    "a body of one byte now and then": (
        dribbling(FAILED + b"Content-Length: 9999\r\n\r\n", b"a" * 9999, 0.1),
        "http_500",
    ),
    "an endless body": (endlessly(FAILED + b"\r\n", b"a" * 10_000), "http_500"),
    "an endless chunk extension": (
        endlessly(FAILED + b"Transfer-Encoding: chunked\r\n\r\n5;", b"a" * 10_000),
        "http_500",
    ),
    "a body shorter than promised": (raw(FAILED + b"Content-Length: 50\r\n\r\nhello"), "http_500"),
    "a redirect to loopback": (
        raw(b"HTTP/1.1 307 X\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"),
        "http_307",
    ),
    "switching protocols": (
        raw(b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"),
        "http_101",
    ),
}
PortOf = Callable[[RawReceivers, Authority], int]


def resetting_at(stage: Stage) -> PortOf:
    return lambda receivers, authority: receivers.open(resetting_listener(stage, authority.tls()))


def with_tls(context_of: Callable[[Authority], ssl.SSLContext]) -> PortOf:
    return lambda receivers, authority: receivers.open(receiver(well, context_of(authority))).port


# What keeps the request from being sent at all, and the word.
BEFORE_THE_REQUEST: dict[str, tuple[PortOf, str]] = {
    **{f"reset at {stage.value}": (resetting_at(stage), "connection_reset") for stage in Stage},
    "expired certificate": (with_tls(lambda authority: authority.tls(age_days=30)), "tls_error"),
    "certificate of tomorrow": (with_tls(lambda authority: authority.tls(age_days=-2)), "tls_error"),
    "certificate of another host": (
        with_tls(lambda authority: authority.tls("other.example.com")),
        "tls_error",
    ),
    "self-signed certificate": (with_tls(lambda _: self_signed_tls()), "tls_error"),
    "TLS 1.0": (
        lambda receivers, authority: receivers.open(
            handshake_only(authority.outdated_tls(ssl.TLSVersion.TLSv1))
        ),
        "tls_error",
    ),
    "clear text instead of TLS": (
        lambda receivers, _: receivers.open(plain_http_listener()),
        "tls_error",
    ),
}


@dataclass(frozen=True)
class Sent:
    event_id: str
    word: str


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca.pem")


@pytest.fixture(scope="module")
def certificates(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The system trusts the authority of the raw receivers, too."""
    own = ensure_certificates(tmp_path_factory.mktemp("tls"))
    both = own.ca.with_name("both.pem")
    both.write_bytes(own.ca.read_bytes() + Path(authority.ca_file).read_bytes())
    return Certificates(both, own.server)


@pytest.fixture(scope="module")
def receivers(world: World) -> Iterator[RawReceivers]:
    """Closed before the system, which would wait for what hangs."""
    raw_receivers = RawReceivers()
    yield raw_receivers
    raw_receivers.close()


@pytest.fixture(scope="module")
def sent(world: World, receivers: RawReceivers, authority: Authority) -> dict[str, Sent]:
    """One event for each of them, all under way at the same time."""
    made: dict[str, Sent] = {}
    for name, (behave, word) in BEHAVIOURS.items():
        made[name] = Sent(send(world, receivers.open(receiver(behave, authority.tls())).url()), word)
    for name, (port_of, word) in BEFORE_THE_REQUEST.items():
        url = f"https://127.0.0.1:{port_of(receivers, authority)}/hook"
        made[name] = Sent(send(world, url), word)
    return made


def send(world: World, url: str) -> str:
    """An event for a subscriber at that address, whose verification is taken as done."""
    return world.post(subscribe_at(world, url))


def subscribe_at(world: World, url: str) -> Subscriber:
    subscriber = world.subscribe(verify=False, max_retry_limit=1, timeout_seconds=DEADLINE_MS // 1000)
    world.api.good("PATCH", subscriber.target, {"callback_url": url})
    world.running.verify_by_hand(subscriber.id)
    return subscriber


@pytest.mark.hostile("Receivers, through the whole system")
@pytest.mark.parametrize("name", [*BEHAVIOURS, *BEFORE_THE_REQUEST])
def test_it_is_a_failed_attempt_with_its_word(world: World, sent: dict[str, Sent], name: str) -> None:
    saga = world.ended(sent[name].event_id)
    assert (saga["status"], saga["final_error_code"]) == ("DeadLettered", sent[name].word)
    (attempt,) = saga["attempts"]
    assert (attempt["status"], attempt["error_code"]) == ("Failed", sent[name].word)
    assert attempt["resolved_ip"] == "127.0.0.1"
    assert attempt["duration_ms"] < DEADLINE_MS + SLACK_MS


def test_a_good_receiver_among_them_is_served(world: World, sent: dict[str, Sent]) -> None:
    assert world.ended(world.post(world.subscribe()))["status"] == "Completed"


@pytest.mark.hostile("Receivers, through the whole system")
def test_a_kept_connection_that_ends_at_that_moment_costs_no_attempt(
    world: World, receivers: RawReceivers, authority: Authority
) -> None:
    """The only attempt that there may be. The log of it says that the POST went out twice."""
    receiving = receivers.open(receiver(Ending(ENDS["with a farewell"]), authority.tls()))
    subscriber = subscribe_at(world, receiving.url())
    first = world.post(subscriber, b"1")
    assert world.ended(first)["status"] == "Completed"
    second = world.post(subscriber, b"2")
    saga = world.ended(second)
    assert (saga["status"], saga["attempt_count"]) == ("Completed", 1)
    assert [(one.body, one.header("webhook-id")) for one in receiving.requests] == [
        (b"1", first),
        (b"2", second),
        (b"2", second),
    ]
    logged = world.api.good("GET", f"/v1/attempts?subscription_id={subscriber.id}")["items"]
    assert [one["reconnected"] for one in logged] == [True, False]
    assert [result_of(one) for one in logged] == ["200 (reconnected)", "200"]
    assert world.api.good("GET", f"/v1/attempts/{logged[0]['id']}")["reconnected"] is True
    assert "  reconnected  " in attempt_line(saga["attempts"][0])
