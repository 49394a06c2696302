"""The page at /v1/docs, and that every problem leads to its part of it."""

import pytest

from hooksaga.api.reference import page
from tests.api.explained import Get, assert_explained
from tests.api.http_client import Answer, Api
from tests.api.running_system import RunningSystem


def test_the_page_is_served_without_a_key_and_lets_nothing_else_in(api: Api) -> None:
    answer = api.with_key(None).get("/v1/docs")
    assert (answer.status, answer.body.decode()) == (200, page())
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_head_of_the_page(api: Api) -> None:
    answer = api.call("HEAD", "/v1/docs")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", None),
        ("GET", "/nowhere/at/all/%2e%2e/x?a=b", None),
        ("PUT", "/v1/docs", b"{}"),
        ("POST", "/v1/events", b"{"),
        ("POST", "/v1/events/batch", b"[]"),
        ("GET", "/v1/events/evt_1", None),
        ("POST", "/v1/dead-letters/1/requeue", b""),
    ],
)
def test_a_problem_leads_to_its_explanation(
    running: RunningSystem, api: Api, method: str, path: str, body: bytes | None
) -> None:
    problem = api.call(method, path, body).json()
    assert_explained(problem, f"http://127.0.0.1:{running.port}{path}", getter(running, api))


def test_so_does_the_problem_of_one_item(running: RunningSystem, api: Api) -> None:
    (item,) = api.post("/v1/events/batch", {"items": [{"event_type": ""}]}).json()["items"]
    url = f"http://127.0.0.1:{running.port}/v1/events/batch"
    assert_explained(item["error"], url, getter(running, api))


def getter(running: RunningSystem, api: Api) -> Get:
    """Without a key, from the system itself."""

    def get(url: str) -> tuple[int, dict[str, str], str]:
        origin = f"http://127.0.0.1:{running.port}"
        assert url.startswith(f"{origin}/")
        answer: Answer = api.with_key(None).get(url.removeprefix(origin))
        return answer.status, dict(answer.headers), answer.body.decode()

    return get
