"""The suite finds mistakes: each is made in the running product, and the test that is there for it has to fail."""

import os
import subprocess
import sys

import pytest

from tests.faults.crash_points import ROOT
from tests.faults.promises import IN_FULL, Promise, RecordProperty, tried
from tests.faults.sabotage import KINDS, Kind, Sabotage, environment

pytestmark = pytest.mark.faults

KILLED = "faults/test_crash_points.py::test_a_kill_at_any_point_loses_nothing"
SLEPT = "faults/test_workers_misbehave.py::test_a_worker_that_wakes_up_after_its_lease_changes_nothing"
LOADED = "faults/test_database_fails.py::test_a_database_that_fails_under_load_loses_nothing[{}]"
"""Of these one case, which the short form may not have."""
LIED_TO = "sqs/test_queue_lies.py::test_everything_arrives_though_the_queue_lies[failed]"
POISONED = "faults/test_workers_misbehave.py::test_a_payload_that_kills_workers_dies_alone"
FAR_AWAY = "faults/test_network.py::test_a_bad_network_costs_attempts_and_nothing_else"
IN_FLIGHT = "database/test_eligibility.py::test_an_event_in_flight_has_a_lower_id_and_is_for_it"
MODEL = "database/test_model.py::test_no_order_of_statements_breaks_a_promise"

FOUND_BY = {
    Sabotage.UNFENCED: SLEPT,
    Sabotage.OUTBOX_FIRST: KILLED,
    Sabotage.NO_CLEANER: KILLED,
    Sabotage.HASTY_CLEANER: MODEL,
    Sabotage.TAKEN_AGAIN: MODEL,
    Sabotage.FALSE_COMMIT: KILLED,
    Sabotage.NEW_ID: KILLED,
    Sabotage.STICKY: LOADED.format("failover-read-only"),
    Sabotage.TRUSTED_COMMIT: LOADED.format("lost"),
    Sabotage.TRUSTED_QUEUE: LIED_TO,
    Sabotage.TOGETHER: POISONED,
    Sabotage.SILENCE: FAR_AWAY,
    Sabotage.BY_ID: IN_FLIGHT,
}
LONG = (FAR_AWAY, MODEL)
"""The short form of these is not tried, or does not find each mistake."""


def test_every_kind_of_fault_has_to_find_a_mistake() -> None:
    assert set(FOUND_BY) == set(KINDS) == set(Sabotage)
    assert set(KINDS.values()) == set(Kind)


@pytest.mark.guarantees(Promise.CAUGHT, *(sabotage.value for sabotage in Sabotage))
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not IN_FULL, reason="long: make faults")
@pytest.mark.parametrize("sabotage", Sabotage)
def test_a_mistake_is_found(sabotage: Sabotage, record_property: RecordProperty) -> None:
    test = FOUND_BY[sabotage]
    in_full = test.endswith("]") or test in LONG
    variables = {name: value for name, value in os.environ.items() if in_full or name != "HOOKSAGA_FAULTS"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "0",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            f"tests/{test}",
        ],
        cwd=ROOT,
        env={**variables, **environment(sabotage)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    if done.returncode == pytest.ExitCode.OK and "1 skipped" in done.stdout:
        pytest.skip(f"{test} cannot be run here")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout[-3000:]
    assert "AssertionError" in done.stdout or "\nE       assert " in done.stdout, done.stdout[-3000:]
    outcome = f"`{test.split('::')[1]}` failed ({KINDS[sabotage]})"
    tried(record_property, Promise.CAUGHT, sabotage.value, outcome)
