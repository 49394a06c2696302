"""Classification of database errors: each state of the table, raised by a real server."""

import psycopg.errors
import pytest

from hooksaga.adapters import sqlstates
from hooksaga.adapters.database import Role, Session
from hooksaga.adapters.sqlstates import FAULTS, Fault, fault_of
from hooksaga.core.errors import DatabaseUnavailable, RowRefused, SchemaMismatch, ValueRefused
from tests.conftest import SessionOf
from tests.database.seed import pid

NO_ERRORS = ("00", "01", "02")
"""Classes of success, warnings and no data, which are never raised."""

RAISED = {
    Fault.SENDER: ValueRefused,
    Fault.ROW: RowRefused,
    Fault.RACE: DatabaseUnavailable,
    Fault.CONNECTION: DatabaseUnavailable,
    Fault.DATABASE: DatabaseUnavailable,
    Fault.SCHEMA: SchemaMismatch,
}


@pytest.fixture
async def session(session_of: SessionOf) -> Session:
    return session_of(Role.ROUTER)


async def test_each_state_of_the_table_is_raised_as_its_kind(session: Session) -> None:
    """And costs the session its connection only where that is of no use any more."""
    found: dict[str, tuple[type[Exception], bool]] = {}
    for state in FAULTS:
        before = await session.run(pid)
        raising = f"DO $$ BEGIN RAISE EXCEPTION SQLSTATE '{state.ljust(5, '0')}'; END $$".encode()
        try:
            await session.run(lambda connection, raising=raising: connection.execute(raising))
        except (DatabaseUnavailable, RowRefused, SchemaMismatch) as error:
            found[state] = type(error), await session.run(pid) != before
    wanted = {state: (RAISED[fault], fault is Fault.CONNECTION) for state, fault in FAULTS.items()}
    assert found == wanted


def test_every_state_that_the_driver_knows_is_sorted() -> None:
    """The default is for states that do not exist yet."""
    names = {
        error.__name__: error.sqlstate
        for error in vars(psycopg.errors).values()
        if isinstance(error, type) and issubclass(error, psycopg.Error)
    }
    states = {state for state in names.values() if state is not None and state[:2] not in NO_ERRORS}
    assert len(states) > 200
    unsorted = {state for state in states if not any(state[:length] in FAULTS for length in range(2, 6))}
    assert unsorted == set()


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ("2200H", Fault.DATABASE),  # no more ids
        ("22P02", Fault.SENDER),  # no JSON
        ("22012", Fault.ROW),
        ("22036", Fault.SENDER),
        ("23505", Fault.ROW),
        ("23514", Fault.SENDER),
        ("HS001", Fault.SENDER),
        ("P0001", Fault.ROW),
        ("25006", Fault.CONNECTION),
        ("25001", Fault.DATABASE),
        ("40001", Fault.RACE),
        ("40002", Fault.DATABASE),
        ("42501", Fault.SCHEMA),
        ("42P05", Fault.CONNECTION),
        ("53100", Fault.CONNECTION),
        ("55P03", Fault.DATABASE),
        ("57014", Fault.DATABASE),
        ("57P05", Fault.CONNECTION),
        ("ZZ999", Fault.DATABASE),
    ],
)
def test_the_longest_entry_counts(state: str, fault: Fault) -> None:
    assert fault_of(state) is fault


def test_a_mistake_of_this_program_is_nobody_elses() -> None:
    assert sqlstates.fault_of_error(psycopg.ProgrammingError("no such placeholder")) is None
    assert sqlstates.fault_of_error(psycopg.OperationalError("the connection is closed")) is Fault.CONNECTION
    assert sqlstates.fault_of_error(psycopg.DataError("a NUL in a text")) is Fault.SENDER
