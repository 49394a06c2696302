"""`hooksaga event-types`: the catalogue of event types, and files of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import quote

import typer

from hooksaga.cli.api_access import Api, ApiAccess
from hooksaga.cli.event_type_files import (
    DEFAULTS,
    Entry,
    difference,
    entry_text,
    file_text,
    read_file,
    read_path,
    whole,
)
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.option_groups import Commands
from hooksaga.cli.terminal import Columns, echo, echo_error, printable, show_items, show_json

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

app = Commands(no_args_is_help=True, help="Event types: list, show, sync with a file, export.")

PATH = "/v1/event-types"
STANDARD_STREAM = "-"
PAGE = 250

Name = Annotated[str, typer.Argument(metavar="NAME", help="The event type.")]


@app.command("list")
def list_all(*, api: Api) -> None:
    """List the event types of the catalogue by name."""
    client = api.connect()
    items = sorted(_listed(client), key=lambda one: str(one["name"]))
    if api.as_json:
        show_json({"items": items})
        return
    columns: Columns = {
        "event type": "name",
        "mismatch": lambda one: "archived" if one["archived"] else one["on_mismatch"],
        "description": lambda one: one["description"].partition("\n")[0],
    }
    show_items(columns, items)


def _listed(client: "ApiClient") -> Iterator[Mapping[str, object]]:
    cursor: str | None = None
    while True:
        page = client.call("GET", PATH, params={"limit": PAGE, "cursor": cursor})
        yield from page["items"]
        cursor = page["next"]
        if cursor is None:
            return


@app.command()
def show(name: Name, *, api: Api) -> None:
    """Show an event type with its schema and its sample."""
    client = api.connect()
    answer = client.fetch("GET", _place(name))
    if api.as_json:
        show_json(answer)
    else:
        echo(file_text({name: _entry(answer)}).rstrip("\n"))


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write; - for standard output.")],
    *,
    api: ApiAccess,
) -> None:
    """Write the whole catalogue to a file, for `sync`."""
    client = api.connect()
    entries = _present(client)
    if file == STANDARD_STREAM:
        echo(file_text(entries).rstrip("\n"))
        return
    try:
        Path(file).write_text(file_text(entries), encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error}") from None
    echo_error(f"{len(entries)} event types in {file}")


class Plan(NamedTuple):
    """What a sync does, by event type: entries to put, with the present ones, and names to delete."""

    put: Mapping[str, Entry]
    deleted: list[str]
    present: Mapping[str, Entry]


@app.command()
def sync(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of event types; - for standard input.")],
    archive_missing: Annotated[
        bool, typer.Option("--archive-missing", help="Archive event types that the file does not have.")
    ] = False,
    delete_missing: Annotated[
        bool, typer.Option("--delete-missing", help="Delete event types that the file does not have.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the differences, and change nothing.")
    ] = False,
    *,
    api: Api,
) -> None:
    """Make the catalogue equal to a file. Other event types stay, unless an option says otherwise. Safe to repeat."""
    if archive_missing and delete_missing:
        raise WrongUse("--archive-missing and --delete-missing exclude each other")
    wanted = _wanted(file)
    client = api.connect()
    plan = _plan(wanted, _present(client), archive=archive_missing, delete=delete_missing)
    if not dry_run:
        _carry_out(client, plan)
    if dry_run and not api.as_json:
        for line in _differences(plan):
            echo(printable(line))
    _report(plan, wanted, dry_run=dry_run, as_json=api.as_json)


def _wanted(file: str) -> dict[str, Entry]:
    if file != STANDARD_STREAM:
        return read_path(Path(file))
    return read_file("standard input", typer.get_text_stream("stdin", encoding="utf-8").read())


def _plan(wanted: Mapping[str, Entry], present: Mapping[str, Entry], *, archive: bool, delete: bool) -> Plan:
    put = {name: entry for name, entry in wanted.items() if present.get(name) != entry}
    others = [name for name in present if name not in wanted]
    if archive:
        archived = {name: {**present[name], "archived": "true"} for name in others}
        put |= {name: entry for name, entry in archived.items() if entry != present[name]}
    return Plan(put, others if delete else [], present)


def _carry_out(client: "ApiClient", plan: Plan) -> None:
    for name, entry in plan.put.items():
        client.fetch(
            "PUT",
            _place(name),
            content=entry_text(entry).encode(),
            headers={"content-type": "application/json"},
        )
    for name in plan.deleted:
        client.fetch("DELETE", _place(name))


def _differences(plan: Plan) -> Iterator[str]:
    for name, entry in plan.put.items():
        yield from difference(name, plan.present.get(name), entry)
    for name in plan.deleted:
        yield from difference(name, plan.present[name], None)


def _report(plan: Plan, wanted: Mapping[str, Entry], *, dry_run: bool, as_json: bool) -> None:
    archived = [name for name in plan.put if name not in wanted]
    created = [name for name in plan.put if name not in plan.present]
    changed = [name for name in plan.put if name in plan.present and name in wanted]
    unchanged = len(wanted) - len(created) - len(changed)
    if as_json:
        lists = {"created": created, "changed": changed, "archived": archived, "deleted": plan.deleted}
        show_json({**lists, "unchanged": unchanged, "dry_run": dry_run})
        return
    counts = f"{len(created)} created, {len(changed)} changed, {unchanged} unchanged"
    more = f", {len(archived)} archived, {len(plan.deleted)} deleted"
    echo(f"{counts}{more}{' (dry run: nothing was changed)' if dry_run else ''}")


def _present(client: "ApiClient") -> dict[str, Entry]:
    names = [str(one["name"]) for one in _listed(client)]
    return {name: _entry(client.fetch("GET", _place(name))) for name in names}


def _entry(answer: bytes) -> Entry:
    from hooksaga.local.raw_json import raw_members

    return whole({name: text for name, text in raw_members(answer.decode()).items() if name in DEFAULTS})


def _place(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"
