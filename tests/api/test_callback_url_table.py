"""Every row of the table of callback URLs at the API, and one normal form for all spellings of a host."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name

TABLE = Path(__file__).resolve().parents[1] / "unit" / "callback_urls.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]
REFUSED = [row["url"] for row in ROWS if row["want"] == "refuse" and row["when"] == "text"]
TAKEN = [row["url"] for row in ROWS if row["url"] not in REFUSED]


@pytest.fixture(scope="module")
def running(module_database: str, folder: Path) -> Iterator[RunningSystem]:
    """The rows are about a system that allows nothing beyond the public internet."""
    system = RunningSystem(folder, database_url=module_database, egress_allow="")
    yield system
    system.stop()


def test_the_table_is_whole() -> None:
    assert len(REFUSED) + len(TAKEN) == 175


@pytest.mark.hostile("Callback URLs, when they are registered")
@pytest.mark.parametrize("url", REFUSED, ids=str)
def test_a_row_that_its_text_decides_is_refused_at_creation(
    running: RunningSystem, api: Api, url: str
) -> None:
    with running.nothing_stored():
        answer = api.post("/v1/subscriptions", {"event_type": "t", "callback_url": url})
        code = "invalid_callback_url" if url else "invalid_field"
        assert_problem(answer, 422, code, "callback_url")


@pytest.mark.parametrize("url", TAKEN, ids=str)
def test_the_other_rows_are_taken_and_left_to_the_moment_of_the_call(api: Api, url: str) -> None:
    """What becomes of them there is in tests/egress."""
    created = api.good("POST", "/v1/subscriptions", {"event_type": new_name("row"), "callback_url": url})
    again = {"callback_url": created["callback_url"]}
    assert (
        api.good("PATCH", f"/v1/subscriptions/{created['id']}", again)["callback_url"]
        == again["callback_url"]
    )


SPELLINGS = {
    "https://example.com/hook": [
        "HTTPS://EXAMPLE.COM/hook",
        "https://example.com:443/hook",
        "https://example.com./hook",
        "https://EXAMPLE\u3002com/hook",
        "https://\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45.com/hook",
        "https://example\uff0ecom/hook",
    ],
    "https://xn--bcher-kva.example.com/": [
        "https://b\u00fccher.example.com",
        "https://B\u00dcCHER.example.com/",
        "https://bu\u0308cher.example.com/",
        "https://XN--BCHER-KVA.example.com./",
    ],
    "https://8.8.8.8/": [
        "https://8.8.8.8.:443",
        "https://\uff18.\uff18.\uff18.\uff18/",
        "https://8\u30028\uff0e8\uff618/",
    ],
}


@pytest.mark.parametrize(
    ("normal", "spelled"),
    [(normal, spelled) for normal in SPELLINGS for spelled in SPELLINGS[normal]],
)
def test_another_spelling_is_the_same_address(
    running: RunningSystem, api: Api, normal: str, spelled: str
) -> None:
    """A verified subscription that is given its own address again does not wait for another handshake."""
    created = api.good("POST", "/v1/subscriptions", {"event_type": new_name("same"), "callback_url": normal})
    running.verify_by_hand(created["id"])
    changed = api.good("PATCH", f"/v1/subscriptions/{created['id']}", {"callback_url": spelled})
    assert (changed["callback_url"], changed["pending_callback_url"]) == (normal, None)
    assert changed["verified"] is True
    fresh = api.good("POST", "/v1/subscriptions", {"event_type": new_name("same"), "callback_url": spelled})
    assert fresh["callback_url"] == normal
