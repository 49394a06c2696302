"""The local target deployed on an emulator that enforces the roles' policies: an event delivered, a migration that
fails, an upgrade with open work, and nothing left at the end. The tests run in this order and share the deployment."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from infra.deploy_local import deliver_one, local_stack
from infra.deploy_local_emulator import NoEmulator, interpreter
from infra.deploy_local_stack import DeployFailed, LocalStack
from infra.local.api_client import ApiClient
from infra.local.receiver import Receiver, serve
from infra.local.tls import Certificates, ensure_certificates
from tests.infra.conftest import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # The deployed function keeps its connection to a receiver that has ended with its test's loop.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CARRIED = ("infra", "functions", "shared", "sql")
FILES = ("cdk.json", "pyproject.toml", "constraints.txt")
RETRY_SECONDS = 15


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this project whose migrations a test may change."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in CARRIED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copyfile(ROOT / file, copy / file)
    return copy


@pytest.fixture(scope="module")
def place(checkout: Path) -> Iterator[LocalStack]:
    """Bootstrapped and empty."""
    try:
        interpreter()
    except NoEmulator as missing:
        pytest.skip(str(missing))
    with (
        pytest.MonkeyPatch.context() as environment,
        tempfile.TemporaryDirectory(prefix="hooksaga-") as folder,
    ):
        environment.delenv("AWS_ENDPOINT_URL", raising=False)
        environment.delenv("HOOKSAGA_DATABASE_URL", raising=False)
        with local_stack(Path(folder), root=checkout) as stack:
            stack.bootstrap()
            yield stack


@pytest.fixture(scope="module")
def certificates(place: LocalStack) -> Certificates:
    return ensure_certificates(place.work_dir)


@pytest.fixture(scope="module")
def api_url(place: LocalStack) -> str:
    return place.api_url(place.deploy())


def new_migration(checkout: Path, name: str, sql: str) -> Path:
    path = checkout / "sql" / "migrations" / f"{name}.sql"
    path.write_text(sql)
    return path


async def test_an_event_goes_through_the_deployed_template(
    place: LocalStack, api_url: str, certificates: Certificates
) -> None:
    event = await deliver_one(place, api_url, certificates)
    assert [attempt["response_status"] for attempt in event["sagas"][0]["attempts"]] == [200]


async def test_a_failed_migration_stops_the_deployment_with_its_words(
    place: LocalStack, checkout: Path, api_url: str, certificates: Certificates
) -> None:
    """And what ran before goes on."""
    broken = new_migration(checkout, "9000_broken", "SELECT * FROM a_table_that_is_not_there;")
    with pytest.raises(DeployFailed, match='relation "a_table_that_is_not_there" does not exist'):
        place.deploy()
    broken.unlink()
    event = await deliver_one(place, api_url, certificates)
    assert event["sagas"][0]["status"] == "Completed"


async def test_an_upgrade_loses_nothing_that_was_under_way(
    place: LocalStack, checkout: Path, api_url: str, certificates: Certificates
) -> None:
    key = place.ask_admin({"action": "create_key", "name": "upgrade"})["key"]
    with ApiClient(api_url, key) as api:
        port, event_id = await accepted_but_not_delivered(api, certificates)
        new_migration(checkout, "9000_note", "ALTER TABLE events ADD COLUMN note text;")
        await asyncio.to_thread(place.deploy)
        receiver = Receiver()
        running = await serve(port=port, certificates=certificates, receiver=receiver)
        event = await asyncio.to_thread(wait_for, api, event_id, "Completed")
        await running.stop()
    assert [attempt["status"] for attempt in event["sagas"][0]["attempts"]][-1] == "Completed"
    assert event["sagas"][0]["attempts"][0]["error_code"] == "connection_refused"


def test_nothing_is_left_when_it_is_destroyed(place: LocalStack, api_url: str) -> None:
    assert place.leftovers()
    place.destroy()
    assert place.leftovers() == []


async def accepted_but_not_delivered(api: ApiClient, certificates: Certificates) -> tuple[int, str]:
    """An event whose receiver went away after it was verified: its port, and the event's id."""
    running = await serve(certificates=certificates)
    wanted = {
        "event_type": "upgrade.checked",
        "callback_url": f"{running.url}/ok/upgrade",
        "base_delay_seconds": RETRY_SECONDS,
    }
    subscription = await asyncio.to_thread(api.call, "POST", "/v1/subscriptions", json=wanted)
    await asyncio.to_thread(api.call, "POST", f"/v1/subscriptions/{subscription['id']}/verify")
    await running.stop()
    sent = {"event_type": "upgrade.checked", "payload": {}}
    event = await asyncio.to_thread(api.call, "POST", "/v1/events", json=sent)
    await asyncio.to_thread(wait_for, api, event["id"], "PendingRetry")
    return int(running.url.rsplit(":", 1)[1]), event["id"]


def wait_for(api: ApiClient, event_id: str, status: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while True:
        event = api.call("GET", f"/v1/events/{event_id}")
        if [saga["status"] for saga in event["sagas"]] == [status]:
            return event
        assert time.monotonic() < deadline, event
        time.sleep(0.5)
