"""A form that makes something is answered by a redirect: reloading makes no second one and shows no secret again."""

import time

import pytest

from tests.api.running_system import RunningSystem, new_name
from tests.console.pages import Pages, portal

ADDRESS = "https://127.0.0.1:1/hook"
SHOWN = 'class="secret">whsec_'


@pytest.fixture(params=["console", "portal"])
def visitor(request: pytest.FixtureRequest, running: RunningSystem, pages: Pages) -> Pages:
    if request.param == "console":
        return pages
    link = str(running.api.good("POST", "/v1/portal-links", {"tenant_id": new_name("tenant")})["url"])
    return portal(running.port, link.partition(str(running.port))[2])


def test_a_new_subscriptions_secret_is_shown_by_one_page_once(running: RunningSystem, visitor: Pages) -> None:
    form = {"event_types": new_name("once"), "callback_url": ADDRESS}
    made = visitor.post(f"{visitor.base}/subscriptions", **form)
    assert made.status == 303
    where = made.headers["location"]
    assert SHOWN not in made.body
    assert "whsec_" not in str(made.headers)
    assert SHOWN not in visitor.page(f"{visitor.base}/subscriptions").body, "another page does not show it"
    count = running.counts()["subscriptions"]
    assert SHOWN in visitor.page(where).body
    assert SHOWN not in visitor.page(where).body
    assert running.counts()["subscriptions"] == count
    rotated = visitor.post(f"{where}/rotate-secret", overlap_hours="0")
    assert (rotated.status, rotated.headers["location"]) == (303, where)
    assert SHOWN in visitor.page(where).body
    assert SHOWN not in visitor.page(where).body


@pytest.mark.parametrize(
    ("path", "form", "begins"),
    [
        ("/console/keys", {"name": "mine", "scope:admin": "yes"}, 'class="secret">hs_'),
        ("/console/portal-links", {"tenant_id": "acme"}, "/portal/enter?token="),
    ],
)
def test_a_key_and_a_link_are_shown_once(pages: Pages, path: str, form: dict[str, str], begins: str) -> None:
    made = pages.post(path, **form)
    assert (made.status, made.headers["location"]) == (303, path)
    assert begins in pages.page(path).body
    assert begins not in pages.page(path).body


def test_the_cookie_is_of_one_session_and_one_minute(
    running: RunningSystem, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = pages.post("/console/keys", name="mine", **{"scope:admin": "yes"})
    (cookie,) = made.cookies
    assert "hooksaga_console_once=" in cookie
    for part in ("HttpOnly", "SameSite=Lax", "Path=/console", "Max-Age=60"):
        assert part in cookie
    kept = pages.cookies["hooksaga_console_once"]
    other = Pages(running.port).signed_in(running.key)
    other.cookies["hooksaga_console_once"] = kept
    assert 'class="secret"' not in other.page("/console/keys").body
    for wrong in ("x", kept[:-4], "y" * 4000):
        pages.cookies["hooksaga_console_once"] = wrong
        assert 'class="secret"' not in pages.page("/console/keys").body
    pages.cookies["hooksaga_console_once"] = kept
    now = time.time()
    with monkeypatch.context() as patch:
        patch.setattr("hooksaga.console.shown_once.time.time", lambda: now + 61)
        assert 'class="secret"' not in pages.page("/console/keys").body
