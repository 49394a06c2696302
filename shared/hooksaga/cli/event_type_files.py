"""Files of event types: `{"event_types": {"order.created": {"description": …, "schema": …}}}`.

Values stay JSON text, so that numbers of schemas and samples are not changed.
"""

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from hooksaga.cli.failures import WrongUse
from hooksaga.local.raw_json import indented, raw_members

MEMBER = "event_types"
DEFAULTS: Mapping[str, str] = {
    "description": '""',
    "attributes": "[]",
    "schema": "null",
    "on_mismatch": '"reject"',
    "sample": "null",
    "archived": "false",
}
"""The members of an entry with their defaults, as JSON text."""

Entry = Mapping[str, str]


def read_file(name: str, text: str) -> dict[str, Entry]:
    """Return the entries of a file by event type. Raises WrongUse with what is wrong."""
    try:
        json.loads(text)
        types = raw_members(raw_members(text)[MEMBER])
        entries = {one: raw_members(entry) for one, entry in types.items()}
    except (ValueError, KeyError, RecursionError):
        raise WrongUse(f'{name} is not {{"{MEMBER}": {{"<event type>": {{…}}}}}} in JSON') from None
    for one, entry in entries.items():
        if unknown := entry.keys() - DEFAULTS.keys():
            raise WrongUse(f"{name}: {one}: unknown field {min(unknown)!r}")
    return {one: whole(entry) for one, entry in entries.items()}


def read_path(path: Path) -> dict[str, Entry]:
    try:
        return read_file(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path} cannot be read: {error}") from None


def whole(entry: Entry) -> Entry:
    """Return an entry of a file or of the API with all members in a comparable form."""
    given = {name: entry.get(name, default) for name, default in DEFAULTS.items()}
    rules = json.loads(given["attributes"])
    return {
        **{name: indented(text) for name, text in given.items()},
        "description": json.dumps(json.loads(given["description"]), ensure_ascii=False),
        "attributes": indented(json.dumps(rules, sort_keys=True, ensure_ascii=False)),
    }


def file_text(entries: Mapping[str, Entry]) -> str:
    """Return the text of a file, without members that have their defaults."""
    types = ",".join(f"{json.dumps(name)}:{entry_text(entries[name])}" for name in sorted(entries))
    return indented(f'{{"{MEMBER}":{{{types}}}}}') + "\n"


def entry_text(entry: Entry) -> str:
    given = (f"{json.dumps(name)}:{text}" for name, text in entry.items() if text != DEFAULTS[name])
    return f"{{{','.join(given)}}}"


def difference(name: str, present: Entry | None, wanted: Entry | None) -> Iterator[str]:
    """Yield the lines of a unified diff between two entries; None: there is none."""
    before, after = (
        [] if one is None else indented(entry_text(one)).splitlines() for one in (present, wanted)
    )
    yield from difflib.unified_diff(before, after, f"{name} (catalogue)", f"{name} (file)", lineterm="")
