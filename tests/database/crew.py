"""Everybody who works on the tables, each on a connection of his own, and the clock that they all look at."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, LiteralString, TypeVar, cast

from psycopg.rows import dict_row

from hooksaga.adapters.database import Connection, DatabaseAddress, Role
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import Conflict, HooksagaError, NotFound
from hooksaga.core.saga import RetryPolicy
from hooksaga.operations.audit import MAX_ROWS
from hooksaga.stages.job_rows import ClaimedJob
from tests.database.interleaving import Actor, Pace, settle_waiting
from tests.database.ledger import Ledger
from tests.database.seed import Seed

T = TypeVar("T")

CROWD = {
    Role.INGEST: 2,
    Role.ROUTER: 2,
    Role.ORCHESTRATOR: 2,
    Role.DELIVERY: 3,
    Role.LEASE_CLEANER: 1,
    Role.ADMIN: 2,
    Role.SUBSCRIPTIONS: 1,
}
MAX_LOST_LEASES = 3
LEASE_SECONDS = 3600
"""Nobody's lease ends by itself while a test runs; `end_leases` ends it."""
POLICY = RetryPolicy(max_retry_limit=2, jitter=0, breaker_failures=2)
DEPENDS_ON_TIME = ("saga_waits_too_long", "lease_over_too_long")

EMPTY: LiteralString = (
    "TRUNCATE events, routing_decisions, subscriptions, subscription_patterns, subscription_pattern_history,"
    " subscription_health_behind, webhook_delivery_sagas, bulk_operations RESTART IDENTITY CASCADE"
)
"""And everything that refers to them: ids begin anew, so what is left over would be taken for another event's."""

TABLES: Mapping[str, LiteralString] = {
    "events": "SELECT id FROM events ORDER BY id",
    "subscriptions": "SELECT id FROM subscriptions ORDER BY id",
    "flows": "SELECT f.*, (SELECT count(*) FROM webhook_delivery_sagas g WHERE g.subscription_id = f.subscription_id"
    " AND g.status = 'InProgress') AS in_flight FROM subscription_flow f ORDER BY f.subscription_id",
    "out_of_order": "SELECT later.id, earlier.id AS before FROM webhook_delivery_sagas later"
    " JOIN webhook_delivery_sagas earlier USING (subscription_id, ordering_key)"
    " WHERE earlier.event_id < later.event_id AND earlier.id < later.id"
    " AND earlier.status IN ('Pending', 'InProgress', 'PendingRetry')"
    " AND EXISTS (SELECT FROM webhook_delivery_jobs j WHERE j.saga_id = later.id)",
    "sagas": "SELECT s.*, (SELECT max(j.id) FROM webhook_delivery_jobs j WHERE j.saga_id = s.id) AS last_job"
    " FROM webhook_delivery_sagas s ORDER BY s.id",
    "jobs": "SELECT j.*, s.status <> 'InProgress' OR s.next_attempt_at <> j.attempt_at AS is_applied"
    " FROM webhook_delivery_jobs j JOIN webhook_delivery_sagas s ON s.id = j.saga_id ORDER BY j.id",
    "dead_letters": "SELECT id FROM dead_letters ORDER BY id",
}
LOOK = "SELECT jsonb_build_object({})".format(
    ", ".join(
        f"'{table}', (SELECT coalesce(jsonb_agg(t), '[]') FROM ({query}) t)"
        for table, query in TABLES.items()
    )
)
AUDIT = " UNION ALL ".join(
    f"SELECT '{invariant}' AS invariant, to_jsonb(violation) AS violation FROM ({query}) violation"
    for invariant, query in load_queries("audit").items()
)
"""One statement each for all tables and all invariants: the model asks both after every step."""

END_WAITS: LiteralString = (
    "UPDATE webhook_delivery_sagas SET next_attempt_at = clock_timestamp() - interval '1 second' WHERE id IN"
    " (SELECT id FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry') AND next_attempt_at > now()"
    " AND (%(id)s::bigint IS NULL OR id = %(id)s) FOR UPDATE SKIP LOCKED)"
)
END_LEASES: LiteralString = (
    "UPDATE webhook_delivery_jobs SET lease_until = clock_timestamp() - interval '1 second' WHERE id IN"
    " (SELECT id FROM webhook_delivery_jobs WHERE status = 'Leased' AND lease_until > now()"
    " AND (%(id)s::bigint IS NULL OR id = %(id)s) FOR UPDATE SKIP LOCKED) RETURNING id"
)


OPEN_ROOMS: LiteralString = (
    "UPDATE subscription_flow SET probe_at = probe_at - interval '1 hour',"
    " retry_after_until = retry_after_until - interval '1 hour', tokens_at = tokens_at - interval '1 hour',"
    " wake_at = wake_at - interval '1 hour', version = version + 1"
    " WHERE subscription_id IN (SELECT subscription_id FROM subscription_flow FOR UPDATE SKIP LOCKED)"
)


def nothing(_: Any) -> None:
    """To be told where the tables say it all."""


class Crew:
    """Lives over many runs. `done` counts what has happened in all of them."""

    def __init__(self, owner: Connection, address: DatabaseAddress) -> None:
        self.owner = owner
        self.actors = {
            role: [Actor(f"{role} {number}", role, address, owner) for number in range(1, size + 1)]
            for role, size in CROWD.items()
        }
        self.done: Counter[str] = Counter()
        self.seed = Seed(owner)
        self.ledger = Ledger(MAX_LOST_LEASES)
        self.memory: dict[str, list[ClaimedJob]] = {}
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}

    @property
    def everybody(self) -> list[Actor]:
        return [actor for actors in self.actors.values() for actor in actors]

    @property
    def busy(self) -> list[Actor]:
        return [actor for actor in self.everybody if actor.is_busy]

    async def start_anew(self) -> None:
        """Empty tables, and nobody remembers anything."""
        for actor in self.busy:
            await actor.break_off()
        await self.seed.rewrite(EMPTY)
        self.seed = Seed(self.owner)
        self.ledger = Ledger(MAX_LOST_LEASES)
        self.memory = {actor.name: [] for actor in self.actors[Role.DELIVERY]}

    async def work(
        self,
        actor: Actor,
        pace: Pace,
        stage: Callable[[Connection], Awaitable[T]],
        told: Callable[[Any], None],
        learned: Callable[[Any], None] = nothing,
    ) -> None:
        """Begin. `told` is for the ledger, `learned` for the memory of whoever asked: the deaf learn nothing."""

        def finish(answer: Any) -> None:
            if isinstance(answer, HooksagaError) and not isinstance(answer, Conflict | NotFound):
                raise AssertionError(f"{actor.name} was refused") from answer
            told(answer)
            if pace is not Pace.DEAF:
                learned(answer)
            else:
                self.done["answers lost after COMMIT"] += 1

        await actor.begin(stage, finish, stops=pace is Pace.STEPS)
        await self.settle(actor)

    async def go_on(self, actor: Actor, *, to_the_end: bool = False) -> None:
        if not actor.waits_for_a_lock:
            await actor.go_on(to_the_end=to_the_end)
        await self.settle(actor)

    async def lose(self, actor: Actor) -> None:
        """Its connection, with everything that it had not committed."""
        self.done["connections lost within a transaction"] += 1
        await actor.break_off()
        await self.settle(actor)

    async def settle(self, actor: Actor) -> None:
        if actor.waits_for_a_lock:
            self.done["waits for the lock of another"] += 1
        await settle_waiting(self.everybody)

    async def finish_all(self) -> None:
        """Let everybody end what he is at: those who stopped first, since the others wait for them."""
        while busy := self.busy:
            await self.go_on(next((one for one in busy if one.is_stopped), busy[0]), to_the_end=True)

    async def end_waits(self, saga_id: int | None = None) -> None:
        await self.seed.rewrite(END_WAITS, {"id": saga_id})

    async def open_rooms(self) -> None:
        """Whatever time opens is open: for a probe, after Retry-After, and for more tokens."""
        await self.seed.rewrite(OPEN_ROOMS)

    async def resume_all(self) -> None:
        await self.seed.connection.execute(
            "UPDATE subscriptions SET paused_at = NULL WHERE paused_at IS NOT NULL"
        )

    async def end_leases(self, job_id: int | None = None) -> None:
        async with self.owner.transaction():
            await self.owner.execute("SET LOCAL session_replication_role = replica")
            async with self.owner.cursor(row_factory=dict_row) as cursor:
                ended = await (await cursor.execute(END_LEASES, {"id": job_id})).fetchall()
        self.ledger.expired |= {row["id"] for row in ended}

    async def findings(self, *, with_time: bool) -> list[str]:
        """Return the audit's findings; those that depend on time only on request."""
        violations = await self.seed.rows(cast(LiteralString, AUDIT), {"limit": MAX_ROWS})
        return [
            f"{one['invariant']}: {one['violation']}"
            for one in violations
            if with_time or one["invariant"] not in DEPENDS_ON_TIME
        ]

    async def check(self) -> None:
        """Check the invariants that hold after every step."""
        found = await self.findings(with_time=False)
        assert found == [], found
        await self.look()
        self.ledger.assert_told_by(self.rows["sagas"], self.rows["jobs"])
        self.ledger.assert_room_was_kept(self.rows["flows"])
        assert self.rows["out_of_order"] == []
        self.note_closed()
        assert {row["id"] for row in self.rows["events"]} == set(self.ledger.events)

    async def look(self) -> None:
        """Read the tables as they are committed now."""
        self.rows = await self.seed.value(cast(LiteralString, LOOK))

    def ids(self, table: str, **columns: Any) -> list[int]:
        """Return the ids of the rows of the last read whose columns have these values."""
        found = self.rows[table]
        return [row["id"] for row in found if all(row[name] == value for name, value in columns.items())]

    def note_closed(self) -> None:
        if any(flow["breaker_opened_at"] for flow in self.rows["flows"]):
            self.done["steps while a circuit breaker was open"] += 1
        if any(flow["probe_saga_id"] for flow in self.rows["flows"]):
            self.done["steps while a probe was under way"] += 1
        if any(
            flow["in_flight"] >= self.ledger.rooms[flow["subscription_id"]] for flow in self.rows["flows"]
        ):
            self.done["steps with a full room"] += 1

    def count_ends(self) -> None:
        """Count the final states of a finished run."""
        for saga in self.rows["sagas"]:
            self.done[f"sagas that ended as {saga['status']}"] += 1
        from_letters = [saga for saga in self.rows["sagas"] if saga["requeued_from"] is not None]
        self.done["sagas from a requeue"] += len(from_letters)
        self.done["sagas from a requeue in bulk"] += len(self.ledger.in_bulk)
        self.done["late results"] += self.ledger.dropped
        given_up = list(self.ledger.ended.values()).count("lease_expired")
        self.done["jobs given up after too many claims"] += given_up

    async def close(self) -> None:
        for actor in self.everybody:
            await actor.break_off()
