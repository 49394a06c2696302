"""What the code of the last release uses stays, so it runs on the schema of the next."""

import os

import psycopg
import pytest

from docs.generators.released_offers import CONTRACT_FILE, OFFERS_FILE, broken_offers, offers_text
from hooksaga.adapters.database import DatabaseAddress
from tests.conftest import OTHER_POSTGRES

CHANGES: list[tuple[str, list[str]]] = [
    ("ALTER TABLE events ADD COLUMN region text CHECK (length(region) < 20)", []),
    ("ALTER TABLE events ADD COLUMN shard integer NOT NULL DEFAULT 0", []),
    ("CREATE TABLE notes (id bigint PRIMARY KEY, text text NOT NULL)", []),
    (
        "ALTER TABLE routing_outbox DROP COLUMN ordering_key",
        ["column routing_outbox.ordering_key", "index idx_out"],
    ),
    (
        "ALTER TABLE routing_outbox ALTER started_through TYPE numeric",
        ["column routing_outbox.started_through bigint"],
    ),
    (
        "ALTER TABLE events ADD COLUMN region text NOT NULL",
        ["column events.region must be given is demanded"],
    ),
    (
        "ALTER TABLE events ADD CONSTRAINT short CHECK (length(event_type) < 20) NOT VALID",
        ["constraint short on events is demanded"],
    ),
    (
        "CREATE UNIQUE INDEX once ON events (event_type, created_at)",
        ["unique index once on events is demanded"],
    ),
    ("DROP INDEX idx_job_pending", ["index idx_job_pending is gone"]),
    (
        "REVOKE SELECT ON subscriptions FROM job_worker",
        ["right to SELECT on subscriptions for job_worker is gone"],
    ),
    (
        "REVOKE EXECUTE ON FUNCTION check_api_key FROM dead_letter_operator",
        ["right to EXECUTE check_api_key for"],
    ),
    (
        "DROP TRIGGER put_new_events_in_outbox ON events",
        ["trigger put_new_events_in_outbox on events is gone"],
    ),
    (
        "DROP FUNCTION is_to_resend; CREATE FUNCTION is_to_resend(a bool) RETURNS text LANGUAGE sql AS 'SELECT 1'",
        ["function is_to_resend("],
    ),
]


def test_this_schema_still_offers_what_the_last_release_uses(database_address: DatabaseAddress) -> None:
    """Before the first release there is no file, and nobody to keep a promise to."""
    released = OFFERS_FILE.read_text(encoding="utf-8") if OFFERS_FILE.exists() else ""
    assert broken_offers(database_address.url, released) == []


@pytest.mark.skipif(OTHER_POSTGRES in os.environ, reason="a release is made on PostgreSQL 18")
def test_the_contract_is_about_what_there_is(database_address: DatabaseAddress) -> None:
    text = offers_text(database_address.url, CONTRACT_FILE.read_text(encoding="utf-8"))
    assert len(text.splitlines()) > 500


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_a_planted_change_is_judged(database_address: DatabaseAddress, change: str, told: list[str]) -> None:
    released = offers_text(database_address.url, "")
    assert broken_offers(database_address.url, released) == []
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute(change.encode())
    found = broken_offers(database_address.url, released)
    assert bool(found) is bool(told)
    for words in told:
        assert any(words in line for line in found), found


def test_what_a_release_no_longer_used_goes_and_what_it_met_is_demanded(
    database_address: DatabaseAddress,
) -> None:
    contract = "# why\ncolumn routing_outbox.started_through bigint\ndemand: constraint short on events\n"
    released = offers_text(database_address.url, contract)
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE routing_outbox DROP COLUMN started_through")
        connection.execute(
            "ALTER TABLE events ADD CONSTRAINT short CHECK (length(event_type) < 20) NOT VALID"
        )
    assert broken_offers(database_address.url, released) == []


def test_a_contract_about_nothing_is_refused(database_address: DatabaseAddress) -> None:
    with pytest.raises(ValueError, match=r"column events\.never_there text"):
        offers_text(database_address.url, "column events.never_there text")
