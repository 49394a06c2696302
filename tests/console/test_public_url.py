"""Links begin with the configured address, and with the Host header only on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.http_client import Answer, Api, assert_problem
from tests.api.running_system import RunningSystem
from tests.console.pages import Pages

PUBLIC = "https://hooks.example.com:8443/webhooks"
ORIGIN = "https://hooks.example.com:8443"


@pytest.fixture(scope="module")
def public(module_database: str, folder: Path) -> Iterator[RunningSystem]:
    """A system that knows by which address browsers reach it."""
    system = RunningSystem(folder, database_url=module_database, public_url=PUBLIC + "/")
    yield system
    system.stop()


def link_for(running: RunningSystem, host: str) -> Answer:
    """The answer to a request that came by this name."""
    body = b'{"tenant_id":"acme"}'
    head = (
        f"POST /v1/portal-links HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {running.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return Api(running.port, running.key).send(head.encode() + body)


FOREIGN = ["evil.example.com", "127.0.0.1.evil.com", "hooks.example.com", "10.0.0.1"]


@pytest.mark.parametrize("host", FOREIGN)
def test_no_link_begins_with_what_a_caller_says(running: RunningSystem, host: str) -> None:
    problem = assert_problem(link_for(running, host), 409, "public_url_missing")
    assert "HOOKSAGA_PUBLIC_URL" in problem["detail"]
    assert host not in problem["detail"]


def test_a_host_with_a_user_in_front_is_refused(running: RunningSystem, public: RunningSystem) -> None:
    for system in (running, public):
        assert_problem(link_for(system, "localhost:80@evil.com"), 400, "invalid_host")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "localhost"])
def test_on_this_machine_it_begins_with_the_host(running: RunningSystem, host: str) -> None:
    named = host.format(port=running.port)
    url = link_for(running, named).json()["url"]
    assert url.startswith(f"http://{named}/portal/enter?token=")


@pytest.mark.parametrize("host", [*FOREIGN, "127.0.0.1", "localhost"])
def test_once_it_is_configured_nothing_else_counts(public: RunningSystem, host: str) -> None:
    answer = link_for(public, host)
    assert answer.status == 201
    assert answer.json()["url"].startswith(f"{PUBLIC}/portal/enter?token=")


def test_the_link_into_the_console_begins_with_it(public: RunningSystem, running: RunningSystem) -> None:
    local = "http://127.0.0.1:1"
    assert public.answer(public.system.console_link(local)).startswith(f"{PUBLIC}/console/sign-in?token=")
    assert running.answer(running.system.console_link(local)).startswith(f"{local}/console/sign-in?token=")


def test_the_page_that_makes_links_says_what_is_missing(
    running: RunningSystem, public: RunningSystem
) -> None:
    for system, shown in ((running, "HOOKSAGA_PUBLIC_URL"), (public, f"{PUBLIC}/portal/enter?token=")):
        pages = Pages(system.port).signed_in(system.key)
        fields = {"csrf": pages.csrf(), "tenant_id": "acme"}
        answer = pages.post_raw(
            "/console/portal-links", fields, host="any.example.com", origin="https://any.example.com"
        )
        if answer.status == 303:
            answer = pages.get(answer.headers["location"], host="any.example.com")
        assert shown in answer.text


def test_forms_and_cookies_go_by_it_behind_a_proxy_that_hides_the_host(public: RunningSystem) -> None:
    """Such a proxy asks for 127.0.0.1: the browser's origin is another, and its cookies must need TLS."""
    pages = Pages(public.port)
    answer = pages.post_raw("/console/sign-in", {"key": public.key}, origin=ORIGIN)
    assert answer.status == 303
    assert "; Secure" in answer.cookies[0]
    for origin in ("https://hooks.example.com", "http://hooks.example.com:8443", "https://evil.example.com"):
        assert pages.post_raw("/console/sign-in", {"key": public.key}, origin=origin).status == 403


def test_no_answer_repeats_the_name_that_a_request_came_by(running: RunningSystem) -> None:
    host, pages = "evil.example.com", Pages(running.port).signed_in(running.key)
    paths = [
        "/v1/openapi.json",
        "/v1/docs",
        "/v1/none",
        "/v1/subscriptions",
        "/healthz",
        "/console",
        "/portal",
    ]
    paths += ["/console/portal-links", "/console/sign-in", "/console/none", "/console/language?to=en"]
    seen = [pages.get(path, host=host, authorization=f"Bearer {running.key}") for path in paths]
    assert len(seen) == len(paths)
    for path, answer in zip(paths, seen, strict=True):
        assert host not in answer.text + str(answer.headers), path
