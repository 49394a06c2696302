"""The handshake against those who want to learn, to repeat, or to be waited for."""

import json
import socket
import time

import pytest
from aiohttp import web

from hooksaga.local.tls import Certificates
from tests.api.http_client import Answer, assert_problem
from tests.delivery.hostile_receiver import dribbling, receiver
from tests.delivery.test_http_sender_faults import never
from tests.e2e.raw_receivers import RawReceivers
from tests.e2e.test_verification import answering, challenge_in
from tests.e2e.world import Subscriber, World
from tests.scheduling import long_but

pytestmark = pytest.mark.hostile("The verification handshake")


def test_an_old_challenge_answers_nothing(world: World) -> None:
    """Each is for its one exchange: repeated in the next it is refused, and only the new one verifies."""
    subscriber = answering(world, lambda _: web.Response())
    assert_problem(world.api.post(f"{subscriber.target}/verify"), 422, "verification_failed", "callback_url")
    first = challenge_in(world.recorder.challenges(subscriber.path)[0].body)
    world.recorder.script(subscriber.path, lambda _body: web.Response(text=first))
    assert_problem(world.api.post(f"{subscriber.target}/verify"), 422, "verification_failed", "callback_url")
    assert world.api.good("GET", subscriber.target)["verified"] is False
    world.recorder.script(subscriber.path, lambda body: web.Response(text=challenge_in(body)))
    assert world.api.good("POST", f"{subscriber.target}/verify")["verified"] is True


DEADLINES = {
    "silence": (never, 1, 1),
    "a head of one byte now and then": (dribbling(b"HTTP/1.1 200 ", b"a" * 1000, 0.05), 1, 1),
    "silence, where deliveries may take 30 seconds": (never, 30, 10),
}


@pytest.mark.parametrize("kind", long_but(DEADLINES, "silence", "a head of one byte now and then"))
def test_the_handshake_has_a_deadline_of_its_own(world: World, certificates: Certificates, kind: str) -> None:
    """The subscription's, and ten seconds at most."""
    behave, of_subscription, used = DEADLINES[kind]
    receivers = RawReceivers()
    try:
        listening = receivers.open(receiver(behave, certificates.server_context()))
        subscriber = world.subscribe(verify=False, timeout_seconds=of_subscription)
        world.api.good("PATCH", subscriber.target, {"callback_url": listening.url()})
        began = time.monotonic()
        answer = world.api.post(f"{subscriber.target}/verify")
        assert used - 0.1 < time.monotonic() - began < used + 5
    finally:
        receivers.close()
    problem = assert_problem(answer, 422, "verification_failed", "callback_url")
    assert "timeout_total" in problem["detail"]


REFUSED = ["10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]"]


def test_a_refused_address_answers_the_same_whatever_is_there(world: World) -> None:
    """No banner, no open or closed port, no address: one answer to all of them, and nobody is called."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listening:
        open_port = listening.getsockname()[1]
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as unused:
            closed_port = unused.getsockname()[1]
        answers = [
            verify_at(world, f"https://{host}:{port}/hook")
            for host in REFUSED
            for port in (open_port, closed_port)
        ]
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()
    shown = {_without_id(answer) for answer in answers}
    assert len(shown) == 1
    (text,) = shown
    assert not [part for part in ("10.0.0.1", "169.254", "::1", str(open_port)) if part in text]


def verify_at(world: World, url: str) -> Answer:
    """A subscription whose stored address is changed behind the back of the API."""
    subscriber: Subscriber = world.subscribe(verify=False)
    world.running.run("UPDATE subscriptions SET callback_url = %s WHERE id = %s", url, subscriber.id)
    answer = world.api.post(f"{subscriber.target}/verify")
    assert_problem(answer, 422, "verification_failed", "callback_url")
    return answer


def _without_id(answer: Answer) -> str:
    return json.dumps({**answer.json(), "request_id": None, "instance": None}, sort_keys=True)


@pytest.mark.parametrize("status", [200, 404, 500])
def test_no_answer_of_a_receiver_is_shown(world: World, status: int) -> None:
    """A handshake that fails says why in our words; the body, its headers and its reason are not repeated."""
    subscriber = world.subscribe(verify=False)

    def answer(_body: bytes) -> web.Response:
        headers = {"x-canary": "canary-header", "server": "canary-server"}
        return web.Response(text="canary-body", status=status, headers=headers, reason="canary-reason")

    world.recorder.script(subscriber.path, answer)
    refused = world.api.post(f"{subscriber.target}/verify")
    assert_problem(refused, 422, "verification_failed", "callback_url")
    assert b"canary" not in refused.body
    assert not [value for value in refused.headers.values() if "canary" in value]
