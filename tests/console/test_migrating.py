"""A signing secret and a vouched address from another system, on the pages."""

from hooksaga.core.signing import encode_secret
from tests.api.running_system import RunningSystem, new_name
from tests.console.pages import Pages, portal

ADDRESS = "https://127.0.0.1:1/hook"


def test_an_operator_brings_a_secret_and_vouches_for_the_address(
    running: RunningSystem, pages: Pages
) -> None:
    secret = encode_secret(b"o" * 32)
    form = {"event_types": new_name("moved"), "callback_url": ADDRESS, "secret": secret}
    made = pages.post("/console/subscriptions", **form, verified="yes", verified_reason="moved here")
    assert secret in pages.page(made.headers["location"]).text
    row = running.rows("SELECT * FROM subscriptions ORDER BY id DESC LIMIT 1")[0]
    assert (row["verified"], row["verified_reason"]) == (True, "moved here")
    assert "Verified without a challenge, by key" in pages.page(f"/console/subscriptions/{row['id']}").text
    given = {"secret": encode_secret(b"p" * 32), "overlap_hours": "0"}
    rotated = pages.post(f"/console/subscriptions/{row['id']}/rotate-secret", **given)
    assert given["secret"] in pages.page(rotated.headers["location"]).text


def test_a_wrong_secret_is_refused_and_not_shown(pages: Pages) -> None:
    form = {"event_types": new_name("moved"), "callback_url": ADDRESS, "secret": "hush"}
    refused = pages.post("/console/subscriptions", **form)
    assert (refused.status, "hush" in refused.body) == (422, False)
    assert 'id="f-secret" name="secret" type="password" value="" aria-invalid="true"' in refused.body


def test_no_subscriber_vouches_for_an_address(running: RunningSystem) -> None:
    """Whatever the key of the portal's link may do."""
    tenant = new_name("tenant")
    key = running.new_key(tenant_id=tenant)
    url = str(running.api.with_key(key).good("POST", "/v1/portal-links", {})["url"])
    pages = portal(running.port, url[len(f"http://127.0.0.1:{running.port}") :])
    assert "vouch" not in pages.page("/portal/subscriptions/new").body
    form = {"event_types": new_name("moved"), "callback_url": ADDRESS}
    with running.nothing_stored():
        assert pages.post("/portal/subscriptions", **form, verified="yes").status == 403
