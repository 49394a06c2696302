"""Deploys the templates onto an emulator of AWS, and sends an event through what was deployed.

The emulator is the one at AWS_ENDPOINT_URL, or one that is started for it. PostgreSQL is the embedded one unless
HOOKSAGA_DATABASE_URL names another.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hooksaga.local.api_client import ApiClient
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.receiver import Receiver, serve
from hooksaga.local.tls import Certificates, ensure_certificates
from tests.infra.local_deployment.emulator import Emulator, NoEmulator, interpreter
from tests.infra.local_deployment.stack import LocalStack

ROOT = Path(__file__).resolve().parents[3]
DELIVERY_SECONDS = 90.0
EVENT_TYPE = "deployment.checked"


@contextmanager
def emulated_stack(root: Path = ROOT) -> Iterator[LocalStack]:
    """A place on an emulator of its own. Skips the test on a machine without one."""
    try:
        interpreter()
    except NoEmulator as missing:
        pytest.skip(str(missing))
    with (
        pytest.MonkeyPatch.context() as environment,
        tempfile.TemporaryDirectory(prefix="hooksaga-") as folder,
    ):
        for name in ("AWS_ENDPOINT_URL", "HOOKSAGA_DATABASE_URL"):
            environment.delenv(name, raising=False)
        with local_stack(Path(folder), root=root) as stack:
            yield stack


@contextmanager
def local_stack(data_dir: Path, *, root: Path = ROOT) -> Iterator[LocalStack]:
    """A place to deploy to, with a database beside it; what was started for it ends with the block."""
    data_dir.mkdir(parents=True, exist_ok=True)
    certificates = ensure_certificates(data_dir)
    with ExitStack() as started:
        url = os.environ.get("HOOKSAGA_DATABASE_URL") or started.enter_context(_database(data_dir))
        endpoint, python = os.environ.get("AWS_ENDPOINT_URL"), None
        if not endpoint:
            emulator = started.enter_context(Emulator(data_dir / "emulator.log"))
            endpoint, python = emulator.endpoint, emulator.python
        yield LocalStack(endpoint, _variables(url, certificates), root, data_dir, python)


@contextmanager
def _database(data_dir: Path) -> Iterator[str]:
    server = EmbeddedPostgres(data_dir)
    try:
        yield server.start()
    finally:
        server.stop()


def _variables(url: str, certificates: Certificates) -> dict[str, str]:
    return {
        "HOOKSAGA_DATABASE_URL": url,
        "HOOKSAGA_CA_FILE": str(certificates.ca.resolve()),
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
    }


async def deliver_one(stack: LocalStack, api_url: str, certificates: Certificates) -> dict[str, Any]:
    """Subscribe a receiver, post an event, and wait for its delivery: the event as the API then shows it.

    Raises TimeoutError when it has not come in DELIVERY_SECONDS.
    """
    receiver = Receiver()
    running = await serve(certificates=certificates, receiver=receiver)
    try:
        event = await asyncio.to_thread(_send_one, stack, api_url, running.url, receiver)
    finally:
        await running.stop()
    return event


def _send_one(stack: LocalStack, api_url: str, receiver_url: str, receiver: Receiver) -> dict[str, Any]:
    key = stack.ask_admin({"action": "create_key", "name": "deployment test"})["key"]
    path = f"/ok/{time.time_ns()}"
    api = ApiClient(api_url, key)
    wanted = {"event_type": f"{EVENT_TYPE}{path.replace('/', '.')}", "callback_url": receiver_url + path}
    subscription = api.call("POST", "/v1/subscriptions", json=wanted)
    receiver.add_secret(path, subscription["secret"])
    api.call("POST", f"/v1/subscriptions/{subscription['id']}/verify")
    sent = {"event_type": wanted["event_type"], "payload": {"hello": "from a deployed template"}}
    event_id = api.call("POST", "/v1/events", json=sent)["id"]
    return _wait_until_delivered(api, event_id)


def _wait_until_delivered(api: ApiClient, event_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + DELIVERY_SECONDS
    while True:
        event = api.call("GET", f"/v1/events/{event_id}")
        if [saga["status"] for saga in event["sagas"]] == ["Completed"]:
            return event
        if time.monotonic() > deadline:
            raise TimeoutError(f"not delivered in {DELIVERY_SECONDS:.0f} s: {event}")
        time.sleep(0.2)
