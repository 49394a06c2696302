"""Deploys the local target and sees an event through it: `python -m infra.deploy_local`.

With AWS_ENDPOINT_URL set, to an emulator that runs already, and the deployment stays there. Without, an emulator is
started for it, and everything is taken away again at the end. PostgreSQL is the embedded one unless
HOOKSAGA_DATABASE_URL names another.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from infra.deploy_local_emulator import Emulator
from infra.deploy_local_stack import LocalStack
from infra.local.api_client import ApiClient
from infra.local.postgres import EmbeddedPostgres
from infra.local.receiver import Receiver, serve
from infra.local.tls import Certificates, ensure_certificates

ROOT = Path(__file__).resolve().parents[1]
DELIVERY_SECONDS = 90.0
EVENT_TYPE = "deployment.checked"

Say = Callable[[str], None]


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
    key = stack.ask_admin({"action": "create_key", "name": "deploy_local"})["key"]
    path = f"/ok/{time.time_ns()}"
    with ApiClient(api_url, key) as api:
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


def run(data_dir: Path, *, destroy: bool, say: Say) -> None:
    """Bootstrap, deploy, deliver; and take it away, if asked to, or if the emulator ends with us anyway."""
    with local_stack(data_dir) as stack:
        certificates = ensure_certificates(data_dir)
        _timed(say, "bootstrap", stack.bootstrap)
        outputs = _timed(say, "deploy", stack.deploy)
        url = stack.api_url(outputs)
        event = _timed(say, "deliver", lambda: asyncio.run(deliver_one(stack, url, certificates)))
        say(f"{event['id']} was delivered through {url}")
        if destroy or "AWS_ENDPOINT_URL" not in os.environ:
            _timed(say, "destroy", stack.destroy)
            say("left over: " + (", ".join(stack.leftovers()) or "nothing"))


def _timed(say: Say, name: str, work: Callable[[], Any]) -> Any:
    started = time.monotonic()
    answer = work()
    say(f"{name}: {time.monotonic() - started:.1f} s")
    return answer


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.deploy_local", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--destroy", action="store_true", help="take the deployment away at the end")
    parser.add_argument("--data-dir", type=Path, help="keep logs, cdk.out and the database here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hooksaga-deploy-") as fresh:
        run(chosen.data_dir or Path(fresh), destroy=chosen.destroy, say=_say)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    main()
