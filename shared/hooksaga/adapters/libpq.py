"""Parameters of a libpq connection: first the URL, then libpq's environment variables for what the URL omits.

libpq reads about forty variables. Those that change the target or the session are ignored; those for login and
encryption (PGPASSWORD, PGPASSFILE, PGSSLMODE and the like) complete a URL without them. The URL of the embedded server
is complete.
"""

import os
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

CLEARED_VARIABLES = ("PGSERVICE", "PGDATESTYLE", "PGTZ", "PGGEQO")
"""Variables that no parameter overrides. They are removed from the environment of this process."""

KEEPALIVE = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Detects a dead peer within about 15 s, and keeps NAT entries alive."""

_EMPTY_IS_INVALID = {
    "connect_timeout": "10",
    "min_protocol_version": "3.0",
    "max_protocol_version": "3.0",
    "sslcertmode": "disable",
}
"""Values for parameters that have no default and accept no empty text."""


def is_conninfo(text: str) -> bool:
    try:
        return bool(conninfo_to_dict(text))
    except psycopg.Error:
        return False


def user_of(url: str) -> str | None:
    """Return the user in the URL, or None."""
    user = conninfo_to_dict(url).get("user")
    return None if user is None else str(user)


def place_of(url: str) -> tuple[str, int]:
    """Return host and port of a URL that names one host."""
    given = conninfo_to_dict(url)
    return str(given["host"]), int(given.get("port") or 5432)


def owner_password(url: str) -> str | None:
    """Return the password of the URL's user: from the URL, otherwise from PGPASSWORD."""
    given = conninfo_to_dict(url)
    return str(given["password"]) if "password" in given else os.environ.get("PGPASSWORD") or None


def conninfo(url: str, *, options: str = "", **parameters: Any) -> str:
    """Return a connection string of the URL and these parameters, which override it.

    `options` is appended to the URL's options, which override other defaults of the session; PGOPTIONS is ignored.
    """
    clear_environment()
    given = conninfo_to_dict(url)
    parameters["options"] = f"{given['options']} {options}" if given.get("options") else ""
    if given.get("host") or given.get("hostaddr"):
        parameters.setdefault("hostaddr", given.get("hostaddr", ""))
    several = "," in str(given.get("host") or given.get("hostaddr") or "")
    parameters.setdefault(
        "target_session_attrs", given.get("target_session_attrs", "primary" if several else "any")
    )
    parameters.setdefault("load_balance_hosts", given.get("load_balance_hosts", "disable"))
    return make_conninfo(url, client_encoding="UTF8", **KEEPALIVE, **parameters)


def clear_environment() -> None:
    for name in CLEARED_VARIABLES:
        os.environ.pop(name, None)


def complete(url: str) -> str:
    """Return the URL of a server without TLS and passwords, with a value for everything that the environment could
    set."""
    said = conninfo_to_dict(url)
    defaults = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.envvar and option.keyword != b"service"
    }
    known = {name: value for name, value in _EMPTY_IS_INVALID.items() if name in defaults}
    plain = {"sslmode": "disable", "gssencmode": "disable", "client_encoding": "UTF8"}
    return make_conninfo("", **{**defaults, **known, **plain, **said})
