"""The `hooksaga` command.

Each command imports what it needs when it runs, and a call builds only the command that it names: building all of them
takes as long as one call to the API. `app` has all of them, for help and for tests.
"""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from hooksaga.cli.failures import CommandGroup
from hooksaga.cli.option_groups import Commands

RUN = "On this machine"
USE = "Through the API"
OPERATE = "On the database"

_COMMANDS = (
    (RUN, "up", "run"),
    (RUN, "demo", "run"),
    (RUN, "receiver", "run"),
    (RUN, "bench", "bench"),
    (RUN, "invoke", "function"),
    (USE, "send", "send"),
    (USE, "explain", "explain"),
    (USE, "events", ""),
    (USE, "attempts", ""),
    (USE, "subscriptions", ""),
    (USE, "event-types", ""),
    (USE, "dead-letters", ""),
    (USE, "bulk", ""),
    (USE, "sagas", ""),
    (USE, "erase", "erase"),
    (USE, "stats", "stats"),
    (OPERATE, "migrate", "database"),
    (OPERATE, "audit", "database"),
    (OPERATE, "prune", "prune"),
    (OPERATE, "keys", ""),
    (OPERATE, "secrets", ""),
    (OPERATE, "doctor", "doctor"),
    (OPERATE, "cost", "cost"),
)
"""Panel, name and module of each command, in the order of the help. Without a module: a group, in a module of its own
name."""


def build(only: str | None = None) -> typer.Typer:
    """Return the application with one command, or with all if none has this name."""
    chosen = [one for one in _COMMANDS if one[1] == only] or _COMMANDS
    made = Commands(
        cls=CommandGroup,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        help="Reliable webhook delivery on PostgreSQL.",
    )
    made.callback()(options)
    for panel, name, module in chosen:
        if module:
            found = import_module(f"hooksaga.cli.{module}")
            made.command(name, rich_help_panel=panel)(getattr(found, name))
        else:
            found = import_module(f"hooksaga.cli.{name.replace('-', '_')}")
            made.add_typer(found.app, name=name, rich_help_panel=panel)
    return made


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hooksaga {version('hooksaga')}")
        raise typer.Exit


def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Reliable webhook delivery on PostgreSQL."""


def __getattr__(name: str) -> Any:
    """Build `app` at its first use."""
    if name != "app":
        raise AttributeError(name)
    globals()["app"] = made = build()
    return made


def main() -> None:
    """Entry point."""
    build(sys.argv[1] if len(sys.argv) > 1 else None)()


if __name__ == "__main__":
    main()
