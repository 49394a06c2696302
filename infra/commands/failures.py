"""The one table from errors to what the person at the terminal reads, and to exit codes.

0 is good; 1: what was asked for failed; 2: the command, a setting or a key is wrong, and nothing was tried.
"""

from typing import Any

import typer
from typer.core import TyperGroup

from infra.commands.terminal import printable

FAILED = 1
WRONG_USE = 2
WRONG_KEY_CODES = ("unauthorized", "forbidden")
LOG_LINES_SHOWN = 8


class CommandFailed(Exception):
    """The message says what failed and what to do next."""


class WrongUse(Exception):
    """The message says which option, setting or key is wrong, and what would be right."""


class CommandGroup(TyperGroup):
    """Every error that is somebody's fault but ours ends as a message and an exit code, not as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, BrokenPipeError):
            raise
        except _expected() as error:
            typer.echo(f"hooksaga: {message_of(error)}", err=True)
            raise typer.Exit(exit_code_of(error)) from None


def _expected() -> tuple[type[Exception], ...]:
    """Called only when something was raised, so that no command pays for these imports."""
    from infra.local.api_client import ApiError
    from infra.local.postgres import EmbeddedPostgresError
    from shared.adapters import database
    from shared.core.errors import HooksagaError
    from shared.runtime.settings import InvalidSettings

    # What the database says of its own schema and rights reaches us as its driver's errors.
    driver_errors = database.psycopg.Error
    ours = (CommandFailed, WrongUse, ApiError, InvalidSettings, HooksagaError, EmbeddedPostgresError)
    return (*ours, driver_errors, OSError)


def exit_code_of(error: Exception) -> int:
    """2 for what the caller has to put right before anything can be tried, else 1."""
    from infra.local.api_client import ApiError
    from shared.runtime.settings import InvalidSettings

    if isinstance(error, ApiError):
        return WRONG_USE if error.code in WRONG_KEY_CODES else FAILED
    return WRONG_USE if isinstance(error, WrongUse | InvalidSettings) else FAILED


def message_of(error: Exception) -> str:
    """What happened first, then the hint, then what a server wrote, indented."""
    from infra.local.api_client import ApiError
    from shared.adapters import database

    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, ApiError) and error.code in WRONG_KEY_CODES:
        lines.append(
            "give another key with --api-key, or in HOOKSAGA_API_KEY; `hooksaga keys create` makes one"
        )
    if isinstance(error, database.psycopg.Error):
        hint = "check HOOKSAGA_DATABASE_URL" if error.sqlstate is None else "does it need `hooksaga migrate`?"
        lines = [f"the database: {lines[0]}", hint]
    return "\n  ".join(printable(line) for line in [lines[0], *lines[1:][-LOG_LINES_SHOWN:]])
