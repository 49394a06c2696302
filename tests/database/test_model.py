"""All roles at once on one database, in random order, statement by statement, against a model in plain Python.

Hypothesis chooses who does what, who stops in the middle of a transaction with his locks, whose connection breaks, who
never learns that he has committed, which lease ends and which wait is over. After every step the audit has to find
nothing and the tables have to be what the ledger was told. At the end of each run everybody gets well, and whatever was
accepted has to end.
"""

import asyncio
import os
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from hooksaga.adapters.database import DatabaseAddress
from tests.database.crew import Crew
from tests.database.interleaved_roles import Interleaving
from tests.faults.promises import IN_FULL, Promise, RecordProperty, tried
from tests.faults.sabotage import VARIABLE, from_environment

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(1200)]

EXAMPLES, STEPS = (400, 100) if IN_FULL else (25, 60)

MUST_HAPPEN = (
    "answers lost after COMMIT",
    "connections lost within a transaction",
    "jobs given up after too many claims",
    "late results",
    "sagas from a requeue",
    "sagas from a requeue in bulk",
    "sagas that ended as Completed",
    "sagas that ended as DeadLettered",
    "waits for the lock of another",
    "workers that died",
    "pauses",
    "resumes",
    "steps with a full room",
    "steps while a circuit breaker was open",
    "steps while a probe was under way",
)
"""A run in which one of these did not happen has tried less than it says."""

MAY_BE_MISSING = 3
"""In the short form, which says nothing on the page of guarantees."""


@pytest.fixture
def crew(database_address: DatabaseAddress) -> Iterator[tuple[Crew, asyncio.AbstractEventLoop]]:
    from_environment()
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        owner = loop.run_until_complete(
            psycopg.AsyncConnection.connect(database_address.url, autocommit=True, prepare_threshold=3)
        )
        crew = Crew(owner, database_address)
        yield crew, loop
        loop.run_until_complete(crew.close())
        loop.run_until_complete(owner.close())


@pytest.mark.guarantees(
    Promise.INTERLEAVED,
    "steps of * connections in * random orders",
    *(f"of them: {what}" for what in MUST_HAPPEN),
)
def test_no_order_of_statements_breaks_a_promise(
    crew: tuple[Crew, asyncio.AbstractEventLoop], record_property: RecordProperty
) -> None:
    class OfThisCrew(Interleaving):
        def __init__(self) -> None:
            super().__init__(*crew)

    run_state_machine_as_test(
        OfThisCrew,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not IN_FULL,
            deadline=None,
            database=None,
            print_blob=True,
            phases=[Phase.generate] if VARIABLE in os.environ else [Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    done = crew[0].done
    missing = [what for what in MUST_HAPPEN if not done[what]]
    assert len(missing) <= (0 if IN_FULL else MAY_BE_MISSING), missing
    tried(
        record_property,
        Promise.INTERLEAVED,
        f"steps of {len(crew[0].everybody)} connections in {done['runs']} random orders",
        "the audit and the model agree after each",
        times=done["steps"],
    )
    for what in MUST_HAPPEN:
        tried(record_property, Promise.INTERLEAVED, f"of them: {what}", "as the model says", times=done[what])
