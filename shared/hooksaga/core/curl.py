"""A request as a command line for curl. Pure."""

import re
import shlex
from collections.abc import Mapping

from hooksaga.core.attempts import MASK

_NOT_IN_NAMES = re.compile(r"[^A-Z0-9]")


def curl_command(url: str, headers: Mapping[str, str], body: str) -> str:
    """Return a command of a POSIX shell that POSTs the body byte for byte.

    A masked header takes its value from an environment variable, and is left out while this is not set. The body comes
    from a pipe, because one argument of a command cannot have more than 128 KiB.
    """
    parts = [
        f"printf '%s' {shlex.quote(body)} |",
        f"curl --http1.1 --include {shlex.quote(url)}",
        *(f"--header {_header(name, value)}" for name, value in headers.items()),
        "--header 'accept:' --header 'expect:'",
        "--data-binary @-",
    ]
    return " \\\n  ".join(parts)


def secret_variables(headers: Mapping[str, str]) -> list[str]:
    """Return the environment variables that the command reads."""
    return [_variable(name) for name, value in headers.items() if value == MASK]


def _header(name: str, value: str) -> str:
    if value == MASK:
        return f'{shlex.quote(f"{name}: ")}"${_variable(name)}"'
    return shlex.quote(f"{name}: {value}")


def _variable(name: str) -> str:
    """Return the name in upper case. A header's name may begin with a digit, a variable's may not."""
    variable = _NOT_IN_NAMES.sub("_", name.upper())
    return f"_{variable}" if variable[0].isdigit() else variable
