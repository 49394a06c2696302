"""Released files of sql/ never change, and changes reach existing databases."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hooksaga.adapters.migrations import SQL_DIR
from tests.database.later import first_schema, plant

LIST = "released.sha256"
COMMAND = f"cd sql && sha256sum schema/*.sql functions/*.sql migrations/*.sql > {LIST}"
LOAD = "-- load: functions/refuse_row.sql\n"


def faults_of(folder: Path, released: Mapping[str, str]) -> list[str]:
    """Released files that have another content, and functions that have one and are loaded by no new migration."""
    files = {
        path.relative_to(folder).as_posix(): path
        for part in ("schema", "functions", "migrations")
        for path in (folder / part).glob("*.sql")
    }
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    later = [
        files[name].read_text() for name in files if name.startswith("migrations/") and name not in released
    ]
    faults = list[str]()
    for name in sorted({*released, *(name for name in files if not name.startswith("migrations/"))}):
        if released.get(name) == digests.get(name):
            continue
        if not name.startswith("functions/"):
            faults.append(f"{name}: the schema is closed, and what was released stays as it is")
        elif name in files and not any(f"-- load: {name}\n" in text for text in later):
            faults.append(f"{name} has changed, and no new migration loads it")
    return faults


def released_files() -> dict[str, str]:
    lines = (SQL_DIR / LIST).read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def test_what_was_released_stays_as_it_is() -> None:
    assert len(released_files()) > 40
    assert faults_of(SQL_DIR, released_files()) == [], f"before the first release: {COMMAND}"


def change(folder: Path, name: str) -> None:
    with (folder / name).open("a") as file:
        file.write("-- another\n")


CHANGES: list[tuple[Callable[[Path], object], list[str]]] = [
    (lambda folder: plant(folder, m101="SELECT 1"), []),
    (
        lambda folder: change(folder, "schema/06_sagas.sql"),
        ["schema/06_sagas.sql: the schema is closed, and what was released stays as it is"],
    ),
    (
        lambda folder: (folder / "schema/06_sagas.sql").unlink(),
        ["schema/06_sagas.sql: the schema is closed, and what was released stays as it is"],
    ),
    (
        lambda folder: (folder / "schema/99_new.sql").write_text("SELECT 1"),
        ["schema/99_new.sql: the schema is closed, and what was released stays as it is"],
    ),
    (
        lambda folder: change(folder, "functions/refuse_row.sql"),
        ["functions/refuse_row.sql has changed, and no new migration loads it"],
    ),
    (lambda folder: (change(folder, "functions/refuse_row.sql"), plant(folder, m101=LOAD)), []),
]


@pytest.mark.parametrize(("make", "faults"), CHANGES)
def test_a_planted_change_is_judged(
    tmp_path: Path, make: Callable[[Path], object], faults: list[str]
) -> None:
    folder = first_schema(tmp_path)
    released = {
        name: digest for name, digest in released_files().items() if not name.startswith("migrations/")
    }
    make(folder)
    assert faults_of(folder, released) == faults
