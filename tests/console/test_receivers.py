"""The receivers of the portal and of docs/verifying.md, each run by its language, take real requests of hooksaga.

A language that is not on this machine is skipped, with a message.
"""

import base64
import http.client
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hooksaga.console.snippets import LANGUAGES, RECEIVERS, snippets_for
from hooksaga.core.signing import decode_secret, sign
from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post
from tests.console.endpoint import Endpoint
from tests.delivery.hostile_receiver import unused_port
from tests.scheduling import long_but

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

HERE = Path(__file__).parent
START_SECONDS = 120
"""Go and Java compile first."""

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "Node.js": lambda port: ["node", "receiver.mjs"],
    "Python": lambda port: ["python3", "receiver.py"],
    "Go": lambda port: ["go", "run", "receiver.go"],
    "PHP": lambda port: ["php", "-S", f"127.0.0.1:{port}", "receiver.php"],
    "Ruby": lambda port: ["ruby", str(HERE / "rack_server.rb"), "./receiver.ru"],
    "Java": lambda port: ["java", "Receiver.java"],
    "C#": lambda port: ["dotnet", "run"],
}
PROJECT = """<Project Sdk="Microsoft.NET.Sdk.Web"><PropertyGroup><TargetFramework>net8.0</TargetFramework>
<RollForward>Major</RollForward><Nullable>enable</Nullable><ImplicitUsings>enable</ImplicitUsings></PropertyGroup></Project>
"""


@dataclass(frozen=True)
class Recorded:
    """Secrets of a subscription, and requests as hooksaga sent them: headers that matter, and the body."""

    first_secret: str
    second_secret: str
    challenge: tuple[dict[str, str], bytes]
    event: tuple[dict[str, str], bytes]
    rotated: tuple[dict[str, str], bytes]


def secret() -> str:
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


@pytest.fixture(scope="module")
def running(module_database: str, folder: Path) -> Iterator[RunningSystem]:
    system = RunningSystem(folder, database_url=module_database, ca_file=ensure_certificates(folder).ca)
    yield system
    system.stop()


@pytest.fixture(scope="module")
def recorded(running: RunningSystem, folder: Path) -> Iterator[Recorded]:
    endpoint = Endpoint(ensure_certificates(folder))
    endpoint.fixed.set()
    event_type, first, second = new_name("signed"), secret(), secret()
    wanted = {"event_type": event_type, "callback_url": endpoint.url, "secret": first}
    one = running.api.good("POST", "/v1/subscriptions", wanted)
    running.api.good("POST", f"/v1/subscriptions/{one['id']}/verify")
    challenge = endpoint.requests[-1]
    post(running.api, event_type, '{"total": 1.10, "name": "Zoë 訂單"}'.encode())
    wait_until(lambda: len(endpoint.bodies) == 1, "the event arrives")
    event = endpoint.requests[-1]
    running.api.good("POST", f"/v1/subscriptions/{one['id']}/rotate-secret", {"secret": second})
    post(running.api, event_type, b'{"n": 2}')
    wait_until(lambda: len(endpoint.bodies) == 2, "the second event arrives")
    yield Recorded(first, second, challenge, event, endpoint.requests[-1])
    endpoint.stop()


@contextmanager
def started(language: str, secret: str, folder: Path) -> Iterator[int]:
    """The receiver as a process, in a folder of its own, when it listens on the port."""
    port = unused_port()
    command = COMMANDS[language](str(port))
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on this machine: the receiver in {language} is not tried")
    name = LANGUAGES[language]
    shutil.copy(RECEIVERS / name, folder / ("Program.cs" if name.endswith(".cs") else name))
    (folder / "receiver.csproj").write_text(PROJECT)
    env = {**os.environ, "WEBHOOK_SECRET": secret, "PORT": str(port), "GO111MODULE": "off"}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_until(lambda: is_up(port, process, folder), "the receiver listens", START_SECONDS)
        yield port
    finally:
        os.killpg(process.pid, 9)  # with the program that `go run` has built
        process.wait(30)


def is_up(port: int, process: subprocess.Popen[bytes], folder: Path) -> bool:
    assert process.poll() is None, (folder / "output").read_text(errors="replace")
    try:
        return answer(port, {}, b"{}")[0] == 400
    except OSError:
        time.sleep(0.2)
        return False


def answer(port: int, headers: dict[str, str], body: bytes) -> tuple[int, str]:
    signed = {name: value for name, value in headers.items() if name.startswith("webhook-")}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/hooks", body, {"content-type": "application/json", **signed})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def signed_anew(event: tuple[dict[str, str], bytes], secrets: list[str], age: int = 0) -> dict[str, str]:
    headers, body = event
    at = int(time.time()) - age
    signature = sign([decode_secret(one) for one in secrets], headers["webhook-id"], at, body)
    return {**headers, "webhook-timestamp": str(at), "webhook-signature": signature}


@pytest.mark.parametrize("language", long_but(LANGUAGES, "Node.js", "Python", "PHP", "Ruby"))
def test_a_receiver_takes_genuine_requests_only(language: str, recorded: Recorded, tmp_path: Path) -> None:
    headers, body = recorded.event
    first, second = recorded.first_secret, recorded.second_secret
    with started(language, first, tmp_path) as port:
        assert answer(port, headers, body)[0] == 204
        status, text = answer(port, *recorded.challenge)
        assert status == 200
        assert text
        assert text in recorded.challenge[1].decode()
        assert " " in recorded.rotated[0]["webhook-signature"], "two secrets sign after a rotation"
        assert answer(port, *recorded.rotated)[0] == 204
        assert answer(port, headers, body.replace(b"1.10", b"9.10"))[0] == 400
        for age in (600, -600):
            assert answer(port, signed_anew(recorded.event, [first], age), body)[0] == 400
        assert answer(port, signed_anew(recorded.event, [first], 200), body)[0] == 204
        assert answer(port, signed_anew(recorded.event, [secret()]), body)[0] == 400
        assert answer(port, signed_anew(recorded.event, [second, secret(), first]), body)[0] == 204
        for changed in (
            {"webhook-id": "evt_another"},
            {"webhook-timestamp": "now"},
            {"webhook-signature": "v1"},
        ):
            assert answer(port, {**headers, **changed}, body)[0] == 400
        unversioned = {**headers, "webhook-signature": headers["webhook-signature"].replace("v1,", "v2,")}
        assert answer(port, unversioned, body)[0] == 400


def test_the_old_secret_is_not_needed_after_a_rotation(recorded: Recorded, tmp_path: Path) -> None:
    with started("Python", recorded.second_secret, tmp_path) as port:
        assert answer(port, *recorded.rotated)[0] == 204
        assert answer(port, *recorded.event)[0] == 400


def test_a_path_is_filled_in_where_it_means_the_same_in_each_language() -> None:
    filled = snippets_for("/in/webhooks-1")
    assert filled
    for one in filled:
        assert "/in/webhooks-1" in one.text, one.language
        assert "/hooks" not in one.text, one.language
    for path in ("", '/"; x', "/a b", "/{x}", "/%2e"):
        assert snippets_for(path) == snippets_for()


def test_every_receiver_is_offered() -> None:
    assert {path.name for path in RECEIVERS.iterdir() if path.is_file()} == set(LANGUAGES.values())
