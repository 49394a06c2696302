"""The API against its own description, by schemathesis with all its checks: what the description allows is accepted,
what it does not is refused, and every answer is one that it names. Made-up requests, the same in every run."""

from pathlib import Path

import pytest

from tests.api.description_run import MAX_SECONDS, SECONDS, check_description
from tests.api.http_client import Api
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import dead_letters, post, subscribe


@pytest.fixture(scope="module")
def ids(running: RunningSystem, refusing_url: str) -> dict[str, int]:
    """By the path of an operation a row that it can be called for: hardly any made-up number is one."""
    api, event_type = running.api, new_name("described")
    subscription = subscribe(running, api, event_type, refusing_url)["id"]
    post(api, event_type)
    dead_letter = dead_letters(running, subscription, 1)[0]
    wanted = {"kind": "requeue", "filter": {"subscription_id": subscription}, "rate_per_second": 0.01}
    operation = api.good("POST", "/v1/bulk-operations", wanted)["id"]
    attempt = running.rows("SELECT max(id) AS id FROM webhook_delivery_jobs")[0]["id"]
    saga = api.good("GET", f"/v1/dead-letters/{dead_letter}")["saga_id"]
    return {
        "/v1/attempts/{id}": attempt,
        "/v1/dead-letters/{id}": dead_letter,
        "/v1/dead-letters/{id}/requeue": dead_letter,
        "/v1/sagas/{id}/cancel": saga,
        "/v1/sagas/{id}/resend": saga,
        "/v1/sagas/{id}/retry-now": saga,
        "/v1/subscriptions/{id}/retry-now": subscription,
        "/v1/bulk-operations/{id}": operation,
        "/v1/bulk-operations/{id}/pause": operation,
        "/v1/bulk-operations/{id}/resume": operation,
    }


@pytest.mark.slow
@pytest.mark.hostile("Clients")
@pytest.mark.timeout(SECONDS)
def test_the_api_does_what_its_description_says(
    api: Api, running: RunningSystem, ids: dict[str, int], tmp_path: Path
) -> None:
    check_description(api, ids, tmp_path, "examples,coverage", examples=1)


@pytest.mark.long
@pytest.mark.timeout(MAX_SECONDS)
def test_the_api_does_what_its_description_says_in_many_more_requests(
    api: Api, running: RunningSystem, ids: dict[str, int], tmp_path: Path
) -> None:
    check_description(api, ids, tmp_path, "fuzzing,stateful", examples=100)
