"""Everything that a session depends on, said once, so that no default of a role, a database or a server counts.

`migrate` states it for each function's role in its database (ALTER ROLE … IN DATABASE … SET): no other default is
stronger, sessions need no SET, and poolers pass it on. The owner's role is its operator's, who may use it elsewhere:
its transactions state it for themselves.

default_transaction_read_only is left alone: it is how a server says that it must not be written any more.
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
    "transaction_timeout": "0",
    "synchronous_commit": "on",
}
"""Settings that change the meaning of statements and results, or of a COMMIT."""

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
"""Of a function's role, with what the plans of its statements depend on. Time limits, and plans that are ruled out,
are set on the roles where these are created."""

GUARDED: Mapping[str, str] = {"session_replication_role": "origin"}
"""As well, but only who may set it can state it: with another value triggers do not fire."""

OWNER: Mapping[str, str] = {
    **REQUIRED_SETTINGS,
    **GUARDED,
    "statement_timeout": "0",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "0",
}
"""Of a transaction of the owner. An audit reads for long, but waits for no lock for long."""


def as_options(settings: Mapping[str, str]) -> str:
    """Command-line options for libpq's `options`; backslashes keep blanks together."""
    return " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in settings.items())
