"""Writes sql/released.offers at a release: `python -m docs.generators.released_offers`.

The file lists what the code of the released version relies on, so the next version must still offer it, and which rules
its rows meet, so the next version may demand no others. sql/contract.txt excepts what the released code no longer uses,
or already meets.
"""

import psycopg
from psycopg.rows import dict_row

from docs.generators.schema_file import migrated_database
from hooksaga.adapters.migrations import SQL_DIR
from hooksaga.adapters.queries import load_queries

OFFERS_FILE = SQL_DIR / "released.offers"
CONTRACT_FILE = SQL_DIR / "contract.txt"
DEMAND = "demand: "


def offers_text(url: str, contract: str) -> str:
    """Return the file's content, from a database that is migrated. Raises ValueError for a line of the contract that
    is about nothing."""
    offers, demands = _read(url)
    excepted = {line for line in contract.splitlines() if line and not line.startswith("#")}
    met = {line for line in excepted if line.startswith(DEMAND)}
    if wrong := sorted(excepted - met - offers):
        raise ValueError(f"sql/contract.txt names what the schema does not have: {', '.join(wrong)}")
    known = {DEMAND + what for what in demands}
    return "".join(f"{line}\n" for line in sorted((offers - excepted) | known | met))


def broken_offers(url: str, released: str) -> list[str]:
    """Return what the released code relies on and a migrated database lacks, and what it demands that the released
    code may not meet."""
    offers, demands = _read(url)
    lines = set(released.splitlines())
    columns = {line.split()[1] for line in lines if line.startswith("column ")}
    tables = {column.split(".")[0] for column in columns}
    lacking = [f"{line} is gone" for line in sorted(lines - offers) if not line.startswith(DEMAND)]
    new = [
        f"{what} is demanded"
        for what, (table, concerned) in sorted(demands.items())
        if DEMAND + what not in lines
        and table in tables
        and all(f"{table}.{column}" in columns for column in concerned)
    ]
    return lacking + new


def _read(url: str) -> tuple[set[str], dict[str, tuple[str, list[str]]]]:
    queries = load_queries("rehearse")
    with psycopg.connect(url, row_factory=dict_row) as connection:
        offers = {row["what"] for row in connection.execute(queries["offers"])}
        demands = connection.execute(queries["demands"]).fetchall()
    return offers, {row["what"]: (row["table_name"], row["columns"]) for row in demands}


def main() -> None:
    with migrated_database() as url:
        OFFERS_FILE.write_text(offers_text(url, CONTRACT_FILE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
