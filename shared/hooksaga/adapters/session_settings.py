"""Settings of a session, set explicitly, so that defaults of a role, a database or a server have no effect.

`migrate` sets them for each function's role in its database (ALTER ROLE … IN DATABASE … SET): no other default
overrides that, sessions need no SET, and poolers preserve it. The owner's role may be used elsewhere, so the owner's
transactions set them locally.

default_transaction_read_only is not set: with it a server announces that it must not be written.
"""

from collections.abc import Mapping

REQUIRED_SETTINGS: Mapping[str, str] = {
    "search_path": "public",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",
    "row_security": "on",
    "exit_on_error": "off",
    "synchronous_commit": "on",
}
"""Settings that change the meaning of statements, results or a COMMIT."""

OF_NEWER_SERVERS: Mapping[str, str] = {"transaction_timeout": "0"}
"""Settings that PostgreSQL 15 and 16 refuse. They are set where the server knows them, so not by a connection that is
about to be made."""

FUNCTIONS: Mapping[str, str] = {
    **REQUIRED_SETTINGS,
    "role": "none",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "enable_bitmapscan": "on",
    "enable_hashagg": "on",
    "enable_indexonlyscan": "on",
    "enable_indexscan": "on",
    "enable_material": "on",
    "enable_nestloop": "on",
    "enable_sort": "on",
    "from_collapse_limit": "8",
    "join_collapse_limit": "8",
    "geqo": "on",
    "plan_cache_mode": "auto",
    "jit": "off",
}
"""Settings of a function's role, including those that plans depend on. sql/schema sets its timeouts and disabled
plans."""

PLANNED_ONCE = frozenset(
    {"event_ingest_writer", "router_worker", "saga_orchestrator", "job_worker", "lease_cleaner"}
)
"""Roles of the pipeline: their statements have one good plan each, whatever the parameters are (decision 14), and
planning one again for each run takes as long as the run."""

COMMITTED_SOON = frozenset({"router_worker", "saga_orchestrator"})
"""Roles whose commits do not wait for the disk: what a server crash forgets they do again, and nobody acts on it
before a later durable commit, whose log covers it (decision 14)."""

GUARDED: Mapping[str, str] = {"session_replication_role": "origin"}
"""Set only by users with the right to: with another value triggers do not fire."""

OWNER: Mapping[str, str] = {
    **REQUIRED_SETTINGS,
    **OF_NEWER_SERVERS,
    **GUARDED,
    "statement_timeout": "0",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "0",
}
"""Settings of an owner's transaction. An audit reads for a long time, but waits briefly for locks."""


def of_role(role: str) -> dict[str, str]:
    """Return the settings of a function's role."""
    planned_once = {"plan_cache_mode": "force_generic_plan"} if role in PLANNED_ONCE else {}
    committed_soon = {"synchronous_commit": "off"} if role in COMMITTED_SOON else {}
    return {**FUNCTIONS, **planned_once, **committed_soon}


def as_options(settings: Mapping[str, str]) -> str:
    """Return settings as command-line options for libpq's `options`; backslashes escape blanks."""
    return " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in settings.items())


def as_params(settings: Mapping[str, str]) -> dict[str, list[str]]:
    """Return settings as parameters of the queries that set them."""
    return {"names": list(settings), "values": list(settings.values())}
