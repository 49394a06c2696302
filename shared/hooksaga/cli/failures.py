"""Mapping of errors to terminal messages and exit codes.

0: success. 1: the operation failed. 2: the command, a setting or a key is wrong, and nothing was tried.
"""

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


def _expected() -> tuple[type[Exception], ...]:
    """Import error classes only after an error, to keep commands fast."""
    from hooksaga.core.errors import HooksagaError
    from hooksaga.local.api_client import ApiError
    from hooksaga.local.database_account import NoDatabaseAccount
    from hooksaga.local.given_database import NoDatabaseYet
    from hooksaga.local.postgres import EmbeddedPostgresError
    from hooksaga.runtime.settings import InvalidSettings

    ours = (CommandFailed, WrongUse, ApiError, InvalidSettings, HooksagaError)
    return (*ours, EmbeddedPostgresError, NoDatabaseAccount, NoDatabaseYet, OSError)


def exit_code_of(error: Exception) -> int:
    """Return 2 for errors that the caller must fix before a retry, else 1."""
    from hooksaga.local.api_client import ApiError
    from hooksaga.local.given_database import NoDatabaseYet
    from hooksaga.runtime.settings import InvalidSettings

    if isinstance(error, ApiError):
        return WRONG_USE if error.code in WRONG_KEY_CODES else FAILED
    return WRONG_USE if isinstance(error, WrongUse | InvalidSettings | NoDatabaseYet) else FAILED


def message_of(error: Exception) -> str:
    """Return the message: the error first, then the hint, then a server's output, indented."""
    from hooksaga.core.errors import DatabaseUnavailable, SchemaMismatch
    from hooksaga.local.api_client import ApiError

    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, ApiError) and error.code in WRONG_KEY_CODES:
        lines.append(
            "pass another key with --api-key, or set HOOKSAGA_API_KEY; `hooksaga keys create` creates one"
        )
    if isinstance(error, SchemaMismatch):
        lines = [f"the database: {lines[0]}", "run `hooksaga migrate` if the schema is outdated"]
    if isinstance(error, DatabaseUnavailable):
        lines = [f"the database: {lines[0]}", "check HOOKSAGA_DATABASE_URL"]
    return "\n  ".join(printable(line) for line in [lines[0], *lines[1:][-LOG_LINES_SHOWN:]])
