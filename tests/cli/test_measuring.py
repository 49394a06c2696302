"""`bench`, `demo` and `receiver` as real processes."""

import json
import signal
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from hooksaga.cli.bench import figures
from hooksaga.local.api_process import processes_of
from hooksaga.local.bench_figures import BenchResult, Percentiles, make_body, make_payload, percentiles
from hooksaga.runtime.settings import Settings
from tests.cli.conftest import runner_with
from tests.cli.processes import CommandProcess, wait_until

Start = Callable[..., CommandProcess]


@pytest.fixture(scope="module")
def folder(make_folder: Callable[[], Path]) -> Path:
    """A data folder of these tests' own."""
    return make_folder()


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a command on the folder; whatever is left running is killed at the end."""
    started: list[CommandProcess] = []

    def command(*arguments: str) -> CommandProcess:
        started.append(CommandProcess(folder, {"HOOKSAGA_DATA_DIR": str(folder)}, *arguments))
        return started[-1]

    yield command
    for process in started:
        process.kill()


def test_a_small_measurement_gives_every_figure_and_leaves_nothing(start: Start, folder: Path) -> None:
    process = start("bench", "--events", "200", "--subscriptions", "2", "--json")
    assert process.ended() == 0, process.errors
    result = json.loads(process.output)
    assert (result["events"], result["deliveries"], result["failed"]) == (200, 400, 0)
    assert result["deliveries_per_second"] == pytest.approx(400 / result["seconds"], rel=0.01)
    assert 0 < result["latency_ms"]["p50"] <= result["latency_ms"]["p95"] <= result["latency_ms"]["p99"]
    assert result["processes"] == processes_of(Settings())
    assert [path for path in folder.glob("bench-*") if path.is_dir()] == []


@pytest.mark.long
def test_at_a_rate_events_go_through_the_api(start: Start) -> None:
    process = start("bench", "--events", "60", "--rate", "100", "--payload-bytes", "50")
    assert process.ended() == 0, process.errors
    measured = json.loads(process.output)  # JSON without asking for it: the output is no terminal
    assert measured["latency_ms"]["p50"] is not None
    assert 0 < measured["accept_ms"]["p50"] <= measured["accept_ms"]["p99"]


def test_a_person_is_shown_a_table() -> None:
    measured = Percentiles(1.25, 2.5, None)
    lines = figures(BenchResult(2, 1, 600, 2, 0, 1.0, 2.0, measured, measured, 1))
    assert lines["accepted to arrival"] == "p50 1.2 ms, p95 2.5 ms, p99 -"
    assert lines["POST to 202"] == lines["accepted to arrival"]


@pytest.mark.long
def test_a_receiver_of_somebody_elses_is_measured_by_its_answers(receiver_url: tuple[str, Path]) -> None:
    url, folder = receiver_url
    settings = {
        "HOOKSAGA_DATA_DIR": str(folder),
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
        "HOOKSAGA_CA_FILE": str(folder / "tls" / "ca.pem"),
    }
    arguments = ("bench", "--events", "50", "--url", f"{url}/status/204/bench", "--json")
    process = CommandProcess(folder, settings, *arguments)
    assert process.ended() == 0, process.errors
    result = json.loads(process.output)
    assert result["deliveries"] == 50
    assert result["latency_ms"]["p50"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_measurement_leaves_nothing(start: Start, folder: Path, number: int) -> None:
    process = start("bench", "--events", "100000")
    place = folder / f"bench-{process.process.pid}"
    wait_until(lambda: (place / "api_key").exists(), "the system of the measurement starts")
    assert process.stop(number) == 130
    assert not place.exists()
    assert "Traceback" not in process.errors


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--events", "0", "--events"), ("--payload-bytes", "262144", "HOOKSAGA_PAYLOAD_MAX_BYTES")],
)
def test_what_cannot_be_measured_is_said(option: str, value: str, words: str) -> None:
    result = runner_with({})("bench", option, value)
    assert result.exit_code == 2
    assert words in result.stderr


def test_an_address_that_is_refused_ends_the_measurement(start: Start) -> None:
    process = start("bench", "--events", "1", "--url", "http://receiver.example/")
    assert process.ended() == 1
    assert "invalid_callback_url" in process.errors
    assert "Traceback" not in process.errors


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentiles([float(number) for number in range(1, 101)]) == Percentiles(50, 95, 99)
    assert percentiles([7.0]) == Percentiles(7, 7, 7)
    assert percentiles([]) == Percentiles(None, None, None)


@pytest.mark.parametrize("size", [2, 3, 24, 25, 26, 600])
def test_a_payload_is_json_of_the_size_asked_for(size: int) -> None:
    payload = make_payload(7, size)
    assert len(payload) == size
    assert json.loads(make_body("a.b", payload))["event_type"] == "a.b"


@pytest.mark.long
def test_the_demo_goes_on_when_told_so_and_ends_well(start: Start) -> None:
    process = start("demo", "--keep")
    key = process.wait_for(r"HOOKSAGA_API_KEY=(\S+)")
    url = process.wait_for(r"HOOKSAGA_API_URL=(\S+)")
    listed = runner_with({"HOOKSAGA_API_URL": url, "HOOKSAGA_API_KEY": key})("dead-letters", "list", "--json")
    assert len(json.loads(listed.stdout)["items"]) == 3
    assert max(len(line) for line in process.output.splitlines() if "http" not in line) <= 80
    assert process.output.count("DeadLettered") == 3
    assert "Every delivery ended as it should" in process.output
    assert process.stop(signal.SIGINT) == 0


def test_the_receiver_checks_signatures_when_it_has_a_secret(start: Start, folder: Path) -> None:
    secret = "whsec_" + "c2VjcmV0" * 4
    process = start("receiver", "--port", "0", "--secret", secret, "--quiet")
    url = process.wait_for(r"receiver at (https://\S+),")
    trusted = ssl.create_default_context(cafile=process.wait_for(r"signed by (\S+)"))
    assert httpx.post(f"{url}/ok", content=b"{}", verify=trusted, trust_env=False).status_code == 401
    port = url.rpartition(":")[2]
    second = start("receiver", "--port", port)
    assert second.ended() == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in second.errors
    assert process.stop() == 0


def test_a_receivers_secret_has_to_be_one(folder: Path) -> None:
    result = runner_with({"HOOKSAGA_DATA_DIR": str(folder)})("receiver", "--secret", "hs_key")
    assert result.exit_code == 2
    assert "whsec_" in result.stderr
