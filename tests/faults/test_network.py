"""Sender and receiver as two hosts with a bad network between them."""

import json
import subprocess
import sys

import pytest

from tests.faults.crash_points import ROOT
from tests.faults.promises import IN_FULL, Promise, RecordProperty, tried
from tests.faults.two_hosts import CUT, WEATHERS

pytestmark = [
    pytest.mark.faults,
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not IN_FULL, reason="long: make faults"),
]


@pytest.fixture(scope="module")
def own_network() -> list[str]:
    """Return the prefix of commands that run in a network namespace of their own."""
    prefix = ["unshare", "--net"]
    try:
        probe = ["ip", "tuntap", "add", "dev", "probe", "mode", "tun"]
        subprocess.run([*prefix, *probe], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace with a TUN device can be made here: {error}")
    return prefix


@pytest.mark.guarantees(Promise.NETWORK, *WEATHERS, CUT)
def test_a_bad_network_costs_attempts_and_nothing_else(
    own_network: list[str], record_property: RecordProperty
) -> None:
    weathers = [*WEATHERS, CUT]
    done = subprocess.run(
        [*own_network, sys.executable, "-m", "tests.faults.two_hosts", *weathers],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    came_out = {line["weather"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert list(came_out) == weathers
    for weather, line in came_out.items():
        assert line["findings"] == []
        assert line["missing"] == 0
        assert set(line["states"]) == {"Completed"}, line
        assert line["packets_lost"] > 0 or "lost" not in weather
        words = ", ".join(f"`{word}`" for word in line["words"]) or "none"
        events, again = line["states"]["Completed"], line["again"]
        outcome = f"{events} events arrived, {again} of them sent again; attempts failed with: {words}"
        tried(record_property, Promise.NETWORK, weather, outcome, times=max(1, line["packets_lost"]))
