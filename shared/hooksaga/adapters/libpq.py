"""Parameters of a libpq connection: the URL first, then libpq's environment for what the URL does not say.

libpq reads some forty variables by itself. Those that lead elsewhere than the URL, or make another session of it, are
shut out; those that say how to log in and how to encrypt (PGPASSWORD, PGPASSFILE, PGSSLMODE and their like) complete a
URL that says nothing of it. The URL of the embedded server says everything, so nothing completes it.
"""

import os
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

CLEARED_VARIABLES = ("PGSERVICE", "PGDATESTYLE", "PGTZ", "PGGEQO")
"""No parameter overrules them, so they are taken out of this process's environment: no part of it wants them."""

KEEPALIVE = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""A peer that is gone is noticed within about 15 s, and no NAT on the way forgets a connection."""

_EMPTY_IS_INVALID = {
    "connect_timeout": "10",
    "min_protocol_version": "3.0",
    "max_protocol_version": "3.0",
    "sslcertmode": "disable",
}
"""Values for parameters without a default that libpq takes no empty text for."""


def is_conninfo(text: str) -> bool:
    """Return whether libpq can read the text as a connection string."""
    try:
        return bool(conninfo_to_dict(text))
    except psycopg.Error:
        return False


def user_of(url: str) -> str | None:
    """The user whom the URL names, if it names one."""
    user = conninfo_to_dict(url).get("user")
    return None if user is None else str(user)


def owner_password(url: str) -> str | None:
    """The password of the user whom the URL names: the URL's, or where it says nothing of one, PGPASSWORD's."""
    given = conninfo_to_dict(url)
    return str(given["password"]) if "password" in given else os.environ.get("PGPASSWORD") or None


def conninfo(url: str, *, options: str = "", **parameters: Any) -> str:
    """A connection string of the URL and these parameters, which win over it.

    options come behind the URL's own, which win over every other default of a session; PGOPTIONS never counts.
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
    """Take the variables that no connection string overrules out of the environment of this process."""
    for name in CLEARED_VARIABLES:
        os.environ.pop(name, None)


def complete(url: str) -> str:
    """The URL of a server without TLS and passwords, with a value for everything that the environment could say."""
    said = conninfo_to_dict(url)
    defaults = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.envvar and option.keyword != b"service"
    }
    known = {name: value for name, value in _EMPTY_IS_INVALID.items() if name in defaults}
    plain = {"sslmode": "disable", "gssencmode": "disable", "client_encoding": "UTF8"}
    return make_conninfo("", **{**defaults, **known, **plain, **said})
