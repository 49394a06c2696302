"""Mapping of errors to terminal messages and exit codes.

0: success. 1: the operation failed. 2: the command, a setting or a key is wrong, and nothing was tried.
"""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from hooksaga.cli.terminal import printable

FAILED = 1
WRONG_USE = 2
WRONG_KEY_CODES = ("unauthorized", "forbidden")
LOG_LINES_SHOWN = 8
FOR_AWS = ("boto3", "botocore")
"""Modules of the extra `aws`."""


class CommandFailed(Exception):
    """The message says what failed and what to do next."""


class WrongUse(Exception):
    """The message says which option, setting or key is wrong, and what would be right."""


class CommandGroup(TyperGroup):
    """Command group that reports expected errors as a message and an exit code, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, BrokenPipeError):
            raise
        except ModuleNotFoundError as error:
            if error.name not in FOR_AWS:
                raise
            typer.echo(
                f"hooksaga: this needs {error.name}: pip install 'hooksaga[aws]', or `make install-sqs` in a checkout",
                err=True,
            )
            raise typer.Exit(WRONG_USE) from None
        except _expected() as error:
            typer.echo(f"hooksaga: {message_of(error)}", err=True)
            raise typer.Exit(exit_code_of(error)) from None


_EXPECTED = (
    ("hooksaga.core.errors", "HooksagaError"),
    ("hooksaga.local.api_client", "ApiError"),
    ("hooksaga.local.database_account", "NoDatabaseAccount"),
    ("hooksaga.local.given_database", "NoDatabaseYet"),
    ("hooksaga.local.postgres", "EmbeddedPostgresError"),
    ("hooksaga.runtime.settings", "InvalidSettings"),
)
"""Modules and their errors. A module that no command has imported has raised nothing, and stays unimported."""


def _expected() -> tuple[type[Exception], ...]:
    found = [getattr(sys.modules[module], name) for module, name in _EXPECTED if module in sys.modules]
    return (CommandFailed, WrongUse, OSError, *found)


def _is(error: Exception, *names: str) -> bool:
    """Return whether the error is one of these expected errors."""
    kinds = [(module, name) for module, name in _EXPECTED if name in names and module in sys.modules]
    return any(isinstance(error, getattr(sys.modules[module], name)) for module, name in kinds)


def exit_code_of(error: Exception) -> int:
    """Return 2 for errors that the caller must fix before a retry, else 1."""
    if _is(error, "ApiError"):
        return WRONG_USE if _has_wrong_key(error) else FAILED
    is_use = isinstance(error, WrongUse) or _is(error, "InvalidSettings", "NoDatabaseYet")
    return WRONG_USE if is_use else FAILED


def _has_wrong_key(error: Exception) -> bool:
    return getattr(error, "code", "") in WRONG_KEY_CODES


def message_of(error: Exception) -> str:
    """Return the message: the error first, then the hint, then a server's output, indented."""
    from hooksaga.core.errors import DatabaseUnavailable, SchemaMismatch

    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if _is(error, "ApiError") and _has_wrong_key(error):
        lines.append(
            "pass another key with --api-key, or set HOOKSAGA_API_KEY; `hooksaga keys create` creates one"
        )
    if isinstance(error, SchemaMismatch):
        lines = [f"the database: {lines[0]}", "run `hooksaga migrate` if the schema is outdated"]
    if isinstance(error, DatabaseUnavailable):
        lines = [f"the database: {lines[0]}", "check HOOKSAGA_DATABASE_URL"]
    return "\n  ".join(printable(line) for line in [lines[0], *lines[1:][-LOG_LINES_SHOWN:]])
