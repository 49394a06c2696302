"""The handshake: which answers verify an address, which do not, and that nothing else does."""

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from tests.api.http_client import assert_problem
from tests.e2e.world import Subscriber, World
from tests.hostile_cases import note


def challenge_in(body: bytes) -> str:
    return json.loads(body)["challenge"]


GOOD_ANSWERS = {
    "JSON object": lambda token: web.json_response({"challenge": token}),
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
    "JSON object with more than the challenge": lambda token: web.json_response(
        {"challenge": token, "id": 1}
    ),
    "far too long": lambda token: web.Response(text=" " * 20_000 + token),
}


def _compressed(token: str) -> web.Response:
    response = web.Response(text=token)
    response.enable_compression(web.ContentCoding.gzip)
    return response


def _httpbin(body: bytes, headers: Any) -> Any:
    return {
        "args": {},
        "data": body.decode(),
        "headers": dict(headers),
        "json": json.loads(body),
        "method": "POST",
    }


Echo = Callable[[bytes, Any], web.Response]
ECHOES: dict[str, Echo] = {
    "the body as it came": lambda body, _: web.Response(body=body, content_type="application/json"),
    "the body as plain text": lambda body, _: web.Response(body=body, content_type="text/plain"),
    "the body written anew": lambda body, _: web.json_response(dict(sorted(json.loads(body).items()))),
    "the body as a JSON string": lambda body, _: web.json_response(body.decode()),
    "the body in base64": lambda body, _: web.Response(text=base64.b64encode(body).decode()),
    "the body within more, as httpbin": lambda body, headers: web.json_response(_httpbin(body, headers)),
    "its members among others": lambda body, headers: web.json_response(
        {**_httpbin(b"{}", headers), **json.loads(body)}
    ),
    "its members as a new resource": lambda body, _: web.json_response(
        {"id": 7, **json.loads(body)}, status=201
    ),
    "known members only": lambda body, _: web.json_response(
        {"id": 7, "challenge": challenge_in(body)}, status=201
    ),
    "a list of its values": lambda body, _: web.json_response(list(json.loads(body).values())),
    "the whole request": lambda body, headers: web.Response(
        text="\r\n".join(
            ["POST / HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", body.decode()]
        )
    ),
    "the headers": lambda _, headers: web.json_response(dict(headers)),
    "the body in a page": lambda body, _: web.Response(
        text=f"<pre>{body.decode()}</pre>", content_type="text/html"
    ),
    "the body in a form": lambda body, _: web.Response(text="body=" + quote(body.decode())),
    "JSON lines": lambda body, _: web.Response(body=body + b"\n" + body),
}


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


@pytest.mark.hostile("The verification handshake")
@pytest.mark.parametrize("echo", ECHOES.values(), ids=[f"echo of {name}" for name in ECHOES])
def test_a_server_that_repeats_what_it_gets_is_not_verified(world: World, echo: Echo) -> None:
    """Such a server answers everybody alike: it has not agreed to anything."""
    subscriber = world.subscribe(verify=False)
    world.recorder.script(
        subscriber.path, lambda body: echo(body, dict(world.recorder.challenges(subscriber.path)[-1].headers))
    )
    refused = world.api.post(f"{subscriber.target}/verify")
    problem = assert_problem(refused, 422, "verification_failed", "callback_url")
    assert "the challenge only" in problem["detail"]
    assert world.api.good("GET", subscriber.target)["verified"] is False


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
