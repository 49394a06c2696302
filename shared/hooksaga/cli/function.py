"""The command `hooksaga invoke`."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hooksaga.cli.failures import FAILED, WrongUse
from hooksaga.cli.terminal import show_json

if TYPE_CHECKING:
    from hooksaga.local.sqs.runtime_api import Outcome


def invoke(
    function: Annotated[str, typer.Argument(help="ingest, router, orchestrator, delivery, …")],
    file: Annotated[Path, typer.Argument(help="An event, such as those in events-samples/.")],
) -> None:
    """Run one function with one event, in a process of its own under AWS's runtime client.

    Uses HOOKSAGA_DATABASE_URL, or the embedded database. Exit code 1 if the function fails.
    """
    from hooksaga.local.sqs.invoke import outcome_content

    outcome = asyncio.run(_invoke(function, _read(file)))
    show_json(outcome_content(outcome))
    raise typer.Exit(FAILED if outcome.error is not None else 0)


async def _invoke(function: str, event: str) -> "Outcome":
    from hooksaga.adapters.migrations import migrate
    from hooksaga.local.given_database import open_database
    from hooksaga.local.sqs.function_table import FUNCTIONS
    from hooksaga.local.sqs.invoke import invoke_event
    from hooksaga.runtime.settings import read_settings

    if function not in FUNCTIONS:
        raise WrongUse(f"unknown function {function}; choose one of {', '.join(FUNCTIONS)}")
    async with open_database(create=True) as address:
        await asyncio.to_thread(migrate, address)
        try:
            return await invoke_event(read_settings(), address, function, event)
        except (ValueError, RecursionError) as error:
            raise WrongUse(f"the file is not valid JSON for a function: {error}") from error


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"cannot read {file}: {error}") from error
