"""An erasure removes everything that the producer sent, and leaves the history: each row stays, with its mark."""

from typing import Any, LiteralString

import psycopg
import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.erasures import NewErasure
from hooksaga.core.errors import Conflict, NotFound
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import inspect, requeue, resend
from hooksaga.operations.erasures import (
    Erasure,
    ErasureStep,
    list_erasures,
    show_erasure,
    start_erasure,
    step_erasure,
)
from hooksaga.operations.explain import explain_event
from hooksaga.operations.requester import Requester
from hooksaga.stages import deliver
from hooksaga.stages.clean_leases import clean_leases
from hooksaga.stages.job_rows import AttemptResult
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.bulk_rows import backfill_of, started, step_until_nothing_is_left
from tests.database.seed import POLICY, WORKER, Seed, outcome

MARK = "8d1f-marked-4c20"
PAYLOAD = f'{{"name": "{MARK}"}}'
CALLER = Requester(None, "privacy desk", None)

LEFT: LiteralString = """
    SELECT (SELECT count(*) FROM events e WHERE e::text LIKE %(mark)s) AS events,
           (SELECT count(*) FROM webhook_delivery_sagas s WHERE s::text LIKE %(mark)s) AS sagas,
           (SELECT count(*) FROM webhook_delivery_jobs j WHERE j::text LIKE %(mark)s) AS jobs,
           (SELECT count(*) FROM dead_letters d WHERE d::text LIKE %(mark)s) AS dead_letters,
           (SELECT count(*) FROM routing_outbox o WHERE o::text LIKE %(mark)s) AS outbox,
           (SELECT count(*) FROM subscription_flow f WHERE f::text LIKE %(mark)s) AS flow"""


@pytest.fixture
async def eraser(connect: Connect) -> Connection:
    return await connect(Role.RETENTION)


async def erased(operator: Connection, eraser: Connection, **wanted: Any) -> Erasure:
    """Request an erasure and step it to its end."""
    made, _ = await start_erasure(operator, NewErasure(reason="request 7", **wanted), CALLER)
    for _ in range(1000):
        if (await step_erasure(eraser, max_events=2, max_read=3)).erasure_id is None:
            break
    return await show_erasure(operator, made.id, tenant_id=None)


async def event_id_of(seed: Seed, saga_id: int) -> str:
    return event_id_text(
        await seed.value(
            "SELECT webhook_id FROM events e JOIN webhook_delivery_sagas s ON s.event_id = e.id WHERE s.id = %s",
            [saga_id],
        )
    )


async def left(seed: Seed) -> dict[str, int]:
    """Tables with a row that still has the marked bytes."""
    return {table: many for table, many in (await seed.row(LEFT, {"mark": f"%{MARK}%"})).items() if many}


async def in_every_state(seed: Seed) -> dict[SagaStatus, int]:
    return {status: await seed.saga(status, payload=PAYLOAD) for status in SagaStatus}


async def test_a_tenant_is_erased_in_every_state(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    sagas = await in_every_state(seed)
    await seed.event("waits.for.routing", PAYLOAD)
    assert await left(seed)
    done = await erased(operator, eraser, tenant_id="default")
    assert (done.status, done.events, done.dead_letters, done.ended, done.in_flight) == (
        "Completed",
        6,
        1,
        2,
        0,
    )
    assert (done.created_by, done.reason) == ("privacy desk", "request 7")
    assert await left(seed) == {}
    assert await seed.findings() == set()
    states = {status: await seed.status_of(saga_id) for status, saga_id in sagas.items()}
    assert states == {
        **dict.fromkeys((SagaStatus.PENDING, SagaStatus.PENDING_RETRY), SagaStatus.DEAD_LETTERED),
        **{one: one for one in (SagaStatus.IN_PROGRESS, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED)},
    }
    codes = await seed.rows("SELECT final_error_code FROM dead_letters ORDER BY id")
    assert [row["final_error_code"] for row in codes] == ["http_503", "erased", "erased"]


async def with_attributes(
    seed: Seed, given: dict[str, Any], extracted: str = "{}", tenant_id: str = "default"
) -> int:
    """The id of an event that has these attributes."""
    event_id = await seed.event("person.changed", PAYLOAD, tenant_id=tenant_id, attributes=given)
    await seed.rewrite("UPDATE events SET extracted_attributes = %s WHERE id = %s", [extracted, event_id])
    return event_id


@pytest.mark.parametrize(
    ("attribute", "chosen"),
    [("customer:42", {"text", "number", "extracted"}), ("customer:4", set()), ("other:42", {"other"})],
)
async def test_an_attribute_narrows_the_erasure_of_a_tenant(
    operator: Connection, eraser: Connection, seed: Seed, attribute: str, chosen: set[str]
) -> None:
    ids = {
        "text": await with_attributes(seed, {"customer": "42", "more": 1}),
        "number": await with_attributes(seed, {"customer": 42}),
        "extracted": await with_attributes(seed, {}, '{"customer": "42"}'),
        "given first": await with_attributes(seed, {"customer": "7"}, '{"customer": "42"}'),
        "other": await with_attributes(seed, {"other": "42"}),
        "none": await with_attributes(seed, {}),
        "of another tenant": await with_attributes(seed, {"customer": "42"}, tenant_id="acme"),
    }
    done = await erased(operator, eraser, tenant_id="default", attribute=attribute)
    assert (done.status, done.events, done.attribute_name) == (
        "Completed",
        len(chosen),
        attribute.partition(":")[0],
    )
    rows = await seed.rows("SELECT id FROM events WHERE erasure_id IS NOT NULL")
    assert {row["id"] for row in rows} == {ids[name] for name in chosen}
    assert await seed.value("SELECT count(attribute_values) FROM erasures") == 0  # they may name a person
    assert await seed.findings() == set()


async def test_erasures_of_different_attributes_run_beside_each_other(
    operator: Connection, seed: Seed
) -> None:
    await with_attributes(seed, {"customer": "42"})

    async def start(**wanted: Any) -> tuple[int, bool]:
        made, created = await start_erasure(
            operator, NewErasure(reason="r", tenant_id="default", **wanted), CALLER
        )
        return made.id, created

    started = [await start(attribute=one) for one in ("customer:42", "customer:43", "client:42")]
    started.append(await start())
    assert [created for _, created in started] == [True] * 4
    assert await start(attribute="customer:42") == (started[0][0], False)


async def test_only_the_named_event_is_erased(operator: Connection, eraser: Connection, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    first, other = [await seed.saga(SagaStatus.COMPLETED, subscription_id, payload=PAYLOAD) for _ in range(2)]
    done = await erased(operator, eraser, event_id=await event_id_of(seed, first))
    assert (done.status, done.events) == ("Completed", 1)
    assert await left(seed) == {"events": 1}
    event = await inspect.show_event(operator, done.webhook_id, tenant_id=None)  # pyright: ignore[reportArgumentType]
    assert (event.payload, event.is_erased) == (None, True)
    assert [saga.status for saga in event.sagas] == ["Completed"]
    again = await erased(operator, eraser, event_id=await event_id_of(seed, first))
    assert (again.status, again.events) == ("Completed", 0)
    assert await seed.status_of(other) == SagaStatus.COMPLETED


async def test_other_tenants_and_later_events_stay(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    for tenant_id in ("acme", "other"):
        subscription_id = await seed.subscription(tenant_id=tenant_id)
        for _ in range(4):
            await seed.saga(SagaStatus.COMPLETED, subscription_id, PAYLOAD)
    made, _ = await start_erasure(operator, NewErasure(tenant_id="acme", reason="r"), CALLER)
    later = await seed.event("later", PAYLOAD, tenant_id="acme")
    while (await step_erasure(eraser, max_events=1, max_read=2)).erasure_id is not None:
        pass
    assert (await show_erasure(operator, made.id, tenant_id=None)).events == 4
    kept = await seed.rows("SELECT tenant_id, id FROM events WHERE payload IS NOT NULL ORDER BY id")
    assert [row["tenant_id"] for row in kept] == ["other"] * 4 + ["acme"]
    assert kept[-1]["id"] == later


async def test_everything_that_the_producer_chose_goes(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    subscription_id = await seed.subscription("ordered.type", ordered=True)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    draft = EventDraft(
        "ordered.type", PAYLOAD, source=MARK, external_id=MARK, ordering_key=MARK, traceparent=trace
    )
    await seed.accept(draft)
    await route_events(seed.connection)
    saga_id = await seed.value(
        "SELECT id FROM webhook_delivery_sagas WHERE subscription_id = %s", [subscription_id]
    )
    await seed.finish(
        await seed.start(saga_id), "http_503", response_body=f"you sent {MARK}", response_headers=f"x: {MARK}"
    )
    await orchestrate.apply_results(seed.connection, POLICY)
    assert (await left(seed)).keys() == {"events", "sagas", "jobs"}
    done = await erased(operator, eraser, tenant_id="default")
    assert await left(seed) == {}
    assert (done.attempts, done.ended) == (1, 1)
    row = await seed.row("SELECT source, external_id, traceparent, ordering_key FROM events")
    assert list(row.values()) == ["", None, None, None]
    assert await seed.findings() == set()
    (new,) = await seed.accept(draft)
    assert not new.duplicate


# What is under way.


async def test_an_attempt_in_flight_ends_and_stores_no_answer(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    for error_code, end in ((None, SagaStatus.COMPLETED), ("http_503", SagaStatus.DEAD_LETTERED)):
        saga_id = await seed.saga(SagaStatus.IN_PROGRESS, payload=PAYLOAD)
        (claimed,) = await seed.claim(await seed.active_job(saga_id))
        done = await erased(operator, eraser, event_id=await event_id_of(seed, saga_id))
        assert done.in_flight == 1
        result = AttemptResult(
            claimed, outcome(error_code, response_body=MARK, response_headers=f"x: {MARK}"), "x-own"
        )
        await deliver.record_results(seed.connection, [result], worker_id=WORKER)
        await orchestrate.apply_results(seed.connection, POLICY)
        assert await seed.status_of(saga_id) == end
    assert await left(seed) == {}
    dead = await seed.row("SELECT final_error_code, reason, payload_snapshot FROM dead_letters")
    assert list(dead.values()) == ["erased", "its event was erased", None]
    assert await seed.findings() == set()


async def test_a_job_that_waits_sends_nothing(operator: Connection, eraser: Connection, seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS, payload=PAYLOAD)
    await erased(operator, eraser, tenant_id="default")
    (claimed,) = await seed.claim(await seed.active_job(saga_id))
    result = await deliver.attempt(None, seed.box, claimed, timeout_seconds=1)  # pyright: ignore[reportArgumentType]
    assert result.outcome.error_code == "erased"
    await deliver.record_results(seed.connection, [result], worker_id=WORKER)
    await orchestrate.apply_results(seed.connection, POLICY)
    assert await seed.status_of(saga_id) == SagaStatus.DEAD_LETTERED
    assert await seed.findings() == set()


async def test_a_lost_lease_of_an_erased_event_sends_nothing_again(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS, payload=PAYLOAD)
    job_id = await seed.active_job(saga_id)
    await seed.claim(job_id)
    await erased(operator, eraser, tenant_id="default")
    await seed.expire_lease(job_id)
    await clean_leases(seed.connection, max_lost_leases=5)
    (claimed,) = await seed.claim(job_id)
    assert claimed.payload == ""


async def test_an_event_that_was_not_routed_yet_ends_as_dead_letters(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    """Its routing goes on, and its attempts send nothing."""
    subscription_id = await seed.subscription("a.type")
    await seed.event("a.type", PAYLOAD)
    await erased(operator, eraser, tenant_id="default")
    await route_events(seed.connection)
    saga_id = await seed.value(
        "SELECT id FROM webhook_delivery_sagas WHERE subscription_id = %s", [subscription_id]
    )
    (claimed,) = await seed.claim(await seed.start(saga_id))
    result = await deliver.attempt(None, seed.box, claimed, timeout_seconds=1)  # pyright: ignore[reportArgumentType]
    await deliver.record_results(seed.connection, [result], worker_id=WORKER)
    await orchestrate.apply_results(seed.connection, POLICY)
    assert await seed.status_of(saga_id) == SagaStatus.DEAD_LETTERED
    assert await seed.findings() == set()


# It cannot be sent again.


async def test_nothing_of_an_erased_event_is_sent_again(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    saga_id = await seed.saga(SagaStatus.DEAD_LETTERED, payload=PAYLOAD)
    dead_letter = await seed.value("SELECT id FROM dead_letters WHERE saga_id = %s", [saga_id])
    await erased(operator, eraser, tenant_id="default")
    for call in (
        requeue.requeue_one(operator, dead_letter),
        resend.resend_saga(operator, saga_id, tenant_id=None),
    ):
        with pytest.raises(Conflict) as refused:
            await call
        assert refused.value.code == "event_erased"
    assert (await requeue.requeue_matching(operator, requeue.DeadLetterFilter())).matched == 0


async def test_an_event_that_a_filter_kept_away_is_not_missed(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    """Without its attributes the filter would match it now."""
    await seed.subscription("a", filter={"country": [{"anything-but": "DE"}]})
    draft = EventDraft(
        "a", PAYLOAD, "default", attributes=f'{{"country":"DE","name":"{MARK}"}}', extracted=PAYLOAD
    )
    (accepted,) = await seed.accept(draft)
    await route_events(seed.connection, max_events=10)
    assert await seed.rows("SELECT FROM webhook_delivery_sagas") == []
    await erased(operator, eraser, event_id=event_id_text(accepted.webhook_id))
    assert await left(seed) == {}
    assert await seed.findings() == set()
    routing = await explain_event(operator, accepted.webhook_id, tenant_id=None, default_attempt_limit=5)
    assert [(one.matched, one.reason) for one in routing.decisions] == [(None, None)]


async def test_a_step_has_few_deliveries_and_at_least_one_event(
    operator: Connection, eraser: Connection, seed: Seed
) -> None:
    for _ in range(3):
        await seed.subscription("a")
    for _ in range(4):
        await seed.event("a")
    await route_events(seed.connection, max_events=10)
    made, _ = await start_erasure(operator, NewErasure(tenant_id="default", reason="one"), CALLER)
    steps = [await step_erasure(eraser, max_deliveries=most) for most in (1, 4, 100, 100)]
    assert [(step.events, step.ended) for step in steps] == [(1, 3), (2, 6), (1, 3), (0, 0)]
    assert (await show_erasure(operator, made.id, tenant_id=None)).status == "Completed"


async def test_a_backfill_passes_erased_events(operator: Connection, eraser: Connection, seed: Seed) -> None:
    event_ids = [await seed.event("a.type", PAYLOAD) for _ in range(2)]
    await route_events(seed.connection)
    webhook_id = await seed.value("SELECT webhook_id FROM events WHERE id = %s", [event_ids[0]])
    await erased(operator, eraser, event_id=event_id_text(webhook_id))
    since = await seed.value("SELECT min(created_at) FROM events")
    subscription_id = await seed.subscription("a.type")
    await started(operator, backfill_of(subscription_id, since=since))
    assert await step_until_nothing_is_left(operator) == 1
    assert await seed.value("SELECT event_id FROM webhook_delivery_sagas") == event_ids[1]


# Requests.


async def test_a_repeat_returns_the_running_erasure(operator: Connection, seed: Seed) -> None:
    await seed.event("a.type")
    wanted = NewErasure(tenant_id="default", reason="first")
    first, created = await start_erasure(operator, wanted, CALLER)
    again, repeated = await start_erasure(operator, NewErasure(tenant_id="default", reason="second"), CALLER)
    assert (created, repeated, again.id, again.reason) == (True, False, first.id, "first")
    assert [one.id for one in await list_erasures(operator, tenant_id=None)] == [first.id]
    assert await list_erasures(operator, tenant_id="other") == []


async def test_what_is_not_the_callers_is_not_found(operator: Connection, seed: Seed) -> None:
    saga_id = await seed.saga()
    of_acme = Requester("acme", "acme", None)
    for wanted, code in (
        ({"event_id": await event_id_of(seed, saga_id)}, "event_not_found"),
        ({"event_id": "evt_" + "0" * 32}, "event_not_found"),
        ({"tenant_id": "default"}, "tenant_not_found"),
    ):
        with pytest.raises(NotFound) as refused:
            await start_erasure(operator, NewErasure(reason="r", **wanted), of_acme)
        assert refused.value.code == code


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"event_id": "evt_" + "0" * 32, "tenant_id": "a"},
        {"tenant_id": "a", "reason": " "},
        {"event_id": "evt_" + "0" * 32, "attribute": "customer:42"},
        {"attribute": "customer:42"},
        {"tenant_id": "a", "attribute": None},
        {"tenant_id": "a", "attribute": "customer"},
        {"tenant_id": "a", "attribute": ":42"},
    ],
)
def test_a_request_names_one_thing_and_a_reason(wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"give one of the two|reason|attribute"):
        NewErasure(**{"reason": "r", **wanted})


# Crashes and locks.


async def test_a_killed_step_is_repeated(connect: Connect, operator: Connection, seed: Seed) -> None:
    for status in (SagaStatus.COMPLETED, SagaStatus.PENDING_RETRY, SagaStatus.DEAD_LETTERED):
        await seed.saga(status, payload=PAYLOAD)
    made, _ = await start_erasure(operator, NewErasure(tenant_id="default", reason="r"), CALLER)
    for _ in range(3):
        dying = await connect(Role.RETENTION)
        async with dying.transaction(force_rollback=True):
            await step_erasure(dying, max_events=1)
        alive = await connect(Role.RETENTION)
        assert (await step_erasure(alive, max_events=1)).events == 1
    while (await step_erasure(operator)).erasure_id is not None:
        pass
    done = await show_erasure(operator, made.id, tenant_id=None)
    assert (done.status, done.events, done.ended) == ("Completed", 3, 1)
    assert await left(seed) == {}


@pytest.mark.parametrize(
    "table", ["events", "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters"]
)
async def test_a_locked_row_delays_its_own_event_only(
    operator: Connection, eraser: Connection, owner: Connection, seed: Seed, table: LiteralString
) -> None:
    for _ in range(3):
        await seed.saga(SagaStatus.DEAD_LETTERED, payload=PAYLOAD)
    await start_erasure(operator, NewErasure(tenant_id="default", reason="r"), CALLER)
    lock = f"SELECT id FROM {table} ORDER BY id LIMIT 1 FOR NO KEY UPDATE"
    async with owner.transaction():
        await owner.execute(lock)  # pyright: ignore[reportCallIssue, reportArgumentType]
        first = await step_erasure(eraser)
        assert (first.status, first.events, first.skipped) == ("Running", 2, 1)
        assert (await step_erasure(eraser)) == ErasureStep(first.erasure_id, "Running", 0, 0, 1)
        assert not (await step_erasure(eraser)).more
    assert (await step_erasure(eraser)).status == "Completed"
    assert await left(seed) == {}


async def test_who_erased_what_is_kept(operator: Connection, eraser: Connection, seed: Seed) -> None:
    await seed.event("a.type")
    await erased(operator, eraser, tenant_id="default")
    for change in (
        "DELETE FROM erasures",
        "TRUNCATE erasures",
        "UPDATE erasures SET reason = 'another'",
        "UPDATE erasures SET events = 0",
    ):
        with pytest.raises(psycopg.Error) as refused:
            await seed.connection.execute(change)
        assert refused.value.sqlstate == "HS001"


async def test_the_audit_finds_what_was_left(operator: Connection, eraser: Connection, seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.COMPLETED)
    await erased(operator, eraser, tenant_id="default")
    await seed.rewrite("UPDATE webhook_delivery_jobs SET response_body = 'x' WHERE saga_id = %s", [saga_id])
    assert await seed.findings() == {"erased_event_with_content"}
