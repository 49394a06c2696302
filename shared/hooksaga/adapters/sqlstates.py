"""Classification of database errors: one table by SQLSTATE, and the exception for each class.

The default is the database: a producer that gets a 4xx drops its event, one that gets a 503 repeats it.
"""

import re
from enum import StrEnum

import psycopg

from hooksaga.core.errors import DatabaseUnavailable, RowRefused, SchemaMismatch, ValueRefused


class Fault(StrEnum):
    """Cause of a database error.

    SENDER: a value that a caller sent. ROW: one row, but no value of a caller; other rows may succeed. RACE: another
    transaction; repeating the unit may succeed. CONNECTION: this session is unusable, another may work. DATABASE: all
    such statements fail until an operator acts. SCHEMA: tables, rights or functions are not those of this version.
    """

    SENDER = "sender"
    ROW = "row"
    RACE = "race"
    CONNECTION = "connection"
    DATABASE = "database"
    SCHEMA = "schema"


FAULTS: dict[str, Fault] = {
    # Values: too long, out of range, not of their type, not of the encoding, against a rule of the table.
    "22001": Fault.SENDER,  # string_data_right_truncation
    "22003": Fault.SENDER,  # numeric_value_out_of_range
    "22007": Fault.SENDER,  # invalid_datetime_format
    "22008": Fault.SENDER,  # datetime_field_overflow
    "22021": Fault.SENDER,  # character_not_in_repertoire
    "2203": Fault.SENDER,  # SQL/JSON
    "22P02": Fault.SENDER,  # invalid_text_representation, such as text that is no JSON
    "22P05": Fault.SENDER,  # untranslatable_character
    "23514": Fault.SENDER,  # check_violation
    "HS": Fault.SENDER,  # hooksaga's own guards
    # Rows. Ids, references and triggers are set by the database: a caller cannot send better ones.
    "09": Fault.ROW,  # triggered_action_exception
    "0A": Fault.CONNECTION,  # feature_not_supported, such as a prepared plan whose table has changed since
    "20": Fault.ROW,  # case_not_found
    "21": Fault.ROW,  # cardinality_violation
    "22": Fault.ROW,  # any other data exception
    "2200H": Fault.DATABASE,  # sequence_generator_limit_exceeded: there are no more ids
    "22023": Fault.DATABASE,  # invalid_parameter_value: a setting
    "22P06": Fault.DATABASE,  # nonstandard_use_of_escape_character: a setting
    "23": Fault.ROW,  # any other constraint
    "27": Fault.ROW,  # triggered_data_change_violation
    "2F": Fault.ROW,  # sql_routine_exception
    "38": Fault.ROW,  # external_routine_exception
    "39": Fault.ROW,  # external_routine_invocation_exception
    "44": Fault.ROW,  # with_check_option_violation
    "54": Fault.ROW,  # program_limit_exceeded, such as a row that is too large for an index
    "P0": Fault.ROW,  # raised by a trigger that is not hooksaga's
    # Other transactions.
    "40001": Fault.RACE,  # serialization_failure
    "40P01": Fault.RACE,  # deadlock_detected
    # Sessions.
    "08": Fault.CONNECTION,  # connection_exception
    "25006": Fault.CONNECTION,  # read_only_sql_transaction: after a failover another server accepts writes
    "25P03": Fault.CONNECTION,  # idle_in_transaction_session_timeout
    "25P04": Fault.CONNECTION,  # transaction_timeout
    "26": Fault.CONNECTION,  # invalid_sql_statement_name: a pooler without support for prepared statements
    "28": Fault.CONNECTION,  # invalid_authorization_specification
    "3D": Fault.CONNECTION,  # invalid_catalog_name
    "40003": Fault.CONNECTION,  # statement_completion_unknown
    "42P05": Fault.CONNECTION,  # duplicate_prepared_statement: as 26
    "53": Fault.CONNECTION,  # insufficient_resources: disk, memory, connections
    "57P": Fault.CONNECTION,  # shutdown, crash, idle_session_timeout, database_dropped
    "XX": Fault.CONNECTION,  # internal_error, data_corrupted, index_corrupted
    # The schema.
    "3F": Fault.SCHEMA,  # invalid_schema_name
    "42": Fault.SCHEMA,  # undefined or different tables, columns, functions; insufficient_privilege
    # All statements of this kind, until an operator acts.
    "03": Fault.DATABASE,  # sql_statement_not_yet_complete
    "0B": Fault.DATABASE,  # invalid_transaction_initiation
    "0F": Fault.DATABASE,  # locator_exception
    "0L": Fault.DATABASE,  # invalid_grantor
    "0P": Fault.DATABASE,  # invalid_role_specification
    "0Z": Fault.DATABASE,  # diagnostics_exception
    "10": Fault.DATABASE,  # XQuery
    "24": Fault.DATABASE,  # invalid_cursor_state
    "25": Fault.DATABASE,  # any other invalid_transaction_state
    "2B": Fault.DATABASE,  # dependent objects
    "2D": Fault.DATABASE,  # invalid_transaction_termination
    "34": Fault.DATABASE,  # invalid_cursor_name
    "3B": Fault.DATABASE,  # savepoint_exception
    "40": Fault.DATABASE,  # any other transaction_rollback
    "55": Fault.DATABASE,  # object_not_in_prerequisite_state; 55P03 is a lock timeout
    "57": Fault.DATABASE,  # operator_intervention; 57014 is a statement timeout
    "58": Fault.DATABASE,  # system_error, io_error
    "72": Fault.DATABASE,  # snapshot_too_old
    "F0": Fault.DATABASE,  # config_file_error
    "HV": Fault.DATABASE,  # foreign data wrappers
}
"""By SQLSTATE or its prefix; the longest match counts."""


def fault_of(sqlstate: str) -> Fault:
    """Classify a SQLSTATE. An unknown one is the database's."""
    for length in range(5, 1, -1):
        if fault := FAULTS.get(sqlstate[:length]):
            return fault
    return Fault.DATABASE


def fault_of_error(error: psycopg.Error) -> Fault | None:
    """Classify an error; None for a programming error that the driver detected."""
    if error.sqlstate is not None:
        return fault_of(error.sqlstate)
    if isinstance(error, psycopg.DataError):  # rejected by the driver, such as a NUL in a text
        return Fault.SENDER
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Fault.CONNECTION
    return None


CONNECTION_LOST = "the connection broke"


def message_of(error: psycopg.Error, fault: Fault | None) -> str:
    """Return a message that can be logged: rules and names, never values.

    The server's message may quote a value, and its detail a whole row with payload and secrets. So the message of a
    rejected row names only the SQLSTATE and the objects, unless it comes from one of hooksaga's guards.
    """
    if error.sqlstate is None:
        return (
            f"{type(error).__name__} of the driver"
            if fault is Fault.SENDER
            else str(error).strip() or CONNECTION_LOST
        )
    found = error.diag
    state = f" [{error.sqlstate}]"
    if fault not in (Fault.SENDER, Fault.ROW) or error.sqlstate.startswith("HS"):
        return (found.message_primary or CONNECTION_LOST) + state
    function = _FUNCTION.search(found.context or "")
    about = {
        "table": found.table_name,
        "column": found.column_name,
        "constraint": found.constraint_name,
        "function": function[1] if function else None,
    }
    return type(error).__name__ + state + "".join(f", {kind} {name}" for kind, name in about.items() if name)


_FUNCTION = re.compile(r"PL/pgSQL function ([\w.\"]+)\(")


def translated(error: psycopg.Error) -> Exception:
    """Return the exception that stages and callers see instead."""
    fault = fault_of_error(error)
    words = message_of(error, fault)
    match fault:
        case None:
            return error
        case Fault.SENDER:
            return ValueRefused(words)
        case Fault.ROW:
            return RowRefused(words)
        case Fault.SCHEMA:
            return SchemaMismatch(words)
        case _:
            return DatabaseUnavailable(words)
