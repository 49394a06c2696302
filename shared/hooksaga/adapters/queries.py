"""Named SQL blocks from sql/queries/*.sql.

A block begins with a line `-- name: word` and ends before the next one. A part begins with `-- part: word` and is not
a statement; a line `-- insert: word` below it is replaced by the part. Comments and indentation are not sent: psycopg
remembers how to send a statement of up to 4,096 characters, and reads a longer one anew each time.
"""

from functools import cache
from typing import LiteralString, cast

from hooksaga.adapters.package_files import package_folder

QUERIES_DIR = package_folder("sql") / "queries"

_NAME, _PART, _INSERT = "-- name:", "-- part:", "-- insert:"


@cache
def load_queries(stage: str) -> dict[str, LiteralString]:
    """Return the blocks of sql/queries/<stage>.sql by name. Files are read once."""
    blocks: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (QUERIES_DIR / f"{stage}.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith((_NAME, _PART)):
            mark, kind = (_NAME, blocks) if line.startswith(_NAME) else (_PART, parts)
            lines = kind.setdefault(line.removeprefix(mark).strip(), [])
        elif line.lstrip().startswith(_INSERT):
            lines += parts[line.split(_INSERT)[1].strip()]
        elif not line.lstrip().startswith("--"):
            lines.append(line.strip())
    return {name: cast(LiteralString, "\n".join(body).strip().rstrip(";")) for name, body in blocks.items()}
