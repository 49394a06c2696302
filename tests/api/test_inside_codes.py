"""Error codes that reveal names inside the network are visible to operators only; others see one common code."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hooksaga.core.outcomes import INSIDE_CODES, NO_PUBLIC_ADDRESS
from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.pages import Pages, portal

BLOCKED = "https://10.0.0.1/hook"
ABSENT = "https://no-such-host.example.com/hook"


@dataclass(frozen=True)
class Failed:
    """A delivery that ended before any address was called."""

    tenant_id: str
    subscription_id: int
    event_id: str
    dead_letter_id: int
    attempt_id: int


@pytest.fixture(scope="module", params=[BLOCKED, ABSENT], ids=["blocked", "absent"])
def failed(running: RunningSystem, request: pytest.FixtureRequest) -> Failed:
    api, tenant_id, event_type = running.api, new_name("acme"), new_name("inside")
    url = "https://example.com/"
    created = subscribe(running, api, event_type, url, tenant_id=tenant_id)
    running.run(
        "UPDATE subscriptions SET pending_callback_url = %s WHERE id = %s", request.param, created["id"]
    )
    running.run(
        "UPDATE subscriptions SET callback_url = pending_callback_url, pending_callback_url = NULL WHERE id = %s",
        created["id"],
    )
    event_id = post(Api(running.port, running.new_key(tenant_id=tenant_id)), event_type)
    (dead,) = dead_letters(running, created["id"], 1)
    query = "SELECT id FROM webhook_delivery_jobs WHERE subscription_id = %s"
    (row,) = running.rows(query, created["id"])
    running.run(
        "UPDATE subscription_health h SET consecutive_failures = 1, first_failure_at = now(), last_failure_at = now(),"
        " last_error_code = j.error_code FROM webhook_delivery_jobs j"
        " WHERE j.id = %s AND h.subscription_id = j.subscription_id",
        row["id"],
    )
    return Failed(tenant_id, created["id"], event_id, dead, row["id"])


def answers(api: Api, failed: Failed) -> dict[str, str]:
    """Every answer that tells of the failure, as far as the key may see it."""
    one = f"/v1/subscriptions/{failed.subscription_id}"
    paths = [
        f"/v1/events/{failed.event_id}",
        f"/v1/events/{failed.event_id}/routing",
        f"{one}/health",
        f"{one}/stats",
        f"/v1/attempts?subscription_id={failed.subscription_id}",
        f"/v1/attempts/{failed.attempt_id}",
        f"/v1/dead-letters?subscription_id={failed.subscription_id}",
        f"/v1/dead-letters/{failed.dead_letter_id}",
    ]
    given = {path: api.get(path) for path in paths}
    return {path: answer.body.decode() for path, answer in given.items() if answer.status == 200}


KEYS = {
    "a subscriber": (("subscriptions:write",), False, 2),
    "a producer": (("events:write",), False, 2),
    "a subscriber of one tenant": (("subscriptions:write", "events:write"), True, 4),
    "who may all in one tenant": ((), True, 8),
}


@pytest.mark.parametrize("kind", KEYS)
def test_no_answer_to_others_tells_them_apart(running: RunningSystem, failed: Failed, kind: str) -> None:
    scopes, bound, how_many = KEYS[kind]
    key = running.new_key(*scopes, tenant_id=failed.tenant_id if bound else None)
    seen = answers(Api(running.port, key), failed)
    assert len(seen) == how_many
    for path, text in seen.items():
        assert not [code for code in INSIDE_CODES if code in text], path
        assert NO_PUBLIC_ADDRESS in text, path


def test_an_operator_sees_which_it_is(running: RunningSystem, failed: Failed) -> None:
    seen = answers(running.api, failed)
    assert len(seen) == 8
    for path, text in seen.items():
        assert [code for code in INSIDE_CODES if code in text], path
        assert NO_PUBLIC_ADDRESS not in text, path


FILTERED = ["/v1/attempts?error_code=", "/v1/attempts/follow?error_code=", "/v1/dead-letters?error_code="]


@pytest.mark.hostile("Clients")
@pytest.mark.parametrize("code", sorted([*INSIDE_CODES, NO_PUBLIC_ADDRESS]))
def test_no_filter_of_others_tells_them_apart(running: RunningSystem, code: str) -> None:
    """A count, or an empty page, would say it as well."""
    bound = Api(running.port, running.new_key(tenant_id=new_name("acme")))
    given = [bound.get(path + code) for path in FILTERED]
    given.append(bound.post("/v1/dead-letters/requeue", {"error_code": code, "dry_run": True}))
    bulk = {"kind": "requeue", "filter": {"error_code": code}, "dry_run": True}
    given.append(bound.post("/v1/bulk-operations", bulk))
    for answer in given:
        assert_problem(answer, 422, "invalid_parameter", "error_code")
    assert running.api.get(FILTERED[0] + code).status == 200


def shown_pages(failed: Failed, place: str) -> Iterator[str]:
    yield f"/{place}/subscriptions"
    yield f"/{place}/subscriptions/{failed.subscription_id}"
    yield f"/{place}/events/{failed.event_id}"
    yield f"/{place}/deliveries?subscription={failed.subscription_id}"
    yield f"/{place}/deliveries/{failed.attempt_id}"
    yield f"/{place}/dead-letters"
    yield f"/{place}/dead-letters/{failed.dead_letter_id}"


def test_the_portal_shows_one_word(running: RunningSystem, failed: Failed) -> None:
    """Even where the key behind its link is an operator's."""
    link = running.api.good("POST", "/v1/portal-links", {"tenant_id": failed.tenant_id})["url"]
    pages = portal(running.port, link.partition(str(running.port))[2])
    seen = {path: pages.page(path).text for path in shown_pages(failed, "portal")}
    assert not [path for path, text in seen.items() if any(code in text for code in INSIDE_CODES)]
    assert [path for path, text in seen.items() if "no public IP address" not in text] == []
    for kind in ("deliveries", "dead-letters"):
        assert pages.get(f"/portal/{kind}?error=address_blocked").status == 422


def test_the_console_shows_an_operator_which_it_is(running: RunningSystem, failed: Failed) -> None:
    pages = Pages(running.port).signed_in(running.key)
    seen = [pages.page(path).text for path in shown_pages(failed, "console")]
    assert sum(any(code in text for code in INSIDE_CODES) for text in seen) == len(seen)


@pytest.mark.hostile("The verification handshake")
def test_a_handshake_answers_the_same_for_a_refused_and_for_a_missing_name(
    running: RunningSystem, caplog: pytest.LogCaptureFixture
) -> None:
    details = set[str]()
    for url in (BLOCKED, ABSENT):
        created = running.api.good(
            "POST", "/v1/subscriptions", {"event_type": new_name("v"), "callback_url": "https://example.com/"}
        )
        running.run("UPDATE subscriptions SET callback_url = %s WHERE id = %s", url, created["id"])
        answer = running.api.post(f"/v1/subscriptions/{created['id']}/verify")
        details.add(assert_problem(answer, 422, "verification_failed", "callback_url")["detail"])
        said = [vars(one) for one in caplog.records if one.getMessage() == "verification failed"]
        assert said[-1]["subscription_id"] == created["id"]
        assert said[-1]["error_code"] in INSIDE_CODES
    assert len(details) == 1
    assert NO_PUBLIC_ADDRESS in details.pop()
