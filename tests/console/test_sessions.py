"""Sign-in, expiry of sessions, and protection against requests from other sites."""

import hashlib

import pytest

from hooksaga.api.sealed_sessions import Session, opened
from hooksaga.console.session import CONSOLE_SECONDS
from tests.api.running_system import RunningSystem, wait_until
from tests.console.pages import Pages, portal


def test_nobody_sees_a_page_without_a_session(running: RunningSystem) -> None:
    answer = Pages(running.port).get("/console/events?type=a.b")
    assert answer.status == 303
    assert answer.headers["location"] == "/console/sign-in?next=%2Fconsole%2Fevents%3Ftype%3Da.b"


def test_a_key_signs_in_and_leads_on(running: RunningSystem) -> None:
    pages = Pages(running.port)
    fields = {"key": running.key, "next": "/console/events?type=a.b"}
    answer = pages.post_raw("/console/sign-in", fields, origin=pages.origin)
    assert (answer.status, answer.headers["location"]) == (303, "/console/events?type=a.b")
    assert running.key not in answer.cookies[0]
    assert "HttpOnly" in answer.cookies[0]
    assert "SameSite=Lax" in answer.cookies[0]
    assert "Path=/console" in answer.cookies[0]
    assert "Secure" not in answer.cookies[0], "this machine has no TLS"
    assert pages.page("/console/events").text


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/v1/docs", "/console/\\evil"])
def test_signing_in_leads_nowhere_else(running: RunningSystem, target: str) -> None:
    pages = Pages(running.port)
    answer = pages.post_raw("/console/sign-in", {"key": running.key, "next": target}, origin=pages.origin)
    assert answer.headers["location"] == "/console"


def test_elsewhere_than_on_this_machine_cookies_are_secure(running: RunningSystem) -> None:
    answer = Pages(running.port).post_raw(
        "/console/sign-in", {"key": running.key}, host="hooks.example.com", origin="https://hooks.example.com"
    )
    assert answer.status == 303
    assert "; Secure" in answer.cookies[0]


@pytest.mark.parametrize("key", ["", "hs_wrong", "hs_" + "x" * 5000])
def test_a_wrong_key_gets_no_cookie(running: RunningSystem, key: str) -> None:
    pages = Pages(running.port)
    answer = pages.post_raw("/console/sign-in", {"key": key}, origin=pages.origin)
    assert (answer.status, answer.cookies) == (401, [])
    assert "unknown or revoked" in answer.text


def test_a_session_ends_when_its_key_is_revoked(running: RunningSystem) -> None:
    key = running.new_key()
    pages = Pages(running.port).signed_in(key)
    assert pages.page("/console")
    running.revoke(key)

    def target() -> str | None:
        return pages.get("/console").headers.get("location")

    assert wait_until(target, "the session has ended") == "/console/sign-in"


def test_a_session_ends_by_itself(running: RunningSystem) -> None:
    services = running.services
    assert services.box is not None
    key_hash, box = b"x" * 32, services.box.for_purpose("console session")
    assert opened(services, "console session", box.seal(Session(key_hash, 9_999_999_999).text()))
    assert opened(services, "console session", box.seal(Session(key_hash, 1).text())) is None
    assert CONSOLE_SECONDS <= 24 * 3600


def test_neither_secrets_nor_other_sessions_are_taken_for_one(running: RunningSystem) -> None:
    services = running.services
    assert services.box is not None
    text = Session(b"x" * 32, 9_999_999_999).text()
    for sealed in (
        services.box.seal(text),
        services.box.for_purpose("portal session").seal(text),
        services.box.for_purpose("console session").seal("{}"),
        services.box.for_purpose("console session").seal("[]"),
        "x" * 100_000,
        "",
    ):
        assert opened(services, "console session", sealed) is None


def test_signing_out_drops_the_cookie(pages: Pages) -> None:
    answer = pages.post("/console/sign-out")
    assert answer.status == 303
    assert "Max-Age=0" in answer.cookies[0]
    assert pages.get("/console").status == 303


def copy_of(pages: Pages) -> Pages:
    """Another browser with the same cookies: those of a backup, a proxy's log, or a thief."""
    other = Pages(pages.port, pages.base)
    other.cookies = dict(pages.cookies)
    return other


def test_signing_out_ends_the_session_on_the_server(running: RunningSystem, pages: Pages) -> None:
    kept, other = copy_of(pages), Pages(running.port).signed_in(running.key)
    assert kept.page("/console")
    token = kept.csrf()
    assert pages.post("/console/sign-out").status == 303
    assert kept.get("/console").headers["location"] == "/console/sign-in"
    with running.nothing_stored():
        form = {"csrf": token, "event_types": "a.b", "callback_url": "https://example.com/x"}
        assert kept.post_raw("/console/subscriptions", form, origin=kept.origin).status == 303
    assert kept.post_raw("/console/sign-out", {"csrf": token}, origin=kept.origin).status == 303
    assert other.page("/console"), "only this session has ended, not all of the key's"


def portal_link(running: RunningSystem) -> str:
    made = running.api.good("POST", "/v1/portal-links", {"tenant_id": "acme", "minutes": 60})
    return made["url"].partition(str(running.port))[2]


def test_signing_out_of_the_portal_ends_its_session_and_its_link(running: RunningSystem) -> None:
    """The link stands in the browser's history: it must not let the next one in."""
    link = portal_link(running)
    mine, beside, elsewhere = (portal(running.port, path) for path in (link, link, portal_link(running)))
    kept = copy_of(mine)
    assert mine.post("/portal/sign-out").headers["location"] == "/portal/ended"
    assert kept.get("/portal/subscriptions").headers["location"] == "/portal/ended"
    answer = Pages(running.port).get(link)
    assert (answer.headers["location"], answer.cookies) == ("/portal/ended", [])
    for other in (beside, elsewhere):
        assert other.page("/portal/subscriptions")


def test_of_an_ended_session_its_hash_is_kept_until_a_day_after_its_time(running: RunningSystem) -> None:
    """A server that serves pages may have a clock behind the database's."""
    pages = Pages(running.port).signed_in(running.key)
    sealed = pages.cookies["hooksaga_console"]
    session = opened(running.services, "console session", sealed)
    assert session is not None
    pages.post("/console/sign-out")
    query = "SELECT session_sha256 AS kept, expires_at FROM ended_sessions WHERE session_sha256 = %s"
    (row,) = running.rows(query, hashlib.sha256(session.id.encode()).digest())
    assert row["expires_at"].timestamp() == session.expires_at
    for hours, is_kept in ((23, True), (25, False)):
        running.run(
            "UPDATE ended_sessions SET expires_at = now() - make_interval(hours => %s) WHERE session_sha256 = %s",
            hours,
            row["kept"],
        )
        Pages(running.port).signed_in(running.key).post("/console/sign-out")
        assert bool(running.rows(query, row["kept"])) is is_kept


def test_a_link_signs_in_once(running: RunningSystem) -> None:
    link = running.sign_in_link()
    first, second = Pages(running.port), Pages(running.port)
    answer = first.get(link)
    assert (answer.status, answer.headers["location"]) == (303, "/console")
    assert first.page("/console")
    again = second.get(link)
    assert (again.status, again.cookies) == (401, [])
    assert "used before" in again.text


def test_an_old_link_is_no_use(running: RunningSystem) -> None:
    link = running.sign_in_link()
    running.run("UPDATE console_sign_ins SET expires_at = now()")
    assert Pages(running.port).get(link).status == 401
    assert Pages(running.port).get("/console/sign-in?token=nonsense").status == 401


def test_only_the_hash_of_a_link_is_kept(running: RunningSystem) -> None:
    token = running.sign_in_link().partition("=")[2]
    rows = running.rows("SELECT encode(token_sha256, 'escape') AS kept FROM console_sign_ins")
    assert rows
    assert all(token not in row["kept"] for row in rows)


FORGED = [
    pytest.param({"origin": "https://evil.example"}, id="another origin"),
    pytest.param({"origin": "null"}, id="a hidden origin"),
    pytest.param({}, id="no origin"),
    pytest.param({"origin": "OWN", "sec_fetch_site": "cross-site"}, id="cross-site"),
    pytest.param({"origin": "OWN", "sec_fetch_site": "same-site"}, id="a neighbour"),
]


@pytest.mark.parametrize("headers", FORGED)
def test_a_form_of_another_site_does_nothing(
    running: RunningSystem, pages: Pages, headers: dict[str, str]
) -> None:
    given = {name: pages.origin if value == "OWN" else value for name, value in headers.items()}
    fields = {"csrf": pages.csrf(), "event_types": "a.b", "callback_url": "https://127.0.0.1/x"}
    with running.nothing_stored():
        answer = pages.post_raw("/console/subscriptions", fields, **given)
    assert answer.status == 403


@pytest.mark.parametrize("headers", FORGED)
def test_no_other_site_signs_a_browser_in(running: RunningSystem, headers: dict[str, str]) -> None:
    pages = Pages(running.port)
    given = {name: pages.origin if value == "OWN" else value for name, value in headers.items()}
    answer = pages.post_raw("/console/sign-in", {"key": running.key}, **given)
    assert (answer.status, answer.cookies) == (403, [])


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_a_form_needs_its_sessions_token(running: RunningSystem, pages: Pages, token: str) -> None:
    other = Pages(running.port).signed_in(running.key).csrf()
    for given in (token, other):
        with running.nothing_stored():
            answer = pages.post(
                "/console/subscriptions", csrf=given, event_types="a.b", callback_url="https://127.0.0.1/x"
            )
        assert answer.status == 403


def test_a_post_that_is_no_form_is_refused(pages: Pages) -> None:
    answer = pages.send("POST", "/console/keys", "{}", content_type="application/json", origin=pages.origin)
    assert answer.status == 415
