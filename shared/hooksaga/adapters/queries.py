"""Named SQL blocks from sql/queries/*.sql: the only SQL that the stages run.

A block begins with a line `-- name: word` and ends before the next. Comment lines are left out of what is sent.
"""

from functools import cache
from typing import LiteralString, cast

from hooksaga.adapters.package_files import package_folder

QUERIES_DIR = package_folder("sql") / "queries"

_MARK = "-- name:"


@cache
def load_queries(stage: str) -> dict[str, LiteralString]:
    """The blocks of sql/queries/<stage>.sql by name. Files are read once, so the text is as fixed as a literal."""
    blocks: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (QUERIES_DIR / f"{stage}.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith(_MARK):
            lines = blocks.setdefault(line.removeprefix(_MARK).strip(), [])
        elif not line.lstrip().startswith("--"):
            lines.append(line)
    return {name: cast(LiteralString, "\n".join(body).strip().rstrip(";")) for name, body in blocks.items()}
