"""What somebody brings from another system: a signing secret, and addresses that a key vouches for."""

import os

import pytest

from hooksaga.core.signing import SECRET_PREFIX, encode_secret
from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import dead_letters, post

WRITE, VERIFY = "subscriptions:write", "subscriptions:verify"


def new(**more: object) -> dict[str, object]:
    return {"event_type": new_name("moved"), "callback_url": "https://127.0.0.1:1/hook", **more}


@pytest.mark.parametrize("size", [24, 32, 63, 64])
def test_a_given_secret_is_the_one_that_signs(api: Api, running: RunningSystem, size: int) -> None:
    secret, other = encode_secret(os.urandom(size)), encode_secret(os.urandom(size))
    created = api.good("POST", "/v1/subscriptions", new(secret=secret))
    assert created["secret"] == secret
    query = "SELECT secret FROM subscription_secrets WHERE subscription_id = %s ORDER BY id DESC"
    box = running.services.box
    assert box is not None
    assert [box.open(row["secret"]) for row in running.rows(query, created["id"])] == [secret]
    rotated = api.good("POST", f"/v1/subscriptions/{created['id']}/rotate-secret", {"secret": other})
    assert rotated["secret"] == other
    assert [box.open(row["secret"]) for row in running.rows(query, created["id"])] == [other, secret]


def test_without_a_secret_it_is_random(api: Api) -> None:
    made = [api.good("POST", "/v1/subscriptions", new(secret=None))["secret"] for _ in range(2)]
    assert len(set(made)) == 2
    assert all(one.startswith(SECRET_PREFIX) for one in made)


@pytest.mark.parametrize(
    "wrong",
    [
        "s3cret-of-mine-with-thirty-two-characters",
        "whsec_dG9vIHNob3J0",
        encode_secret(b"k" * 24).rstrip("=") + "A",
        encode_secret(b"k" * 64)[:-2],
        "whsec_" + "k" * 100,
    ],
)
def test_another_secret_is_refused_and_not_repeated(api: Api, running: RunningSystem, wrong: str) -> None:
    with running.nothing_stored():
        refused = api.post("/v1/subscriptions", new(secret=wrong))
    assert wrong not in assert_problem(refused, 422, "invalid_field", "secret")["detail"]


def test_a_key_with_the_scope_vouches_for_an_address(api: Api, running: RunningSystem) -> None:
    key = running.new_key(WRITE, VERIFY)
    wanted = new(verified=True, verified_reason="moved from elsewhere")
    created = api.with_key(key).good("POST", "/v1/subscriptions", wanted)
    assert (created["verified"], created["verified_reason"]) == (True, "moved from elsewhere")
    assert created["eligible_since"] is not None
    key_id = running.rows("SELECT max(id) AS id FROM api_keys")[0]["id"]
    assert created["verified_by_key_id"] == key_id
    post(api, str(wanted["event_type"]))
    dead_letters(running, created["id"], 1)  # the event was routed to it, where nobody answers


@pytest.mark.parametrize("scopes", [(WRITE,), (WRITE, "admin", "events:write")])
def test_no_other_scope_vouches(api: Api, running: RunningSystem, scopes: tuple[str, ...]) -> None:
    with running.nothing_stored():
        refused = api.with_key(running.new_key(*scopes)).post("/v1/subscriptions", new(verified=True))
    assert "subscriptions:verify" in assert_problem(refused, 403, "forbidden")["detail"]


def test_the_scope_alone_creates_nothing(api: Api, running: RunningSystem) -> None:
    refused = api.with_key(running.new_key(VERIFY)).post("/v1/subscriptions", new(verified=True))
    assert_problem(refused, 403, "forbidden")


def test_a_reason_without_a_vouch_is_not_kept(api: Api) -> None:
    created = api.good("POST", "/v1/subscriptions", new(verified_reason="why not"))
    assert (created["verified"], created["verified_reason"], created["verified_by_key_id"]) == (
        False,
        None,
        None,
    )
