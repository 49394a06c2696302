"""The `hooksaga` command. Each command imports what it needs when it runs, so that --help is quick."""

from typing import Annotated

import typer

from hooksaga.cli import (
    attempts,
    bench,
    bulk,
    cost,
    database,
    dead_letters,
    doctor,
    events,
    explain,
    keys,
    prune,
    run,
    sagas,
    secrets,
    send,
    stats,
    subscriptions,
)
from hooksaga.cli import function as sqs_command
from hooksaga.cli.failures import CommandGroup

RUN = "On this machine"
USE = "Through the API"
OPERATE = "On the database"

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reliable webhook delivery on PostgreSQL.",
)
app.command(rich_help_panel=RUN)(run.up)
app.command(rich_help_panel=RUN)(run.demo)
app.command(rich_help_panel=RUN)(run.receiver)
app.command(rich_help_panel=RUN)(bench.bench)
app.command(rich_help_panel=RUN)(sqs_command.invoke)
app.command(rich_help_panel=USE)(send.send)
app.command(rich_help_panel=USE)(explain.explain)
app.add_typer(events.app, name="events", rich_help_panel=USE)
app.add_typer(attempts.app, name="attempts", rich_help_panel=USE)
subscriptions.app.command()(bulk.backfill)
app.add_typer(subscriptions.app, name="subscriptions", rich_help_panel=USE)
app.add_typer(dead_letters.app, name="dead-letters", rich_help_panel=USE)
app.add_typer(bulk.app, name="bulk", rich_help_panel=USE)
app.add_typer(sagas.app, name="sagas", rich_help_panel=USE)
app.command(rich_help_panel=USE)(stats.stats)
app.command(rich_help_panel=OPERATE)(database.migrate)
app.command(rich_help_panel=OPERATE)(database.audit)
app.command(rich_help_panel=OPERATE)(prune.prune)
app.add_typer(keys.app, name="keys", rich_help_panel=OPERATE)
app.add_typer(secrets.app, name="secrets", rich_help_panel=OPERATE)
app.command(rich_help_panel=OPERATE)(doctor.doctor)
app.command(rich_help_panel=OPERATE)(cost.cost)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hooksaga {version('hooksaga')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Reliable webhook delivery on PostgreSQL."""


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
