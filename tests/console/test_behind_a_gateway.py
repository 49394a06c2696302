"""The pages behind API Gateway, whose stage stands before every path, as the function `console` answers them."""

import base64
from typing import Any
from urllib.parse import urlencode

import pytest

from hooksaga.api.asgi import build_app
from hooksaga.aws.gateway import answer_gateway
from hooksaga.console.routes import ROUTES
from tests.api.running_system import RunningSystem
from tests.console.pages import Pages, tags

API = "abc.execute-api.eu-central-1.amazonaws.com"
HOST = "hidden.example.com"
"""Of what stands before the API: links do not begin with it."""


def ask(running: RunningSystem, method: str, path: str, body: str = "", **headers: str) -> dict[str, Any]:
    """The function's answer to a proxy event of the stage `api`."""
    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    event = {
        "httpMethod": method,
        "path": path,
        "headers": given,
        "stageVariables": {"PUBLIC_URL": f"https://{API}/api"},
        "requestContext": {"path": f"/api{path}", "requestId": "r"},
        "body": base64.b64encode(body.encode()).decode() or None,
        "isBase64Encoded": bool(body),
    }
    return running.answer(answer_gateway(build_app(running.services, ROUTES), event))


@pytest.fixture(scope="module")
def cookie(running: RunningSystem) -> str:
    form = urlencode({"key": running.key, "next": "/console/events"})
    answer = ask(
        running,
        "POST",
        "/console/sign-in",
        form,
        origin=f"https://{API}",
        content_type="application/x-www-form-urlencoded",
    )
    assert answer["statusCode"] == 303
    assert answer["multiValueHeaders"]["location"] == ["/api/console/events"]
    (line,) = answer["multiValueHeaders"]["set-cookie"]
    assert "; Path=/api/console;" in line
    assert line.endswith("; Secure")
    return str(line.partition(";")[0])


@pytest.mark.parametrize(
    "path", ["/console", "/console/events", "/console/subscriptions/new", "/console/keys"]
)
def test_every_link_has_the_stage_before_it(running: RunningSystem, cookie: str, path: str) -> None:
    answer = ask(running, "GET", path, cookie=cookie)
    assert answer["statusCode"] == 200
    targets = [
        str(attributes[name])
        for _, attributes in tags(answer["body"])
        for name in ("href", "src", "action")
        if name in attributes
    ]
    assert targets
    assert [target for target in targets if not target.startswith(("/api/console", "#"))] == []
    assert 'aria-current="page"' in answer["body"]


def test_without_a_session_it_leads_to_the_sign_in(running: RunningSystem) -> None:
    answer = ask(running, "GET", "/console/deliveries")
    assert answer["multiValueHeaders"]["location"] == ["/api/console/sign-in?next=%2Fconsole%2Fdeliveries"]


def test_a_portals_link_names_the_stage(running: RunningSystem, cookie: str) -> None:
    page = ask(running, "GET", "/console/portal-links", cookie=cookie)["body"]
    token = next(str(one["value"]) for tag, one in tags(page) if tag == "input" and one.get("name") == "csrf")
    form = urlencode({"csrf": token, "tenant_id": "acme"})
    answer = ask(
        running,
        "POST",
        "/console/portal-links",
        form,
        cookie=cookie,
        origin=f"https://{HOST}",
        content_type="application/x-www-form-urlencoded",
    )
    assert answer["multiValueHeaders"]["location"] == ["/api/console/portal-links"]
    once = answer["multiValueHeaders"]["set-cookie"][0].partition(";")[0]
    shown = ask(running, "GET", "/console/portal-links", cookie=f"{cookie}; {once}")
    (href,) = [
        str(one["href"]) for tag, one in tags(shown["body"]) if "/portal/enter" in str(one.get("href"))
    ]
    assert href.startswith(f"https://{API}/api/portal/enter?token=")
    entered = ask(running, "GET", "/portal/enter")
    assert entered["multiValueHeaders"]["location"] == ["/api/portal/ended"]


def test_a_session_that_was_signed_out_is_no_use_to_any_process(running: RunningSystem) -> None:
    """The function that serves the next page may be another copy: what has ended is in the database."""
    pages = Pages(running.port).signed_in(running.key)
    cookie = f"hooksaga_console={pages.cookies['hooksaga_console']}"
    assert ask(running, "GET", "/console", cookie=cookie)["statusCode"] == 200
    answer = ask(
        running,
        "POST",
        "/console/sign-out",
        urlencode({"csrf": pages.csrf()}),
        cookie=cookie,
        origin=f"https://{API}",
        content_type="application/x-www-form-urlencoded",
    )
    assert answer["statusCode"] == 303
    assert ask(running, "GET", "/console", cookie=cookie)["statusCode"] == 303
    assert pages.get("/console").status == 303
