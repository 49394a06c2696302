"""Products broken on purpose, by one well-known mistake each: a fault suite that finds none of them proves little.

A process under test takes its mistake from FAULTS_SABOTAGE at its start. The product itself has no such switch.
"""

import os
import random
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, LiteralString, cast
from uuid import UUID, uuid4

VARIABLE = "FAULTS_SABOTAGE"


class Kind(StrEnum):
    """The kinds of faults that the suite tries. Each has to have found a mistake."""

    CRASH = "crashes"
    QUEUE = "queues"
    DATABASE = "the database"
    WORKER = "workers that misbehave"
    NETWORK = "the network"
    ORDER = "the order of statements"


class Sabotage(StrEnum):
    """The mistakes; the values are what the page calls them."""

    UNFENCED = "a result is written without asking whether the lease is still the writer's"
    OUTBOX_FIRST = "the router deletes the outbox row before it starts the sagas, in a transaction of its own"
    NO_CLEANER = "nobody ends the leases of dead workers"
    HASTY_CLEANER = "leases that still run are ended with those that are over"
    TAKEN_AGAIN = "a result is taken without asking whether it was taken before"
    FALSE_COMMIT = "one of four batches of events is rolled back, and success is reported"
    NEW_ID = "each attempt has a webhook-id of its own"
    STICKY = "a connection is kept though its server can only be read any more"
    TRUSTED_COMMIT = "a connection that breaks while events are stored is taken for a success"
    TRUSTED_QUEUE = "nobody looks for jobs that no message tells of"
    TOGETHER = "a job that its workers did not survive is claimed with others again"
    SILENCE = "an attempt that got no answer is taken for delivered"
    BY_ID = "an event with a lower id is taken for an earlier one, though its transaction was still open"


KINDS = {
    Sabotage.UNFENCED: Kind.WORKER,
    Sabotage.OUTBOX_FIRST: Kind.CRASH,
    Sabotage.NO_CLEANER: Kind.CRASH,
    Sabotage.HASTY_CLEANER: Kind.ORDER,
    Sabotage.TAKEN_AGAIN: Kind.ORDER,
    Sabotage.FALSE_COMMIT: Kind.CRASH,
    Sabotage.NEW_ID: Kind.CRASH,
    Sabotage.STICKY: Kind.DATABASE,
    Sabotage.TRUSTED_COMMIT: Kind.DATABASE,
    Sabotage.TRUSTED_QUEUE: Kind.QUEUE,
    Sabotage.TOGETHER: Kind.WORKER,
    Sabotage.SILENCE: Kind.NETWORK,
    Sabotage.BY_ID: Kind.ORDER,
}
"""By which kind of fault each is found."""


def commit_sabotage(name: str) -> None:
    """Make the mistake in this process. Called before anything of the product is imported."""
    _MISTAKES[Sabotage[name]]()


def environment(sabotage: Sabotage) -> dict[str, str]:
    """For the process that is to make the mistake."""
    return {VARIABLE: sabotage.name}


def passed_on() -> dict[str, str]:
    """For processes that do not inherit the environment of the tests."""
    return {VARIABLE: os.environ[VARIABLE]} if VARIABLE in os.environ else {}


def from_environment() -> None:
    if name := os.environ.get(VARIABLE):
        commit_sabotage(name)


def _unfenced() -> None:
    _rewrite("deliver", "record_results", "AND j.worker_id = %(worker_id)s", "")
    _rewrite("deliver", "record_results", "AND j.claim_count = r.claim_count", "")


def _outbox_first() -> None:
    from hooksaga.stages import route_events

    route = route_events.route_events
    start: LiteralString = """
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id)
        SELECT e.id, s.id FROM events e
          JOIN subscriptions s ON s.tenant_id = e.tenant_id AND s.event_types && patterns_of_type(e.event_type)
           AND s.active AND s.verified AND s.deleted_at IS NULL AND accepted_after(
               e.id, e.accepted_by, s.eligible_after_event, s.eligible_snapshot)
         WHERE e.id = ANY (%(event_ids)s::bigint[])
        ON CONFLICT (event_id, subscription_id,
                     (CASE WHEN requeued_from IS NULL AND resent_from IS NULL THEN 0 ELSE id END)) DO NOTHING
        RETURNING event_id, id"""

    async def route_in_two_steps(connection: Any, **_: Any) -> Any:
        taken = await connection.execute("DELETE FROM routing_outbox RETURNING event_id")
        event_ids = [row[0] for row in await taken.fetchall()]
        if not event_ids:
            return await route(connection, event_ids=[])
        await connection.execute(MARK)  # the process may die here
        started = await connection.execute(start, {"event_ids": event_ids})
        sagas = [tuple(row) for row in await started.fetchall()]
        return route_events.Routed(
            [
                route_events.RoutedEvent(
                    one, UUID(int=one), None, 0.0, [saga for event, saga in sagas if event == one], []
                )
                for one in event_ids
            ]
        )

    route_events.route_events = route_in_two_steps


MARK = "SELECT 'route_events.route_outbox'"
"""Stands for the router's statement, so that a crash point finds it between the two steps."""


def _no_cleaner() -> None:
    _rewrite("clean_leases", "reset_expired_leases", "lease_until < now()", "false")
    _rewrite(
        "clean_leases",
        "give_back_leases",
        "worker_id = ANY (%(worker_ids)s::text[])",
        "worker_id = ANY (%(worker_ids)s::text[]) AND false",
    )


def _hasty_cleaner() -> None:
    _rewrite("clean_leases", "reset_expired_leases", " AND lease_until < now()", "")


def _taken_again() -> None:
    _rewrite("orchestrate", "finished_jobs", "AND j.attempt_at = s.next_attempt_at", "")
    for statement in ("apply_results", "apply_results_and_flow"):
        _rewrite("orchestrate", statement, "AND s.next_attempt_at = d.attempt_at", "")


def _false_commit() -> None:
    from psycopg import AsyncCursor

    from hooksaga.adapters.queries import load_queries

    execute, insert = AsyncCursor.execute, load_queries("accept_events")["insert_events"]

    async def execute_somehow(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        if query != insert or random.random() >= 0.25:
            return await execute(cursor, query, *args, **kwargs)
        await cursor.connection.execute("BEGIN")
        try:
            return await execute(cursor, query, *args, **kwargs)
        finally:
            await cursor.connection.execute("ROLLBACK")

    AsyncCursor.execute = cast(Any, execute_somehow)


def _new_id() -> None:
    from hooksaga.stages import deliver

    deliver.event_id_text = lambda _webhook_id: f"evt_{uuid4().hex}"


def _sticky() -> None:
    from hooksaga.adapters import database_login, sqlstates

    database_login.WatchedConnection.can_only_be_read = cast(Any, lambda _self: False)
    sqlstates.FAULTS["25006"] = sqlstates.Fault.DATABASE


def _trusted_commit() -> None:
    from psycopg import OperationalError

    from hooksaga.stages import accept_events

    insert = accept_events.insert_events

    async def insert_in_good_faith(connection: Any, drafts: Any, **how: Any) -> Any:
        try:
            return await insert(connection, drafts, **how)
        except OperationalError:
            now = datetime.now(UTC)
            return {
                position: accept_events.AcceptedEvent(0, uuid4(), draft.event_type, now)
                for position, draft in enumerate(drafts, 1)
            }

    accept_events.insert_events = cast(Any, insert_in_good_faith)


def _trusted_queue() -> None:
    _rewrite("orchestrate", "find_undispatched_jobs", "status = 'Pending'", "status = 'Pending' AND false")


def _together() -> None:
    _rewrite(
        "deliver",
        "claim_waiting_jobs",
        "lost_leases >= %(alone_from)s AS is_suspect",
        "false AS is_suspect",
    )


def _silence() -> None:
    from dataclasses import replace

    from hooksaga.adapters.http_sender import HttpSender

    send = HttpSender.send

    async def send_in_good_faith(sender: Any, request: Any) -> Any:
        outcome = await send(sender, request)
        return outcome if outcome.response_status else replace(outcome, error_code=None, response_status=200)

    HttpSender.send = cast(Any, send_in_good_faith)


def _by_id() -> None:
    rule = "accepted_after(c.id, c.accepted_by, s.since, eligible_snapshot_of(s.id))"
    _rewrite("route_events", "route_outbox", rule, "c.id > s.since")


_MISTAKES: dict[Sabotage, Callable[[], None]] = {
    Sabotage.UNFENCED: _unfenced,
    Sabotage.OUTBOX_FIRST: _outbox_first,
    Sabotage.NO_CLEANER: _no_cleaner,
    Sabotage.HASTY_CLEANER: _hasty_cleaner,
    Sabotage.TAKEN_AGAIN: _taken_again,
    Sabotage.FALSE_COMMIT: _false_commit,
    Sabotage.NEW_ID: _new_id,
    Sabotage.STICKY: _sticky,
    Sabotage.TRUSTED_COMMIT: _trusted_commit,
    Sabotage.TRUSTED_QUEUE: _trusted_queue,
    Sabotage.TOGETHER: _together,
    Sabotage.SILENCE: _silence,
    Sabotage.BY_ID: _by_id,
}


def _rewrite(stage: str, name: str, old: str, new: str) -> None:
    """Change one named statement in the cache that every stage reads."""
    from hooksaga.adapters.queries import load_queries

    blocks = load_queries(stage)
    assert old in blocks[name], f"{stage}.{name} has changed: {old!r}"
    blocks[name] = cast(LiteralString, blocks[name].replace(old, new))
