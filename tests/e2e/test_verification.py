"""The handshake: which answers verify an address, which do not, and that nothing else does."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.api.http_client import assert_problem
from tests.e2e.world import Subscriber, World
from tests.hostile_cases import note


def challenge_in(body: bytes) -> str:
    return json.loads(body)["challenge"]


GOOD_ANSWERS = {
    "JSON object": lambda token: web.json_response({"challenge": token, "more": 1}),
    "bare text": lambda token: web.Response(text=token),
    "JSON string": lambda token: web.Response(text=json.dumps(token)),
    "blanks around": lambda token: web.Response(text=f"\r\n {token}\n"),
    "status 201": lambda token: web.Response(text=token, status=201),
    "another content type": lambda token: web.Response(text=token, content_type="text/html"),
    "no content type": lambda token: web.Response(body=token.encode()),
}
BAD_ANSWERS = {
    "empty 200": lambda _: web.Response(),
    "204": lambda _: web.Response(status=204),
    "another text": lambda token: web.Response(text=token[:-1]),
    "text around": lambda token: web.Response(text=f"challenge={token}"),
    "another case": lambda token: web.Response(text=token.swapcase()),
    "list": lambda token: web.json_response([token]),
    "number": lambda _: web.json_response({"challenge": 1}),
    "deep JSON": lambda _: web.Response(text="[" * 5000),
    "byte-order mark": lambda token: web.Response(body=b"\xef\xbb\xbf" + token.encode()),
    "gzip": lambda token: _compressed(token),
    "not text": lambda _: web.Response(body=b"\xff\xfe\x00"),
    "404 with the challenge": lambda token: web.Response(text=token, status=404),
    "500 with the challenge": lambda token: web.json_response({"challenge": token}, status=500),
    "redirect": lambda token: web.Response(text=token, status=307, headers={"location": "/ok"}),
    "far too long": lambda token: web.Response(text=" " * 20_000 + token),
}


def _compressed(token: str) -> web.Response:
    response = web.Response(text=token)
    response.enable_compression(web.ContentCoding.gzip)
    return response


def answering(world: World, answer: Any) -> Subscriber:
    subscriber = world.subscribe(verify=False)
    world.recorder.script(subscriber.path, lambda body: answer(challenge_in(body)))
    return subscriber


@pytest.mark.hostile("The verification handshake")
@pytest.mark.parametrize("answer", GOOD_ANSWERS.values(), ids=GOOD_ANSWERS)
def test_answers_that_verify(world: World, answer: Any) -> None:
    subscriber = answering(world, answer)
    verified = world.api.good("POST", f"{subscriber.target}/verify")
    note(f"verified: {verified['verified']}".lower())
    assert verified["verified"] is True
    assert verified["eligible_since"] is not None
    challenge = world.recorder.challenges(subscriber.path)[0]
    challenge.verify(subscriber.secret)
    assert set(json.loads(challenge.body)) == {"type", "challenge"}
    again = world.api.good("POST", f"{subscriber.target}/verify")
    assert again["eligible_since"] == verified["eligible_since"]
    assert len(world.recorder.challenges(subscriber.path)) == 1


@pytest.mark.hostile("The verification handshake")
@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_answers_that_do_not_verify(world: World, answer: Any) -> None:
    subscriber = answering(world, answer)
    refused = world.api.post(f"{subscriber.target}/verify")
    problem = assert_problem(refused, 422, "verification_failed", "callback_url")
    token = challenge_in(world.recorder.challenges(subscriber.path)[0].body)
    assert token not in problem["detail"]
    assert world.api.good("GET", subscriber.target)["verified"] is False
    assert len(world.recorder.challenges(subscriber.path)) == 1


def test_each_challenge_is_new(world: World) -> None:
    subscriber = answering(world, lambda _: web.Response())
    for _ in range(3):
        world.api.post(f"{subscriber.target}/verify")
    tokens = {challenge_in(one.body) for one in world.recorder.challenges(subscriber.path)}
    ids = {one.header("webhook-id") for one in world.recorder.challenges(subscriber.path)}
    assert len(tokens) == len(ids) == 3
    assert all(len(token) >= 32 for token in tokens)


@pytest.mark.hostile("The verification handshake")
def test_address_changed_during_its_handshake_is_not_verified(world: World) -> None:
    """The receiver changes the address while it answers; the answer then proves nothing any more."""
    subscriber = world.subscribe(verify=False)

    def change_and_answer(body: bytes) -> web.Response:
        world.running.run(
            "UPDATE subscriptions SET callback_url = 'https://example.org/' WHERE id = %s", subscriber.id
        )
        return web.Response(text=challenge_in(body))

    world.recorder.script(subscriber.path, change_and_answer)
    assert_problem(world.api.post(f"{subscriber.target}/verify"), 409, "callback_url_changed")
    assert world.api.good("GET", subscriber.target)["verified"] is False
