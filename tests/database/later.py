"""Migrations that a test plants."""

import shutil
from pathlib import Path

from hooksaga.adapters.migrations import SQL_DIR


def plant(folder: Path, **statements: str) -> Path:
    """A folder of SQL with these migrations, by name, and whatever it had."""
    (folder / "migrations").mkdir(exist_ok=True)
    for name, statement in statements.items():
        (folder / "migrations" / f"{name}.sql").write_text(statement)
    return folder


def first_schema(folder: Path) -> Path:
    """A copy of the product's first schema, and of its functions, without later migrations."""
    for name in ("schema", "functions"):
        shutil.copytree(SQL_DIR / name, folder / name)
    return folder
