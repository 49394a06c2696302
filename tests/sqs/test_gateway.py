"""Proxy events of API Gateway to ASGI and back."""

import base64
import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hooksaga.api.problem_answers import EXCEPTION_HANDLERS
from hooksaga.api.query_parameters import NOT_UTF8
from hooksaga.aws.gateway import answer_gateway
from hooksaga.aws.triggers import UnexpectedEvent
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import check_idempotency_key


def event(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "httpMethod": "POST",
        "path": "/echo",
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": None,
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {"requestId": "request-1"},
        "body": None,
        "isBase64Encoded": False,
    }
    return {**usual, **changes}


async def echo(request: Request) -> Response:
    seen = {
        "path": request.url.path,
        "query": request.query_params.multi_items(),
        "keys": request.headers.getlist("idempotency-key"),
        "body": (await request.body()).decode("latin-1"),
        "disconnected": await request.is_disconnected(),
    }
    response = Response(json.dumps(seen), 201, media_type="application/json")
    response.headers.append("x-twice", "1")
    response.headers.append("x-twice", "2")
    return response


async def break_down(_: Request) -> Response:
    raise RuntimeError("a fault of ours")


APP = Starlette(
    routes=[Route("/break", break_down, methods=["POST"]), Route("/{rest:path}", echo, methods=["POST"])],
    exception_handlers=EXCEPTION_HANDLERS,
)


async def answer(**changes: Any) -> tuple[dict[str, Any], Any]:
    given = await answer_gateway(APP, event(**changes))
    return given, json.loads(given["body"])


async def test_every_value_of_a_repeated_header_arrives_and_leaves() -> None:
    given, seen = await answer(
        headers={"Idempotency-Key": "b"}, multiValueHeaders={"Idempotency-Key": ["a", "b"]}
    )
    assert seen["keys"] == ["a", "b"]
    assert given["multiValueHeaders"]["x-twice"] == ["1", "2"]
    assert given["statusCode"] == 201


async def test_headers_that_came_once_only_arrive() -> None:
    _, seen = await answer(headers={"IDEMPOTENCY-KEY": "a"})
    assert seen["keys"] == ["a"]


async def test_null_headers_and_parameters_are_none() -> None:
    _, seen = await answer(headers=None)
    assert (seen["keys"], seen["query"], seen["body"]) == ([], [], "")


@pytest.mark.parametrize("form", ["headers", "multiValueHeaders"])
async def test_what_is_null_was_not_sent(form: str) -> None:
    given = {"X-None": None, "Idempotency-Key": "a"}
    several = {"X-None": None, "X-Nones": [None], "Idempotency-Key": [None, "a"]}
    _, seen = await answer(**{"headers": None, form: several if form == "multiValueHeaders" else given})
    assert seen["keys"] == ["a"]


async def test_null_instead_of_objects_is_none() -> None:
    given, seen = await answer(headers=None, requestContext=None, multiValueQueryStringParameters={"a": None})
    assert (given["statusCode"], seen["keys"], seen["query"]) == (201, [], [])


async def test_no_two_texts_become_one_header() -> None:
    """An encoding that puts a question mark for what it has not makes one key out of two."""
    keys = ["order-\u20ac", "order-\u0416", "order-\xe9", "order-?", "order-\ud83d", "order-\udcff"]
    _, seen = await answer(multiValueHeaders={"Idempotency-Key": keys})
    assert len(set(seen["keys"])) == len(keys)
    refused = []
    for key in seen["keys"]:
        try:
            check_idempotency_key([key])
        except InvalidInput:
            refused.append(key)
    assert refused == [key for key in seen["keys"] if key != "order-?"]


@pytest.mark.parametrize("value", ["\ud83d \ud800", "\ufffd"])
async def test_a_parameter_that_was_no_utf_8_cannot_be_taken_for_another(value: str) -> None:
    _, seen = await answer(queryStringParameters={"q": value})
    assert NOT_UTF8 in seen["query"][0][1]


@pytest.mark.parametrize("path", ["/%FF", "/\ud800", "/\u20ac"])
async def test_a_path_that_is_no_utf_8_is_a_path_like_any_other(path: str) -> None:
    given, _ = await answer(path=path, requestContext={"path": f"/prod{path}"})
    assert given["statusCode"] == 201


@pytest.mark.parametrize("body", [{"event_type": "a"}, [1], 7])
async def test_a_body_that_is_no_text_is_not_of_this_gateway(body: object) -> None:
    with pytest.raises(UnexpectedEvent, match="the body of a request"):
        await answer(body=body)


async def test_parameters_arrive_as_they_were_sent() -> None:
    values = {"q": ["a b", "ü&x=1"], "empty": [""]}
    _, seen = await answer(multiValueQueryStringParameters=values)
    assert seen["query"] == [["q", "a b"], ["q", "ü&x=1"], ["empty", ""]]


async def test_a_path_is_decoded_once() -> None:
    _, seen = await answer(path="/a%20b/%2525")
    assert seen["path"] == "/a b/%25"


@pytest.mark.parametrize("raw", [b'{"n": 1.10}', b"\xff\xfe", b"", "ü".encode()])
async def test_a_binary_body_is_decoded_once(raw: bytes) -> None:
    _, seen = await answer(body=base64.b64encode(raw).decode(), isBase64Encoded=True)
    assert seen["body"].encode("latin-1") == raw


async def test_a_text_body_is_utf_8() -> None:
    _, seen = await answer(body="ü")
    assert seen["body"].encode("latin-1") == "ü".encode()


@pytest.mark.parametrize("body", ["%%%", "a", "YQ==\n"])
async def test_a_wrong_base64_flag_is_the_clients_fault(body: str) -> None:
    given, problem = await answer(body=body, isBase64Encoded=True)
    assert given["statusCode"] == 400
    assert (problem["code"], problem["request_id"]) == ("body_not_base64", "request-1")


@pytest.mark.parametrize(
    ("whole", "type_"),
    [
        ("/prod/break", "/prod/v1/docs#error-internal_error"),
        ("/prod%C3%BC/break", "/prod%C3%BC/v1/docs#error-internal_error"),
        ("/break", "/v1/docs#error-internal_error"),
        ("/somewhere/else", "/v1/docs#error-internal_error"),
        (None, "/v1/docs#error-internal_error"),
    ],
)
async def test_a_problems_type_has_what_stands_before_the_path(whole: str | None, type_: str) -> None:
    context = {"requestId": "request-1", "path": whole}
    _, problem = await answer(path="/break", requestContext=context)
    assert problem["type"] == type_


async def test_so_has_that_of_a_body_that_cannot_be_decoded() -> None:
    context = {"requestId": "request-1", "path": "/prod/echo"}
    _, problem = await answer(body="%%%", isBase64Encoded=True, requestContext=context)
    assert problem["type"] == "/prod/v1/docs#error-body_not_base64"


async def test_a_route_is_found_behind_a_stage() -> None:
    given, _ = await answer(path="/a%20b", requestContext={"path": "/prod/a%20b"})
    assert given["statusCode"] == 201


async def test_a_fault_of_ours_is_answered_as_a_problem() -> None:
    given, problem = await answer(path="/break")
    assert given["statusCode"] == 500
    assert problem["code"] == "internal_error"
    assert problem["request_id"] == "request-1"
    assert "a fault of ours" not in given["body"]


async def test_a_fault_before_any_answer_fails_the_invocation() -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("no answer at all")

    with pytest.raises(RuntimeError, match="no answer at all"):
        await answer_gateway(broken, event())
