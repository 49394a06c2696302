"""The matrix of objects and roles in sql/README.md is what the database has, right by right."""

from collections import defaultdict
from typing import LiteralString

import pytest

from hooksaga.doctor.documented import LETTERS, Rights, documented, table_under
from tests.database.seed import Seed

TABLE_RIGHTS: LiteralString = """
    SELECT c.relname AS object, coalesce(r.rolname, 'PUBLIC') AS role, a.privilege_type AS right
      FROM pg_class c CROSS JOIN aclexplode(c.relacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
     WHERE c.relnamespace = 'public'::regnamespace AND c.relowner <> a.grantee"""

COLUMN_RIGHTS: LiteralString = """
    SELECT c.relname AS object, r.rolname AS role, a.privilege_type AS right,
           array_agg(t.attname::text) AS columns
      FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid
     CROSS JOIN aclexplode(t.attacl) AS a JOIN pg_roles r ON r.oid = a.grantee
     WHERE c.relnamespace = 'public'::regnamespace
     GROUP BY 1, 2, 3"""

FUNCTION_RIGHTS: LiteralString = """
    SELECT p.proname AS object, coalesce(r.rolname, 'PUBLIC') AS role, a.privilege_type AS right
      FROM pg_proc p CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
      LEFT JOIN pg_roles r ON r.oid = a.grantee
     WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> a.grantee AND p.proname <> 'uuidv7'"""


async def granted_columns(seed: Seed) -> dict[tuple[str, str, str], set[str]]:
    rows = await seed.rows(COLUMN_RIGHTS)
    return {(row["object"], row["role"], row["right"]): set(row["columns"]) for row in rows}


async def test_the_matrix_is_what_the_database_grants(seed: Seed) -> None:
    granted: Rights = defaultdict(set)
    for row in [*await seed.rows(TABLE_RIGHTS), *await seed.rows(FUNCTION_RIGHTS)]:
        granted[row["object"], row["role"]].add(LETTERS.get(right := str(row["right"]), right))
    for table, role, right in await granted_columns(seed):
        granted[table, role].add(LETTERS[right].lower())
    assert documented().rights == granted


async def test_the_columns_are_those_that_the_database_grants(seed: Seed) -> None:
    assert documented().columns == await granted_columns(seed)


async def test_every_table_and_view_has_a_row(seed: Seed) -> None:
    objects = await seed.rows(
        "SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'v')"
    )
    assert {row["name"] for row in objects} <= {row[0] for row in table_under("Who may do what")}


@pytest.mark.parametrize("object_name", ["api_keys", "console_sign_ins", "ended_sessions"])
async def test_nobody_reads_what_only_functions_may(seed: Seed, object_name: str) -> None:
    assert not [role for name, role in documented().rights if name == object_name]


async def test_functions_with_their_owners_rights_fix_their_search_path(seed: Seed) -> None:
    """Or whoever calls one could put an object of his own in its way."""
    loose = await seed.rows(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"
        " AND NOT coalesce(proconfig::text LIKE '%%search_path=pg_catalog%%', false)"
    )
    assert loose == []


async def test_views_let_no_function_of_their_reader_see_what_they_leave_out(seed: Seed) -> None:
    views = await seed.rows(
        "SELECT relname::text AS name, coalesce(reloptions::text, '') AS options,"
        " obj_description(oid, 'pg_class') AS meaning"
        " FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace"
    )
    assert len(views) == 8
    for view in views:
        assert "security_barrier=true" in view["options"], view
        assert "security_invoker" not in view["options"], view
        assert view["meaning"], view


async def test_every_column_of_a_view_says_what_it_means(seed: Seed) -> None:
    silent = await seed.rows(
        "SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0"
        " AND col_description(c.oid, a.attnum) IS NULL"
    )
    assert silent == []


async def test_the_guards_of_the_migrations_are_those_of_the_database(seed: Seed) -> None:
    """The doctor reads them from the files, and would not miss one that it cannot read."""
    rows = await seed.rows(
        "SELECT c.relname::text AS object, t.tgname::text AS name"
        " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal"
    )
    assert documented().triggers == {(row["object"], row["name"]) for row in rows}
