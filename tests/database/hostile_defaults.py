"""Defaults of a database that others may have set for programs of their own, each of them legal."""

from collections.abc import Iterator

import psycopg
from psycopg import sql

from hooksaga.adapters.database import Role
from hooksaga.adapters.session_settings import OWNER, as_options

HOSTILE = {
    "search_path": "app, public",
    "datestyle": "German, DMY",
    "intervalstyle": "sql_standard",
    "timezone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "array_nulls": "off",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "backslash_quote": "on",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
    "row_security": "off",
    "exit_on_error": "on",
    "xmloption": "document",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "statement_timeout": "1s",
    "lock_timeout": "1s",
    "idle_in_transaction_session_timeout": "1s",
    "transaction_timeout": "1s",
    "idle_session_timeout": "1s",
    "session_replication_role": "replica",
    "synchronous_commit": "off",
    "password_encryption": "md5",
    "client_min_messages": "error",
    "check_function_bodies": "off",
    "enable_bitmapscan": "off",
    "enable_hashagg": "off",
    "enable_indexonlyscan": "off",
    "enable_indexscan": "off",
    "enable_material": "off",
    "enable_nestloop": "off",
    "enable_sort": "off",
    "from_collapse_limit": "1",
    "join_collapse_limit": "1",
    "geqo": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "on",
    "jit_above_cost": "0",
}

NOT_OF_A_SERVER = ("session_replication_role",)
OF_EVERY_ROLE = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
"""A function's role has these from the beginning."""

UNMOVED = as_options({**OWNER, "idle_session_timeout": "0"})
"""Options for a test's own connection."""

DECOYS = (
    "events",
    "subscriptions",
    "webhook_delivery_sagas",
    "webhook_delivery_jobs",
    "api_keys",
    "routing_outbox",
)
"""Tables of another program, in a schema that comes first."""


def make_hostile(connection: psycopg.Connection, database: str) -> None:
    """Makes HOSTILE the default of the database, of its owner in it, of each function's role, and of the server."""
    connection.execute("CREATE SCHEMA app")
    for table in DECOYS:
        connection.execute(sql.SQL("CREATE TABLE app.{} (id text)").format(sql.Identifier(table)))
    connection.execute("GRANT USAGE ON SCHEMA app TO PUBLIC")
    for setting, value in HOSTILE.items():
        assignment = sql.SQL(" {} = {}").format(sql.Identifier(setting), _value(setting, value))
        for target in _targets(sql.Identifier(database), setting):
            connection.execute(target + assignment)
    connection.execute("SELECT pg_reload_conf()")


def _targets(database: sql.Identifier, setting: str) -> Iterator[sql.Composable]:
    yield sql.SQL("ALTER DATABASE {} SET").format(database)
    yield sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} SET").format(database)
    if setting not in OF_EVERY_ROLE:
        roles = (sql.Identifier(role.value) for role in Role if role is not Role.OWNER)
        yield from (sql.SQL("ALTER ROLE {} SET").format(role) for role in roles)
    if setting not in NOT_OF_A_SERVER:
        yield sql.SQL("ALTER SYSTEM SET")


def _value(setting: str, value: str) -> sql.Composable:
    """The one list of names is a list."""
    if setting != "search_path":
        return sql.Literal(value)
    return sql.SQL(", ").join(sql.Identifier(name) for name in value.split(", "))
