"""Why a subscription got an event or not: what the router saw then, whatever has changed since."""

import itertools
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import NotFound
from hooksaga.core.routing import Facts, Reason, RoutingState, StartedBy, why_not_matched
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import explained_pages, requeue
from hooksaga.operations.explain import Decision, Place, Routing, explain_event
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database.seed import Seed


async def explained(operator: Connection, seed: Seed, event_id: int, **options: Any) -> Routing:
    wanted = {"tenant_id": None, "default_attempt_limit": 5, **options}
    return await explain_event(operator, await webhook_id(seed, event_id), **wanted)


async def webhook_id(seed: Seed, event_id: int) -> UUID:
    return await seed.value("SELECT webhook_id FROM events WHERE id = %s", [event_id])


async def only_decision(operator: Connection, seed: Seed, event_id: int) -> Decision:
    (decision,) = (await explained(operator, seed, event_id)).decisions
    return decision


def outcome_of(decision: Decision) -> tuple[bool | None, Reason | None]:
    return decision.matched, decision.reason


MATCHED = (True, None)


async def change(seed: Seed, subscription_id: int, assignments: str) -> None:
    statement = f"UPDATE subscriptions SET {assignments} WHERE id = %s"
    await seed.connection.execute(statement.encode(), [subscription_id])


async def test_a_matched_subscription_stands_where_its_saga_does(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription("a", max_retry_limit=7)
    event_id = await seed.event("a")
    await route_events(router)
    routing = await explained(operator, seed, event_id)
    (decision,) = routing.decisions
    assert (routing.state, routing.sagas_started, routing.next) == (RoutingState.ROUTED, 1, None)
    assert (decision.subscription_id, outcome_of(decision)) == (subscription_id, MATCHED)
    assert decision.then == decision.now
    saga = decision.saga
    assert saga is not None
    assert (saga.status, saga.started_by, saga.attempt_limit) == (SagaStatus.PENDING, StartedBy.ROUTING, 7)
    assert saga.created_at == routing.routed_at


@pytest.mark.parametrize(
    ("before", "since", "reason"),
    [
        ("active = false", "active = true", Reason.INACTIVE),
        ("verified = false", "verified = true", Reason.UNVERIFIED),
        ("event_types = '{b}'", "event_types = '{a}'", Reason.OTHER_EVENT_TYPE),
        ("deleted_at = now(), active = false", "deleted_at = NULL, active = true", Reason.DELETED),
        ("active = false, verified = false", "active = true, verified = true", Reason.INACTIVE),
    ],
)
async def test_the_reason_is_what_was_true_then(
    router: Connection, operator: Connection, seed: Seed, before: str, since: str, reason: Reason
) -> None:
    subscription_id = await seed.subscription("a")
    await change(seed, subscription_id, before)
    event_id = await seed.event("a")
    await route_events(router)
    decision = await only_decision(operator, seed, event_id)
    assert (outcome_of(decision), decision.saga) == ((False, reason), None)
    assert decision.then == decision.now
    await change(seed, subscription_id, since)
    changed = await only_decision(operator, seed, event_id)
    assert (outcome_of(changed), changed.then) == ((False, reason), decision.then)
    assert (changed.now.active, changed.now.verified, changed.now.event_types) == (True, True, ["a"])


@pytest.mark.parametrize(
    "since",
    ["active = false", "verified = false", "event_types = '{b}'", "deleted_at = now(), active = false"],
)
async def test_what_changed_since_takes_nothing_back(
    router: Connection, operator: Connection, seed: Seed, since: str
) -> None:
    subscription_id = await seed.subscription("a")
    event_id = await seed.event("a")
    await route_events(router)
    await change(seed, subscription_id, since)
    decision = await only_decision(operator, seed, event_id)
    assert outcome_of(decision) == MATCHED
    assert decision.then != decision.now


async def test_a_subscription_that_was_not_there_was_created_later(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    event_id = await seed.event("a")
    await route_events(router)
    await seed.subscription("a")
    decision = await only_decision(operator, seed, event_id)
    assert (outcome_of(decision), decision.then) == ((False, Reason.CREATED_LATER), None)


async def test_an_event_from_before_a_subscription_could_take_it_says_so(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    event_id = await seed.event("a")
    await seed.subscription("a")
    await route_events(router)
    decision = await only_decision(operator, seed, event_id)
    assert outcome_of(decision) == (False, Reason.ELIGIBLE_LATER)
    assert decision.then == decision.now


# The router's snapshot decides, to the transaction.


async def test_an_activation_that_commits_after_the_snapshot_is_inactive_then(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    """The change is made before the routing, by the clock, and becomes visible after it."""
    subscription_id = await seed.subscription("a")
    await change(seed, subscription_id, "active = false")
    event_id = await seed.event("a")
    async with seed.connection.transaction():
        await change(seed, subscription_id, "active = true")
        await route_events(router)
    decision = await only_decision(operator, seed, event_id)
    assert outcome_of(decision) == (False, Reason.INACTIVE)
    assert decision.now.active
    history = "SELECT max(changed_at) < (SELECT routed_at FROM routing_decisions) FROM subscription_history"
    assert await seed.value(history) is True


async def test_a_deactivation_that_commits_after_the_snapshot_is_matched(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription("a")
    event_id = await seed.event("a")
    async with seed.connection.transaction():
        await change(seed, subscription_id, "active = false")
        await route_events(router)
    assert outcome_of(await only_decision(operator, seed, event_id)) == MATCHED


async def test_a_change_that_commits_between_the_routers_begin_and_its_statement_was_seen(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    """By the clock the change is after routed_at, which is the start of the transaction."""
    subscription_id = await seed.subscription("a")
    event_id = await seed.event("a")
    await router.execute("BEGIN")
    await router.execute("SELECT now()")
    await change(seed, subscription_id, "active = false")
    await route_events(router)
    await router.execute("COMMIT")
    routing = await explained(operator, seed, event_id)
    assert [outcome_of(decision) for decision in routing.decisions] == [(False, Reason.INACTIVE)]
    assert await seed.value(
        "SELECT max(changed_at) > (SELECT routed_at FROM routing_decisions) FROM subscription_history"
    )


async def test_a_subscription_created_in_a_transaction_that_commits_later_was_not_there(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    event_id = await seed.event("a")
    async with seed.connection.transaction():
        await seed.subscription("a")
        await route_events(router)
    assert outcome_of(await only_decision(operator, seed, event_id)) == (False, Reason.CREATED_LATER)


async def test_a_change_that_was_rolled_back_is_no_history(seed: Seed) -> None:
    subscription_id = await seed.subscription("a")
    before = await seed.value("SELECT count(*) FROM subscription_history")
    async with seed.connection.transaction(force_rollback=True):
        await change(seed, subscription_id, "active = false")
    assert await seed.value("SELECT count(*) FROM subscription_history") == before


@pytest.mark.parametrize("hours", [-2, 2])
async def test_a_clock_that_was_set_says_nothing_about_what_was_seen(
    router: Connection, operator: Connection, seed: Seed, hours: int
) -> None:
    """A change of before and one of after the routing, both dated on the other side of it."""
    subscription_id = await seed.subscription("a")
    await change(seed, subscription_id, "verified = false")
    event_id = await seed.event("a")
    await route_events(router)
    await change(seed, subscription_id, "active = false, verified = true")
    await seed.rewrite(
        "UPDATE subscription_history SET changed_at = now() + make_interval(hours => %s)", [hours]
    )
    assert outcome_of(await only_decision(operator, seed, event_id)) == (False, Reason.UNVERIFIED)


OLD_CLUSTER = {
    "small": ("3", "4:4:"),
    "large": ("9000000000000000000", "9000000000000000001:9000000000000000001:"),
}
"""Numbers of the transaction of a change, and what it saw, in the cluster of which a dump was restored."""


@pytest.mark.parametrize("numbers", OLD_CLUSTER)
async def test_a_change_that_was_restored_from_a_dump_was_seen(
    router: Connection, operator: Connection, seed: Seed, numbers: str
) -> None:
    subscription_id = await seed.subscription("a")
    await change(seed, subscription_id, "active = false")
    await seed.rewrite(
        "UPDATE subscription_history SET changed_by = %s, changed_in = %s", [*OLD_CLUSTER[numbers]]
    )
    await seed.subscription("b")  # the newest change is one of this cluster
    event_id = await seed.event("a")
    await route_events(router)
    (decision, _) = (await explained(operator, seed, event_id)).decisions
    assert outcome_of(decision) == (False, Reason.INACTIVE)


@pytest.mark.parametrize("numbers", OLD_CLUSTER)
async def test_a_routing_that_was_restored_from_a_dump_saw_no_later_change(
    router: Connection, operator: Connection, seed: Seed, numbers: str
) -> None:
    subscription_id = await seed.subscription("a")
    event_id = await seed.event("a")
    await route_events(router)
    await seed.rewrite("UPDATE routing_decisions SET snapshot = %s", [OLD_CLUSTER[numbers][1]])
    await seed.rewrite(
        "UPDATE subscription_history SET changed_by = %s, changed_in = %s", [*OLD_CLUSTER[numbers]]
    )
    await seed.rewrite("DELETE FROM webhook_delivery_sagas")  # whose existence would decide alone
    await change(seed, subscription_id, "active = false")
    assert outcome_of(await only_decision(operator, seed, event_id)) == MATCHED


async def test_a_saga_that_routing_started_is_proof_enough(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    await seed.subscription("a")
    event_id = await seed.event("a")
    await route_events(router)
    await seed.rewrite("UPDATE subscription_history SET active = false")
    assert outcome_of(await only_decision(operator, seed, event_id)) == MATCHED


async def test_the_rule_in_words_is_the_rule_of_the_router(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    """Every combination of facts, against what the router's statement does with it."""
    early = datetime(2020, 1, 1, tzinfo=UTC)
    cases = itertools.product(["a", "b"], [True, False], [True, False], [None, early], [None, 0, 1_000_000])
    wanted: dict[int, bool] = {}
    for event_type, active, verified, deleted_at, newest_event in cases:
        subscription_id = await seed.subscription("a")
        await seed.rewrite(
            "UPDATE subscriptions SET event_types = %s, active = %s, verified = %s, deleted_at = %s,"
            " eligible_after_event = %s, eligible_snapshot = '9000000000000000000:9000000000000000000:'"
            " WHERE id = %s",
            [[event_type], active, verified, deleted_at, newest_event, subscription_id],
        )
        saw = Facts([event_type], active, verified, early, deleted_at)
        wanted[subscription_id] = why_not_matched(saw, "a", in_time=newest_event == 0) is None
    event_id = await seed.event("a")
    await route_events(router)
    routing = await explained(operator, seed, event_id)
    started = {decision.subscription_id: decision.saga is not None for decision in routing.decisions}
    assert started == wanted
    assert sum(wanted.values()) == 1


# Events whose routing is not there, or not the whole story.


async def test_an_event_in_the_outbox_waits(operator: Connection, seed: Seed) -> None:
    await seed.subscription("a")
    event_id = await seed.event("a")
    routing = await explained(operator, seed, event_id)
    assert (routing.state, routing.decisions, routing.routed_at) == (RoutingState.WAITING, [], None)
    assert routing.waiting_since == routing.accepted_at


async def test_an_event_from_before_the_records_shows_its_sagas_only(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    matched = await seed.subscription("a")
    await change(seed, await seed.subscription("a"), "active = false")
    event_id = await seed.event("a")
    await route_events(router)
    await seed.rewrite("DELETE FROM routing_decisions")
    routing = await explained(operator, seed, event_id)
    (decision,) = routing.decisions
    assert routing.state is RoutingState.UNRECORDED
    assert (decision.subscription_id, outcome_of(decision), decision.then) == (matched, (None, None), None)
    assert decision.saga is not None
    assert decision.saga.started_by is None


async def test_a_saga_started_later_is_told_from_one_of_routing(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription("a")
    await change(seed, subscription_id, "active = false")
    event_id = await seed.event("a")
    await route_events(router)
    await change(seed, subscription_id, "active = true")
    await seed.connection.execute(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id) VALUES (%s, %s)",
        [event_id, subscription_id],
    )
    decision = await only_decision(operator, seed, event_id)
    assert outcome_of(decision) == (False, Reason.INACTIVE)
    assert decision.saga is not None
    assert decision.saga.started_by is StartedBy.BACKFILL


async def test_a_saga_from_before_routing_is_no_saga_of_routing(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription("a")
    event_id = await seed.event("a")
    await seed.connection.execute(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id) VALUES (%s, %s)",
        [event_id, subscription_id],
    )
    waiting = await explained(operator, seed, event_id)
    assert [outcome_of(decision) for decision in waiting.decisions] == [(None, None)]
    await route_events(router)
    routing = await explained(operator, seed, event_id)
    (decision,) = routing.decisions
    assert (outcome_of(decision), routing.sagas_started) == (MATCHED, 0)
    assert decision.saga is not None
    assert decision.saga.started_by is StartedBy.BACKFILL


async def test_the_newest_saga_of_a_pair_is_shown_with_its_dead_letter(
    operator: Connection, seed: Seed
) -> None:
    dead_letter_id = await seed.dead_letter()
    event_id = await seed.value("SELECT event_id FROM dead_letters")
    dead = (await only_decision(operator, seed, event_id)).saga
    assert dead is not None
    assert (dead.status, dead.dead_letter_id) == (SagaStatus.DEAD_LETTERED, dead_letter_id)
    again = await requeue.requeue_one(operator, dead_letter_id)
    decision = await only_decision(operator, seed, event_id)
    assert outcome_of(decision) == MATCHED
    assert decision.saga is not None
    assert (decision.saga.id, decision.saga.started_by) == (again.saga_id, StartedBy.REQUEUE)


async def test_a_delivered_saga_that_was_removed_leaves_a_match_without_one(
    operator: Connection, seed: Seed
) -> None:
    saga_id = await seed.saga(SagaStatus.COMPLETED)
    event_id = await seed.value("SELECT event_id FROM webhook_delivery_sagas WHERE id = %s", [saga_id])
    await seed.make_old(saga_id)
    async with seed.connection.transaction():
        await seed.connection.execute("SET LOCAL ROLE retention_operator")
        await seed.connection.execute("DELETE FROM webhook_delivery_jobs")
        await seed.connection.execute("DELETE FROM webhook_delivery_sagas")
    routing = await explained(operator, seed, event_id)
    (decision,) = routing.decisions
    assert (outcome_of(decision), decision.saga, routing.sagas_started) == (MATCHED, None, 1)


# What is written, once.


async def test_a_repeated_routing_keeps_the_first_decision(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription("a")
    await change(seed, subscription_id, "active = false")
    event_id = await seed.event("a")
    await route_events(router)
    first = await seed.rows("SELECT * FROM routing_decisions")
    await change(seed, subscription_id, "active = true")
    await seed.rewrite("UPDATE subscriptions SET eligible_after_event = 0")
    await seed.put_back(event_id)
    assert len((await route_events(router)).saga_ids) == 1
    assert await seed.rows("SELECT * FROM routing_decisions") == first
    decision = await only_decision(operator, seed, event_id)
    assert outcome_of(decision) == (False, Reason.INACTIVE)
    assert decision.saga is not None
    assert decision.saga.started_by is StartedBy.BACKFILL


async def test_an_event_that_is_partly_routed_waits_and_shows_whom_it_has_reached(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscriptions = [await seed.subscription("a") for _ in range(3)]
    event_id = await seed.event("a")
    await route_events(router, wide_from=2, part_size=2)
    routing = await explained(operator, seed, event_id)
    assert (routing.state, routing.routed_at, routing.sagas_started) == (RoutingState.WAITING, None, 2)
    assert routing.waiting_since == routing.accepted_at
    assert [
        (one.subscription_id, one.matched, one.saga and one.saga.started_by) for one in routing.decisions
    ] == [(subscription_id, None, StartedBy.ROUTING) for subscription_id in subscriptions[:2]]
    await route_events(router, wide_from=2, part_size=2)
    routing = await explained(operator, seed, event_id)
    assert (routing.state, routing.waiting_since, routing.sagas_started) == (RoutingState.ROUTED, None, 3)
    last = routing.decisions[-1].saga
    assert last is not None
    assert last.created_at == routing.routed_at


async def test_each_part_tells_of_its_own_subscriptions(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    """A change between two parts is seen by the second one only."""
    subscriptions = [await seed.subscription("a") for _ in range(4)]
    event_id = await seed.event("a")
    await route_events(router, wide_from=2, part_size=2)
    for subscription_id in (subscriptions[1], subscriptions[2]):
        await change(seed, subscription_id, "active = false")
    await route_events(router, wide_from=2, part_size=2)
    routing = await explained(operator, seed, event_id)
    told = {one.subscription_id: (outcome_of(one), one.then and one.then.active) for one in routing.decisions}
    assert [told[subscription_id] for subscription_id in subscriptions] == [
        (MATCHED, True),
        (MATCHED, True),
        ((False, Reason.INACTIVE), False),
        (MATCHED, True),
    ]


async def test_a_repeated_routing_in_other_parts_keeps_the_first_decision(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    subscriptions = [await seed.subscription("a") for _ in range(3)]
    await change(seed, subscriptions[2], "active = false")
    event_id = await seed.event("a")
    await route_events(router)
    before = await explained(operator, seed, event_id)
    await change(seed, subscriptions[2], "active = true")
    await seed.put_back(event_id)
    while (await route_events(router, wide_from=1, part_size=1)).events:
        pass
    after = await explained(operator, seed, event_id)
    assert (after.routed_at, after.sagas_started) == (before.routed_at, before.sagas_started)
    assert [(one.then, outcome_of(one)) for one in after.decisions] == [
        (one.then, outcome_of(one)) for one in before.decisions
    ]


async def test_a_router_that_dies_leaves_no_decision(connect: Connect, seed: Seed) -> None:
    event_id = await seed.event_for(await seed.subscription())
    dying = await connect(Role.ROUTER)
    await dying.execute("BEGIN")
    assert (await route_events(dying)).event_ids == [event_id]
    gone = "SELECT pg_terminate_backend(%s, timeout => 10000)"
    assert await seed.value(gone, [dying.info.backend_pid]) is True
    await route_events(await connect(Role.ROUTER))
    assert await seed.rows("SELECT event_id, sagas_started FROM routing_decisions") == [
        {"event_id": event_id, "sagas_started": 1}
    ]


async def test_a_batch_writes_how_many_sagas_each_event_started(router: Connection, seed: Seed) -> None:
    for event_type in ("a", "a", "b"):
        await seed.subscription(event_type)
    events = [await seed.event(event_type) for event_type in ("a", "b", "c", "a")]
    await route_events(router)
    rows = await seed.rows("SELECT event_id, sagas_started FROM routing_decisions ORDER BY event_id")
    assert [(row["event_id"], row["sagas_started"]) for row in rows] == list(
        zip(events, [2, 1, 0, 2], strict=True)
    )


@pytest.mark.parametrize(
    ("assignments", "rows"),
    [
        ("description = 'other', max_retry_limit = 9, headers = '{\"a\": \"b\"}'", 0),
        ("pending_callback_url = 'https://new.example/'", 0),
        ("active = active", 0),
        ("active = false", 1),
        ("event_types = '{b}'", 1),
        ("verified = false", 1),
        ("deleted_at = now()", 1),
    ],
)
async def test_history_grows_with_what_routing_asks_for_only(seed: Seed, assignments: str, rows: int) -> None:
    subscription_id = await seed.subscription("a")
    before = await seed.value("SELECT count(*) FROM subscription_history")
    await change(seed, subscription_id, assignments)
    assert await seed.value("SELECT count(*) FROM subscription_history") == before + rows


async def test_history_is_what_each_subscription_was(seed: Seed) -> None:
    subscription_id = await seed.subscription("a", tenant_id="acme", verified=False)
    for assignments in ("verified = true", "active = false", "event_types = '{b}', active = true"):
        await change(seed, subscription_id, assignments)
    rows = await seed.rows(
        "SELECT tenant_id, event_types, active, verified, eligible_since IS NULL AS waits"
        " FROM subscription_history ORDER BY id"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("acme", ["a"], True, False, True),
        ("acme", ["a"], True, True, False),
        ("acme", ["a"], False, True, True),
        ("acme", ["b"], True, True, False),
    ]


# Tenants, order, pages.


async def test_only_the_events_own_tenant_is_shown(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    mine = [await seed.subscription(event_type, tenant_id="acme") for event_type in ("a", "b")]
    for tenant_id in ("default", "Acme", "acme2"):
        await seed.subscription("a", tenant_id=tenant_id)
    event_id = await seed.event("a", tenant_id="acme")
    await route_events(router)
    routing = await explained(operator, seed, event_id, tenant_id="acme")
    assert ids_of(routing.decisions) == mine


async def test_an_event_of_another_tenant_is_not_there(operator: Connection, seed: Seed) -> None:
    theirs = await webhook_id(seed, await seed.event("a", tenant_id="acme"))
    for wanted, tenant_id in ((theirs, "other"), (uuid.uuid4(), None)):
        with pytest.raises(NotFound):
            await explain_event(operator, wanted, tenant_id=tenant_id, default_attempt_limit=5)


def ids_of(decisions: Sequence[Decision]) -> list[int]:
    return [decision.subscription_id for decision in decisions]


async def some_of_each_rank(seed: Seed) -> list[int]:
    """Ids in the order in which they are shown, whatever the order in which they were made."""
    others = [await seed.subscription(), await seed.subscription("c")]
    near = [await seed.subscription("a", verified=False), await seed.subscription("a")]
    await change(seed, near[1], "event_types = '{b}'")
    matched = [await seed.subscription("a") for _ in range(3)]
    return [*matched, *near, *others]


async def test_the_matched_come_first_then_the_near_misses(
    router: Connection, operator: Connection, seed: Seed
) -> None:
    in_order = await some_of_each_rank(seed)
    event_id = await seed.event("a")
    await route_events(router)
    assert ids_of((await explained(operator, seed, event_id)).decisions) == in_order


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("walked_at_once", [1, 2, 250])
async def test_pages_show_each_subscription_once_in_the_same_order(
    router: Connection,
    operator: Connection,
    seed: Seed,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    walked_at_once: int,
) -> None:
    monkeypatch.setattr(explained_pages, "WALKED_AT_ONCE", walked_at_once)
    in_order = await some_of_each_rank(seed)
    event_id = await seed.event("a")
    await route_events(router)
    pages = await all_pages(operator, seed, event_id, limit)
    assert [one for page in pages for one in page] == in_order
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert pages[-1]


async def all_pages(operator: Connection, seed: Seed, event_id: int, limit: int) -> list[list[int]]:
    pages: list[list[int]] = []
    after: Place | None = None
    while not pages or after is not None:
        page = await explained(operator, seed, event_id, limit=limit, after=after)
        pages.append(ids_of(page.decisions))
        after = page.next
    return pages


async def test_a_page_that_would_look_at_too_many_ends_early_and_goes_on(
    router: Connection, operator: Connection, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explained_pages, "WALKED_AT_ONCE", 2)
    monkeypatch.setattr(explained_pages, "MAX_WALKED", 4)
    in_order = await some_of_each_rank(seed)
    event_id = await seed.event("a")
    await route_events(router)
    pages = await all_pages(operator, seed, event_id, limit=250)
    assert len(pages) > 2
    assert [one for page in pages for one in page] == in_order


async def test_a_subscription_keeps_its_tenant(seed: Seed) -> None:
    subscription_id = await seed.subscription("a", tenant_id="acme")
    with pytest.raises(Exception, match="keeps its tenant"):
        await change(seed, subscription_id, "tenant_id = 'other'")
    await change(seed, subscription_id, "tenant_id = 'acme'")
