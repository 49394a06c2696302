"""`hooksaga doctor` on this machine: beside a running system, without one, and with each thing that can be wrong."""

import asyncio
import json
import os
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.secret_box import generate_key
from hooksaga.aws.deployment import LOCAL
from hooksaga.doctor import local, machine, network, sealed
from hooksaga.doctor.check import Check, Health
from hooksaga.doctor.database import LIMITS
from hooksaga.doctor.queues import NAME as QUEUES
from hooksaga.doctor.queues import wrong_attributes
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates, ensure_certificates
from hooksaga.runtime.settings import read_settings
from tests.cli.conftest import Run, RunningSystem, runner_with
from tests.database.seed import Seed


def checks_of(run: Run, *options: str) -> dict[str, Any]:
    """The checks by name. The exit code has to say what they say."""
    result = run("doctor", "--json", *options)
    answer = json.loads(result.stdout)
    assert result.exit_code == (0 if answer["ok"] else 1), result.output
    assert answer["ok"] == all(check["health"] != "failed" for check in answer["checks"])
    return {check["name"]: check for check in answer["checks"]}


def failed_checks(checks: dict[str, Any]) -> dict[str, list[str]]:
    return {name: check["faults"] for name, check in checks.items() if check["faults"]}


def test_beside_a_running_system_all_is_well(run: Run, running_system: RunningSystem) -> None:
    port = urlsplit(running_system.url).port
    checks = checks_of(run, "--port", str(port))
    assert failed_checks(checks) == {}
    assert checks[f"port {port}"]["seen"] == "hooksaga is running there"
    assert checks[local.SECRETS]["health"] == "ok"
    assert run("stats").exit_code == 0, "the database was left running"


def test_a_person_reads_a_line_for_each(run: Run, running_system: RunningSystem) -> None:
    result = run("doctor", "--port", str(urlsplit(running_system.url).port))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) >= 15
    assert all(line.split()[0] in ("ok", "skipped") for line in lines)


def test_before_the_first_start_nothing_is_ill_and_nothing_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    checks = checks_of(runner_with({"HOOKSAGA_DATA_DIR": str(folder)}), "--port", str(free_port()))
    assert failed_checks(checks) == {}
    assert checks[local.DATABASE]["health"] == "skipped"
    assert not folder.exists()


def test_a_stopped_database_is_started_for_it_and_stopped_again(make_folder: Callable[[], Path]) -> None:
    folder = make_folder()
    run = runner_with({"HOOKSAGA_DATA_DIR": str(folder)})
    assert run("migrate").exit_code == 0
    checks = checks_of(run, "--port", str(free_port()))
    assert failed_checks(checks) == {}
    assert checks[local.LOGINS]["seen"] == f"{len(Role) - 1} of {len(Role) - 1} roles"
    assert not EmbeddedPostgres(folder).is_running()


def test_settings_that_are_wrong_are_all_that_it_says(tmp_path: Path) -> None:
    run = runner_with({"HOOKSAGA_DATA_DIR": str(tmp_path), "HOOKSAGA_LEASE_SECONDS": "20"})
    checks = checks_of(run)
    assert list(checks) == ["versions", local.SETTINGS]
    assert "HOOKSAGA_LEASE_SECONDS" in checks[local.SETTINGS]["faults"][0]


def test_a_database_that_is_away(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    run = runner_with({"HOOKSAGA_DATA_DIR": str(tmp_path), "HOOKSAGA_DATABASE_URL": url})
    found = failed_checks(checks_of(run, "--port", str(free_port())))
    assert list(found) == [local.DATABASE]
    assert "HOOKSAGA_DATABASE_URL" in found[local.DATABASE][0]


@pytest.fixture
def run_on(database_address: DatabaseAddress, tmp_path: Path) -> Run:
    """On a migrated, empty database of this test's own."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return runner_with({"HOOKSAGA_DATABASE_URL": database_address.url, "HOOKSAGA_DATA_DIR": str(folder)})


async def test_a_wrong_grant_is_named_with_its_cure(run_on: Run, seed: Seed) -> None:
    await seed.connection.execute("GRANT SELECT ON dead_letters TO job_worker")
    result = await asyncio.to_thread(run_on, "doctor", "--port", str(free_port()))
    assert result.exit_code == 1
    assert "REVOKE SELECT ON dead_letters FROM job_worker" in result.stdout


async def test_a_role_that_cannot_log_in(run_on: Run, seed: Seed) -> None:
    await seed.connection.execute("ALTER ROLE job_worker NOLOGIN")
    try:
        found = failed_checks(await asyncio.to_thread(checks_of, run_on, "--port", str(free_port())))
    finally:
        await seed.connection.execute("ALTER ROLE job_worker LOGIN")
    assert "job_worker" in found[local.LOGINS][0]


async def test_what_producers_would_meet_is_met_here(run_on: Run, seed: Seed) -> None:
    await seed.connection.execute("SELECT setval('events_id_seq', 9223372036854775807)")
    found = failed_checks(await asyncio.to_thread(checks_of, run_on, "--port", str(free_port())))
    assert set(found) == {LIMITS, local.STORES}
    assert "2200H" in found[local.STORES][0]


async def test_a_session_that_is_not_as_it_must_be(run_on: Run, seed: Seed) -> None:
    """Found by logging in: the catalog does not know what a server's own file says."""
    name = await seed.value("SELECT quote_ident(current_database())")
    await seed.connection.execute(f"ALTER ROLE job_worker IN DATABASE {name} SET datestyle = German".encode())
    found = failed_checks(await asyncio.to_thread(checks_of, run_on, "--port", str(free_port())))
    assert "datestyle = 'German" in found[local.LOGINS][0]
    assert (await asyncio.to_thread(run_on, "migrate")).exit_code == 0
    assert failed_checks(await asyncio.to_thread(checks_of, run_on, "--port", str(free_port()))) == {}


async def test_a_secret_that_no_key_opens(run_on: Run, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    port = str(free_port())
    for key, good in ((seed.secrets_key, True), (generate_key(), False)):
        found = failed_checks(
            await asyncio.to_thread(
                checks_of, lambda *args, key=key: run_on(*args, HOOKSAGA_SECRETS_KEY=key), "--port", port
            )
        )
        assert list(found) == ([] if good else [local.SECRETS])
    assert f"rotate-secret {subscription_id}" in found[local.SECRETS][0]


async def test_headers_in_clear_and_headers_that_no_key_opens(run_on: Run, seed: Seed) -> None:
    await seed.subscription(headers={"x-a": "1"})
    clear, lost = await seed.subscription(), await seed.subscription()
    await seed.connection.execute(
        'UPDATE subscriptions SET headers = \'{"x-a": "hush"}\' WHERE id = %s', [clear]
    )
    await seed.connection.execute(
        'UPDATE subscriptions SET headers = \'{"x-a": {"sealed": "damaged"}}\' WHERE id = %s', [lost]
    )

    def run(*arguments: str) -> Any:
        return run_on(*arguments, HOOKSAGA_SECRETS_KEY=seed.secrets_key)

    found = failed_checks(await asyncio.to_thread(checks_of, run, "--port", str(free_port())))
    assert list(found) == [sealed.HEADERS]
    unreadable, in_clear = found[sealed.HEADERS]
    assert f"subscriptions update {lost} --header" in unreadable
    assert "1 subscriptions have plain-text header values" in in_clear


def test_an_empty_database_needs_migrations(test_server: str, maintenance: Any, tmp_path: Path) -> None:
    maintenance.execute("CREATE DATABASE doctor_empty")
    url = test_server.replace("/hooksaga?", "/doctor_empty?")
    run = runner_with({"HOOKSAGA_DATABASE_URL": url, "HOOKSAGA_DATA_DIR": str(tmp_path / "none")})
    found = failed_checks(checks_of(run, "--port", str(free_port())))
    maintenance.execute("DROP DATABASE doctor_empty WITH (FORCE)")
    assert list(found.values()) == [["the database is empty: run `hooksaga migrate`"]]


# The machine.


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")
@pytest.mark.parametrize(
    ("name", "mode"), [("", 0o750), ("", 0o755), ("api_key", 0o640), ("secrets.key", 0o604)]
)
def test_a_data_folder_that_others_can_read(tmp_path: Path, name: str, mode: int) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    for file in ("api_key", "secrets.key"):
        (folder / file).touch(mode=0o600)
    assert machine.check_data_folder(folder).health is Health.OK
    (folder / name).chmod(mode)
    check = machine.check_data_folder(folder)
    assert len(check.faults) == 1
    assert f"mode {mode:04o}" in check.faults[0]
    words = check.faults[0].split("chmod ")[1].split()
    Path(words[1]).chmod(int(words[0], 8))
    assert machine.check_data_folder(folder).health is Health.OK
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_disk_that_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.check_disk(tmp_path / "not" / "there").health is Health.OK
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 2**62)
    assert machine.check_disk(tmp_path).health is Health.FAILED


@pytest.mark.parametrize(
    "content", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_bundle_without_certificates(tmp_path: Path, content: str) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text(content)
    check = machine.check_trust(read_settings(ca_file=bundle))
    assert "HOOKSAGA_CA_FILE" in check.faults[0]


def test_a_good_bundle_is_counted(certificates: Certificates) -> None:
    check = machine.check_trust(read_settings(ca_file=certificates.ca))
    assert (check.health, "1 more" in check.seen) == (Health.OK, True)


def test_a_system_that_trusts_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    assert machine.check_trust(read_settings()).health is Health.FAILED


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_port_that_a_stranger_holds() -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        port = stranger.getsockname()[1]
        assert machine.check_port(port).health is Health.FAILED
    assert machine.check_port(port).seen == "free"


@pytest.mark.parametrize(
    ("attributes", "fault"),
    [
        ({"VisibilityTimeout": "270", "RedrivePolicy": '{"deadLetterTargetArn": "a:b"}'}, ""),
        ({"VisibilityTimeout": "30", "RedrivePolicy": '{"deadLetterTargetArn": "a:b"}'}, "at least 270 s"),
        ({"VisibilityTimeout": "270"}, "no redrive queue"),
    ],
)
def test_queues_are_patient_and_have_a_redrive(attributes: dict[str, str], fault: str) -> None:
    assert [fault in line for line in wrong_attributes(LOCAL, "delivery", attributes)] == (
        [True] if fault else []
    )


def test_queues_are_looked_at_where_they_are_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    queue = {"HOOKSAGA_ROUTING_QUEUE_URL": "http://127.0.0.1:1/000000000000/routing"}
    run = runner_with({"HOOKSAGA_DATA_DIR": str(tmp_path / "none"), **queue})
    found = failed_checks(checks_of(run, "--port", str(free_port())))
    assert any(line.startswith("routing: ") for line in found[QUEUES])
    assert "delivery: HOOKSAGA_DELIVERY_QUEUE_URL is not set" in found[QUEUES]


# The way out.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return ensure_certificates(tmp_path_factory.mktemp("tls"))


@contextmanager
def answering(certificates: Certificates, head: bytes) -> Iterator[str]:
    """A TLS server that answers one connection, whatever it asks. Its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)

        def answer() -> None:
            try:
                plain, _ = listening.accept()
                with certificates.server_context().wrap_socket(plain, server_side=True) as connection:
                    connection.recv(4096)
                    connection.sendall(head)
            except (OSError, ssl.SSLError):
                return

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}/hook"
        listening.close()
        thread.join(10)


async def probe(url: str | None, **settings: Any) -> dict[str, Check]:
    chosen = read_settings(**{"egress_allow": "127.0.0.0/8", **settings})
    return {check.name: check for check in await network.check_egress(chosen, url)}


def dated(seconds: float) -> bytes:
    return f"HTTP/1.1 405 No\r\nDate: {formatdate(seconds, usegmt=True)}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("head", "clock"),
    [
        (b"HTTP/1.1 200 OK\r\ndate: {now}\r\n\r\n", Health.OK),
        (b"HTTP/1.1 200 OK\r\ndate: {later}\r\n\r\n", Health.FAILED),
        (b"HTTP/1.1 200 OK\r\ndate: yesterday\r\n\r\n", Health.SKIPPED),
        (b"HTTP/1.1 200 OK\r\n\r\n", Health.SKIPPED),
        (b"not HTTP", Health.SKIPPED),
        (b"", Health.SKIPPED),
        (b"HTTP/1.1 200 OK\r\nfill: " + b"a" * 100_000, Health.SKIPPED),
    ],
)
async def test_whatever_answers_is_reached(certificates: Certificates, head: bytes, clock: Health) -> None:
    head = head.replace(b"{now}", formatdate(usegmt=True).encode())
    head = head.replace(b"{later}", formatdate(2_000_000_000, usegmt=True).encode())
    with answering(certificates, head) as url:
        checks = await probe(url, ca_file=certificates.ca)
    assert checks[network.EGRESS].health is Health.OK
    assert "127.0.0.1 by TLSv1.3" in checks[network.EGRESS].seen
    assert checks[network.CLOCK].health is clock


async def test_a_name_is_looked_up_as_for_a_delivery(certificates: Certificates) -> None:
    with answering(certificates, dated(0)) as url:
        checks = await probe(url.replace("127.0.0.1", "localhost"), ca_file=certificates.ca)
    assert "at 127.0.0.1 by" in checks[network.EGRESS].seen
    assert checks[network.CLOCK].health is Health.FAILED


async def test_a_certificate_that_nobody_trusts(certificates: Certificates) -> None:
    with answering(certificates, dated(0)) as url:
        checks = await probe(url)
    assert "not trusted" in checks[network.EGRESS].faults[0]
    assert checks[network.CLOCK].health is Health.SKIPPED


@pytest.mark.parametrize(
    ("url", "settings", "fault"),
    [
        ("https://127.0.0.1:1/", {}, "firewall"),
        ("https://127.0.0.1/", {"egress_allow": ""}, "--probe"),
        ("http://127.0.0.1/", {}, "--probe"),
        ("https://localhost/", {"egress_allow": "10.0.0.0/8"}, "--probe"),
        ("https://no-such-name.example.com/", {}, "name"),
    ],
)
async def test_what_cannot_be_reached_says_why(url: str, settings: dict[str, Any], fault: str) -> None:
    checks = await probe(url, **settings)
    assert fault in checks[network.EGRESS].faults[0]


async def test_a_receiver_that_never_answers(certificates: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        checks = await probe(url, http_timeout_seconds=0.2, http_connect_timeout_seconds=0.1)
    assert "timeout: check" in checks[network.EGRESS].faults[0]


async def test_offline_it_says_that_it_did_not_try() -> None:
    assert {check.health for check in (await probe(None)).values()} == {Health.SKIPPED}
