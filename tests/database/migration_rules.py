"""The gate of migrations: what a file may lock, rewrite and read, whatever the number of rows is.

Planted migrations, good and bad, prove it; the same are run beside load by test_migrations_at_size.
"""

from collections.abc import Mapping
from typing import LiteralString

from hooksaga.adapters.migration_rehearsal import Rehearsed

LARGE = ("events", "routing_outbox", "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters")
"""Tables whose rows no migration changes: all of them would stay locked until its COMMIT."""

GOOD: dict[str, LiteralString] = {
    "a column": "ALTER TABLE webhook_delivery_jobs ADD COLUMN region text",
    "a column with a constant": "ALTER TABLE events ADD COLUMN shard integer NOT NULL DEFAULT 0",
    "a constraint on what comes": "ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT region_is_short"
    " CHECK (length(region) < 20) NOT VALID",
    "a constraint on what is there": "ALTER TABLE webhook_delivery_jobs VALIDATE CONSTRAINT region_is_short",
    "an index": "CREATE INDEX CONCURRENTLY idx_job_region ON public.webhook_delivery_jobs (region, saga_id)",
    "no index any more": "DROP INDEX CONCURRENTLY IF EXISTS public.idx_job_region",
    "a column that must be given": "ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT leased CHECK"
    " (claim_count IS NOT NULL) NOT VALID",
    "a table": "CREATE TABLE notes (event_id bigint REFERENCES events (id), text text NOT NULL);"
    " CREATE INDEX idx_note_event ON notes (event_id);"
    " INSERT INTO notes (text) SELECT 'a' FROM generate_series(1, 100)",
    "a function": "-- load: functions/refuse_row.sql",
    "rows of a small table": "UPDATE subscriptions SET description = 'none' WHERE description IS NULL",
}

BAD: dict[str, tuple[LiteralString, str]] = {
    "a volatile default": (
        "ALTER TABLE webhook_delivery_jobs ADD COLUMN token uuid DEFAULT gen_random_uuid()",
        "webhook_delivery_jobs: readers and writers wait until it is rewritten",
    ),
    "another type": (
        "ALTER TABLE routing_outbox ALTER started_through TYPE numeric",
        "routing_outbox: readers and writers wait until it is rewritten",
    ),
    "an index in a transaction": (
        "CREATE INDEX idx_event_text ON events (md5(repeat(payload::text, 4)))",
        "events: writers wait until all rows are read",
    ),
    "NOT NULL by a scan": (
        "ALTER TABLE events ALTER shard SET NOT NULL, ALTER external_id SET NOT NULL",
        "events: readers and writers wait until all rows are read",
    ),
    "a constraint at once": (
        "ALTER TABLE dead_letters ADD CONSTRAINT ids CHECK (id > 0)",
        "dead_letters: readers and writers wait until all rows are read",
    ),
    "a validation under the lock of its constraint": (
        """ALTER TABLE dead_letters ADD CONSTRAINT others CHECK (id > 0) NOT VALID;
           ALTER TABLE dead_letters VALIDATE CONSTRAINT others""",
        "dead_letters: readers and writers wait until all rows are read",
    ),
    "a reference at once": (
        "ALTER TABLE routing_decisions ADD CONSTRAINT of_event FOREIGN KEY (event_id) REFERENCES events (id)",
        "routing_decisions: writers wait until all rows are read",
    ),
    "rows of a large table": (
        "UPDATE webhook_delivery_jobs SET dispatched_at = NULL WHERE dispatched_at IS NULL",
        "webhook_delivery_jobs: rows that it changes stay locked until its COMMIT",
    ),
    "a column and its rows": (
        "ALTER TABLE routing_outbox ADD COLUMN region text; UPDATE routing_outbox SET region = 'eu'",
        "routing_outbox: readers and writers wait until all rows are read",
    ),
}
"""With what the gate says."""


def faults_of(one: Rehearsed) -> list[str]:
    """Return what the file must not do, one line per table."""
    faults = [
        f"{table}: {one.blocked_by(table)} wait until "
        + ("it is rewritten" if table in one.rewrites else "all rows are read")
        for table in one.long_locks()
    ]
    changed = [table for table in LARGE if one.locks.get(table) == "RowExclusiveLock"]
    return faults + [f"{table}: rows that it changes stay locked until its COMMIT" for table in changed]


def named(texts: Mapping[str, str], first: int) -> dict[str, str]:
    """Return the texts by names of files in this order."""
    return {f"m{number}": text for number, text in enumerate(texts.values(), first)}
