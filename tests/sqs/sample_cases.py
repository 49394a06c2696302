"""For every file of events-samples: the rows that it speaks of, and how the function answers."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, LiteralString

from hooksaga.core.bulk import BulkStatus
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.api_keys import create_api_key
from hooksaga.operations.bulk_operations import move_bulk_operation
from tests.database.bulk_rows import requeue_of, started
from tests.database.passing_time import pass_time
from tests.database.seed import Seed

KEY = "hs_replace_me"
EVENTS_ONLY_KEY = "hs_events_only_key"
WEBHOOK_ID = "01900000-0000-7000-8000-000000000001"
ALL_GOOD = {"batchItemFailures": []}

Prepare = Callable[[Seed, str], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """`answer`: what the answer holds at least. `rows`: a count per query after it."""

    prepare: Prepare
    answer: Any
    rows: dict[LiteralString, int] = field(default_factory=dict[LiteralString, int])


SAGAS: LiteralString = "SELECT count(*) FROM webhook_delivery_sagas"
PENDING_JOBS: LiteralString = "SELECT count(*) FROM webhook_delivery_jobs WHERE status = 'Pending'"
DISPATCHED: LiteralString = "SELECT count(*) FROM webhook_delivery_jobs WHERE dispatched_at IS NOT NULL"
COMPLETED_JOBS: LiteralString = "SELECT count(*) FROM webhook_delivery_jobs WHERE status = 'Completed'"
EVENTS: LiteralString = "SELECT count(*) FROM events"
CLOUD_EVENTS: LiteralString = """
    SELECT count(*) FROM events WHERE source = '/shop/orders' AND attributes ? 'subject' AND cloud_event ? 'time'"""
FROM_EVENTBRIDGE: LiteralString = """
    SELECT count(*) FROM events
     WHERE source = 'shop.orders' AND event_type = 'Order_Created' AND payload ->> 'country' = 'DE'"""
FROM_SNS: LiteralString = """
    SELECT count(*) FROM events
     WHERE source = 'arn:aws:sns:us-east-1:123456789012:orders' AND attributes = '{"country": "DE", "total": 1.10}'"""
FROM_THE_QUEUE: LiteralString = """
    SELECT count(*) FROM events WHERE source = 'arn:aws:sqs:us-east-1:123456789012:hooksaga-intake'"""
BULK_OPERATIONS: LiteralString = "SELECT count(*) FROM bulk_operations"
CANCELED: LiteralString = "SELECT count(*) FROM dead_letters WHERE final_error_code = 'canceled'"
SETTLED: LiteralString = """
    SELECT count(*) FROM webhook_delivery_sagas
     WHERE (id, status) IN ((1, 'Completed'), (2, 'PendingRetry'))"""
OPERATIONAL: LiteralString = "SELECT count(*) FROM events WHERE source = 'hooksaga'"
ACTIVE: LiteralString = "SELECT count(*) FROM subscriptions WHERE active"


async def nothing(seed: Seed, _: str) -> None:
    """Only the keys that the samples carry."""
    await create_api_key(seed.connection, KEY, name="samples")
    await create_api_key(seed.connection, EVENTS_ONLY_KEY, name="shop", scopes=["events:write"])


async def two_events(seed: Seed, receiver: str) -> None:
    subscription = await seed.subscription("order.created", receiver)
    for _ in range(2):
        await seed.event_for(subscription)


async def two_sagas(seed: Seed, receiver: str) -> None:
    """Of two subscriptions."""
    for event_type in ("order.created", "order.paid"):
        subscription = await seed.subscription(event_type, receiver)
        await seed.saga(SagaStatus.PENDING, subscription)


async def two_jobs(seed: Seed, receiver: str) -> None:
    subscription = await seed.subscription("order.created", receiver)
    for _ in range(2):
        await seed.job(subscription)


async def two_results(seed: Seed, receiver: str) -> None:
    await two_jobs(seed, receiver)
    await seed.finish(1)
    await seed.finish(2, error_code="http_503")


async def a_dead_worker(seed: Seed, receiver: str) -> None:
    await two_jobs(seed, receiver)
    await seed.claim(1)
    await seed.expire_lease(1)


async def a_gone_endpoint(seed: Seed, receiver: str) -> None:
    """Its 410, and a dead letter that somebody wants to know of."""
    await seed.subscription("hooksaga.delivery.dead_lettered", receiver)
    await seed.dead_letter(await seed.subscription("order.paid", receiver))
    await two_jobs(seed, receiver)
    await seed.finish(2, error_code="http_410")
    await pass_time(seed, minutes=2)


async def a_dead_letter(seed: Seed, receiver: str) -> None:
    """Dead letter 1 of event 1, and saga 2 that waits."""
    await nothing(seed, receiver)
    subscription = await seed.subscription("order.created", receiver)
    await seed.dead_letter(subscription)
    await seed.saga(SagaStatus.PENDING, subscription)
    await seed.rewrite("UPDATE events SET webhook_id = %s WHERE id = 1", [WEBHOOK_ID])


async def a_bulk_operation(seed: Seed, receiver: str) -> None:
    """Bulk operation 1 over dead letter 1, which nobody has stepped yet."""
    await a_dead_letter(seed, receiver)
    await started(seed.connection, requeue_of(20))


async def an_ended_bulk_operation(seed: Seed, receiver: str) -> None:
    await a_bulk_operation(seed, receiver)
    await move_bulk_operation(seed.connection, 1, BulkStatus.STOPPED, tenant_id=None)


async def an_old_delivery(seed: Seed, receiver: str) -> None:
    """A delivery that was completed in another year."""
    await seed.saga(SagaStatus.COMPLETED, await seed.subscription("order.created", receiver))
    await seed.rewrite("UPDATE events SET created_at = '2020-01-01'")
    await seed.rewrite("UPDATE webhook_delivery_sagas SET updated_at = '2020-01-01'")
    await seed.rewrite("UPDATE webhook_delivery_jobs SET finished_at = '2020-01-01'")


async def a_subscription_with_clear_headers(seed: Seed, receiver: str) -> None:
    await a_subscription(seed, receiver)
    await seed.connection.execute('UPDATE subscriptions SET headers = \'{"x-shop": "berlin"}\'')


async def a_subscription(seed: Seed, receiver: str) -> None:
    await nothing(seed, receiver)
    await seed.subscription("order.created", receiver, verified=False)


def http(status: int, /, **content: Any) -> dict[str, Any]:
    return {"statusCode": status, "content": content}


def asked(status: int, body: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a request without a gateway."""
    return {"status": status, "body": body}


def refused(code: str) -> dict[str, Any]:
    return {"error": {"code": code}}


CASES: dict[str, Case] = {
    "router/sqs.two_events": Case(two_events, ALL_GOOD, {SAGAS: 2}),
    "router/sqs.duplicate": Case(two_events, ALL_GOOD, {SAGAS: 1}),
    "router/sqs.mixed_with_malformed": Case(two_events, ALL_GOOD, {SAGAS: 2}),
    "router/sqs.unknown_event": Case(two_events, ALL_GOOD, {SAGAS: 0}),
    "router/sqs.empty": Case(two_events, ALL_GOOD, {SAGAS: 0}),
    "router/eventbridge.tick": Case(two_events, {"routed": 2}, {SAGAS: 2}),
    "orchestrator/sqs.subscriptions_due": Case(two_sagas, ALL_GOOD, {PENDING_JOBS: 2, DISPATCHED: 2}),
    "orchestrator/sqs.results": Case(two_results, ALL_GOOD, {SETTLED: 2}),
    "orchestrator/sqs.cancel": Case(two_sagas, ALL_GOOD, {CANCELED: 1, PENDING_JOBS: 0}),
    "orchestrator/sqs.duplicate": Case(two_sagas, ALL_GOOD, {PENDING_JOBS: 1}),
    "orchestrator/sqs.mixed_with_malformed": Case(two_sagas, ALL_GOOD, {PENDING_JOBS: 2}),
    "orchestrator/sqs.unknown": Case(two_sagas, ALL_GOOD, {PENDING_JOBS: 0}),
    "orchestrator/sqs.empty": Case(two_sagas, ALL_GOOD, {PENDING_JOBS: 0}),
    "orchestrator/eventbridge.tick": Case(two_sagas, {"moved": 2, "dispatched": 0}, {PENDING_JOBS: 2}),
    "delivery/sqs.two_jobs": Case(two_jobs, ALL_GOOD, {COMPLETED_JOBS: 2}),
    "delivery/sqs.slow": Case(two_jobs, ALL_GOOD, {COMPLETED_JOBS: 1}),
    "delivery/sqs.duplicate": Case(two_jobs, ALL_GOOD, {COMPLETED_JOBS: 1}),
    "delivery/sqs.mixed_with_malformed": Case(two_jobs, ALL_GOOD, {COMPLETED_JOBS: 2}),
    "delivery/sqs.unknown_job": Case(two_jobs, ALL_GOOD, {COMPLETED_JOBS: 0}),
    "delivery/sqs.empty": Case(two_jobs, ALL_GOOD, {COMPLETED_JOBS: 0}),
    "lease_cleaner/eventbridge.tick": Case(a_dead_worker, {"reset": 1}, {PENDING_JOBS: 2}),
    "health_monitor/eventbridge.tick": Case(
        a_gone_endpoint, {"attempts": 2, "verdicts": 1, "events": 2}, {OPERATIONAL: 2, ACTIVE: 2}
    ),
    "retention/eventbridge.tick": Case(
        an_old_delivery, {"sagas": 0, "jobs": 0, "events": 0}, {SAGAS: 1, EVENTS: 1}
    ),
    "migrate/deploy.every_time": Case(nothing, {"applied": []}),
    "admin/request.dead_letters": Case(
        a_dead_letter,
        asked(200, {"items": [{"id": 1, "final_error_code": "http_503", "requeued_as": None}], "next": None}),
    ),
    "admin/request.dead_letter": Case(a_dead_letter, asked(200, {"id": 1, "payload_snapshot": {"n": 1}})),
    "admin/direct.requeue": Case(
        a_dead_letter, {"dead_letter_id": 1, "saga_id": 3, "created": True}, {SAGAS: 3}
    ),
    "admin/request.requeue_matching": Case(
        a_dead_letter, asked(200, {"matched": 1, "requeued": 1, "skipped": 0, "dry_run": False}), {SAGAS: 3}
    ),
    "admin/request.requeue_matching_dry_run": Case(
        a_dead_letter, asked(200, {"matched": 1, "requeued": 0, "skipped": 0, "dry_run": True}), {SAGAS: 2}
    ),
    "admin/request.cancel_saga": Case(
        a_dead_letter, asked(202, {"saga_id": 2, "status": "Pending"}), {CANCELED: 0}
    ),
    "admin/request.resend_saga": Case(a_dead_letter, asked(201, {"saga_id": 3}), {SAGAS: 3}),
    "admin/request.retry_saga_now": Case(a_dead_letter, asked(202, {"saga_id": 2, "waits_for": "start"})),
    "admin/request_refused.cancel_ended_saga": Case(a_dead_letter, asked(409, {"code": "saga_not_waiting"})),
    "admin/request.event": Case(
        a_dead_letter,
        asked(200, {"id": f"evt_{WEBHOOK_ID.replace('-', '')}", "payload": {"n": 1}, "tenant_id": "default"}),
    ),
    "admin/request.event_routing": Case(
        a_dead_letter,
        asked(
            200,
            {
                "id": f"evt_{WEBHOOK_ID.replace('-', '')}",
                "routing": {
                    "state": "routed",
                    "sagas_started": 1,
                    "decisions": [
                        {"subscription_id": 1, "matched": True, "saga": {"status": "DeadLettered"}}
                    ],
                    "next": None,
                },
            },
        ),
    ),
    "admin/request_refused.bad_cursor": Case(a_dead_letter, asked(422, {"code": "invalid_cursor"})),
    "admin/request.events": Case(
        a_dead_letter, asked(200, {"items": [{"dead": 1, "routed": True}], "next": None})
    ),
    "admin/request.attempts": Case(
        a_dead_letter,
        asked(200, {"items": [{"id": 1, "error_code": "http_503", "max_attempts": 5}], "next": None}),
    ),
    "admin/request.attempt": Case(
        a_dead_letter, asked(200, {"id": 1, "trigger": "first", "response_body": ""})
    ),
    "admin/request.subscription_stats": Case(
        a_dead_letter, asked(200, {"failed": 1, "last_error": {"code": "http_503"}})
    ),
    "admin/request_refused.missing_attempt": Case(nothing, asked(404, {"code": "attempt_not_found"})),
    "admin/api_gateway.attempts": Case(a_dead_letter, http(200, items=[{"id": 1}], next=None)),
    "admin/api_gateway.follow_attempts": Case(a_dead_letter, http(200, items=[], more=False)),
    "admin/api_gateway.attempt": Case(a_dead_letter, http(200, id=1, response_body="")),
    "admin/api_gateway.subscription_stats": Case(a_dead_letter, http(200, failed=1, success_rate=0)),
    "admin/direct.stats": Case(a_dead_letter, {"outbox": 0, "sagas_waiting": 1, "dead_letters_24h": 1}),
    "admin/direct.create_key": Case(
        nothing, {"id": 3, "name": "shop", "scopes": ["events:write"], "tenant_id": "shop"}
    ),
    "admin/direct.list_keys": Case(
        nothing, {"items": [{"id": 2, "name": "shop"}, {"id": 1, "last_four": "e_me"}]}
    ),
    "admin/direct.revoke_key": Case(nothing, {"id": 1, "revoked": True}),
    "admin/request.start_bulk_operation": Case(
        a_dead_letter,
        asked(201, {"id": 1, "created": True, "matched": 1, "created_by": "on-call"}),
        {BULK_OPERATIONS: 1},
    ),
    "admin/request.start_bulk_operation_dry_run": Case(
        a_dead_letter, asked(200, {"matched": 1, "subscriptions": 1, "dry_run": True}), {BULK_OPERATIONS: 0}
    ),
    "admin/request.start_backfill": Case(
        a_dead_letter,
        asked(201, {"kind": "backfill", "matched": 0, "filter": {"event_types": ["order.created"]}}),
    ),
    "admin/request.bulk_operations": Case(
        a_bulk_operation, asked(200, {"items": [{"id": 1, "status": "Running"}], "next": None})
    ),
    "admin/request.bulk_operation": Case(
        a_bulk_operation,
        asked(200, {"id": 1, "lanes": [{"subscription_id": 1, "matched": 1, "finished": False}]}),
    ),
    "admin/request.pause_bulk_operation": Case(a_bulk_operation, asked(200, {"status": "Paused"})),
    "admin/request.resume_bulk_operation": Case(a_bulk_operation, asked(200, {"status": "Running"})),
    "admin/request.stop_bulk_operation": Case(a_bulk_operation, asked(200, {"status": "Stopped", "done": 0})),
    "admin/request.pace_bulk_operation": Case(a_bulk_operation, asked(200, {"rate_per_second": 50})),
    "admin/request_refused.missing_bulk_operation": Case(
        nothing, asked(404, {"code": "bulk_operation_not_found"})
    ),
    "admin/request_refused.resume_ended_bulk_operation": Case(
        an_ended_bulk_operation, asked(409, {"code": "bulk_operation_ended"})
    ),
    "admin/eventbridge.tick": Case(a_bulk_operation, {"started": 1, "completed": 1}, {SAGAS: 3}),
    "admin/direct.prune": Case(
        an_old_delivery, {"sagas": 1, "jobs": 1, "dry_run": False, "next": None}, {SAGAS: 0, EVENTS: 1}
    ),
    "admin/direct.prune_dry_run": Case(
        an_old_delivery, {"sagas": 1, "jobs": 1, "dry_run": True, "next": None}, {SAGAS: 1}
    ),
    "admin/direct_refused.prune_too_young": Case(an_old_delivery, refused("invalid_field"), {SAGAS: 1}),
    "admin/direct.audit": Case(a_dead_letter, {"ok": True, "at_rest": False, "unchecked": []}),
    "admin/direct.doctor": Case(nothing, {"server": {"triggers_for": "origin", "is_standby": False}}),
    "admin/direct_refused.unknown_action": Case(nothing, refused("invalid_field")),
    "admin/direct_refused.without_action": Case(nothing, refused("invalid_field")),
    "admin/direct_refused.missing_dead_letter": Case(nothing, refused("dead_letter_not_found")),
    "admin/request.of_one_tenant": Case(a_dead_letter, asked(200, {"items": [], "next": None})),
    "admin/request_refused.missing_route": Case(nothing, asked(404, {"code": "route_not_found"})),
    "admin/direct_refused.wrong_method": Case(nothing, refused("invalid_field")),
    "admin/direct_refused.wrong_type": Case(a_dead_letter, refused("invalid_field")),
    "admin/direct_refused.unknown_field": Case(nothing, refused("invalid_field")),
    "admin/direct_refused.unknown_scope": Case(nothing, refused("invalid_field")),
    "admin/direct_refused.missing_key": Case(nothing, refused("api_key_not_found")),
    "admin/api_gateway.dead_letters": Case(a_dead_letter, http(200, items=[{"id": 1}], next=None)),
    "admin/api_gateway.dead_letter": Case(a_dead_letter, http(200, id=1, payload_snapshot={"n": 1})),
    "admin/api_gateway.requeue_one": Case(a_dead_letter, http(201, dead_letter_id=1, saga_id=3), {SAGAS: 3}),
    "admin/api_gateway.requeue_matching": Case(a_dead_letter, http(200, matched=1, requeued=1), {SAGAS: 3}),
    "admin/api_gateway.cancel_saga": Case(a_dead_letter, http(202, saga_id=2, status="Pending")),
    "admin/api_gateway.resend_saga": Case(a_dead_letter, http(201, saga_id=3), {SAGAS: 3}),
    "admin/api_gateway.retry_saga_now": Case(a_dead_letter, http(202, saga_id=2)),
    "admin/api_gateway_refused.cancel_ended_saga": Case(a_dead_letter, http(409, code="saga_not_waiting")),
    "admin/api_gateway.event": Case(a_dead_letter, http(200, payload={"n": 1}, sagas=[{"id": 1}])),
    "admin/api_gateway.event_routing": Case(
        a_dead_letter, http(200, event_type="order.created", routing={"decisions": [{"matched": True}]})
    ),
    "admin/api_gateway.stats": Case(a_dead_letter, http(200, sagas_waiting=1)),
    "admin/api_gateway.health": Case(nothing, http(200, status="ok")),
    "admin/api_gateway_refused.wrong_key": Case(nothing, http(401, code="unauthorized")),
    "admin/api_gateway_refused.missing_dead_letter": Case(nothing, http(404, code="dead_letter_not_found")),
    "admin/api_gateway_refused.bad_cursor": Case(nothing, http(422, code="invalid_cursor")),
    "admin/api_gateway.start_bulk_operation": Case(
        a_dead_letter, http(201, id=1, created=True, created_by="samples", created_by_key_id=1)
    ),
    "admin/api_gateway.start_backfill": Case(a_dead_letter, http(201, kind="backfill", matched=0)),
    "admin/api_gateway.bulk_operations": Case(a_bulk_operation, http(200, items=[{"id": 1}], next=None)),
    "admin/api_gateway.bulk_operation": Case(a_bulk_operation, http(200, lanes=[{"matched": 1}])),
    "admin/api_gateway.pace_bulk_operation": Case(a_bulk_operation, http(200, rate_per_second=50)),
    "admin/api_gateway.pause_bulk_operation": Case(a_bulk_operation, http(200, status="Paused")),
    "admin/api_gateway.resume_bulk_operation": Case(a_bulk_operation, http(200, status="Running")),
    "admin/api_gateway.stop_bulk_operation": Case(a_bulk_operation, http(200, status="Stopped")),
    "intake/sqs.cloudevent": Case(nothing, ALL_GOOD, {EVENTS: 1, CLOUD_EVENTS: 1}),
    "intake/sqs.cloudevents_batch": Case(nothing, ALL_GOOD, {EVENTS: 2, CLOUD_EVENTS: 2}),
    "intake/sqs.eventbridge": Case(nothing, ALL_GOOD, {EVENTS: 2, FROM_EVENTBRIDGE: 2}),
    "intake/sqs.sns": Case(nothing, ALL_GOOD, {EVENTS: 2, FROM_SNS: 1, FROM_EVENTBRIDGE: 1}),
    "intake/sqs.sns_raw": Case(nothing, ALL_GOOD, {EVENTS: 1, FROM_THE_QUEUE: 1}),
    "intake/sqs.hooksaga": Case(nothing, ALL_GOOD, {EVENTS: 2, FROM_THE_QUEUE: 1}),
    "intake/sqs.hooksaga_batch": Case(nothing, ALL_GOOD, {EVENTS: 2, FROM_THE_QUEUE: 1}),
    "intake/sqs.duplicate": Case(nothing, ALL_GOOD, {EVENTS: 2, FROM_EVENTBRIDGE: 1}),
    "intake/sqs.mixed_with_malformed": Case(nothing, ALL_GOOD, {EVENTS: 3}),
    "intake/sqs.conflict": Case(nothing, ALL_GOOD, {EVENTS: 1}),
    "intake/sqs.empty": Case(nothing, ALL_GOOD, {EVENTS: 0}),
    "ingest/api_gateway.order_created": Case(nothing, http(202, duplicate=False), {EVENTS: 1}),
    "ingest/api_gateway.order_created_big_number": Case(nothing, http(202), {EVENTS: 1}),
    "ingest/api_gateway.order_created_unicode": Case(nothing, http(202), {EVENTS: 1}),
    "ingest/api_gateway.invoice_paid": Case(nothing, http(202), {EVENTS: 1}),
    "ingest/api_gateway.user_updated": Case(nothing, http(202), {EVENTS: 1}),
    "ingest/api_gateway_batch.two_events": Case(
        nothing,
        http(200, items=[{"duplicate": False}, {"error": {"code": "invalid_event_type"}}]),
        {EVENTS: 1},
    ),
    "ingest/api_gateway_cloudevent.order_created": Case(nothing, http(202, duplicate=False), {EVENTS: 1}),
    "ingest/api_gateway_refused.body_not_json": Case(nothing, http(400, code="invalid_json"), {EVENTS: 0}),
    "ingest/api_gateway_refused.body_not_utf8": Case(nothing, http(400, code="body_not_utf8"), {EVENTS: 0}),
    "ingest/api_gateway_refused.body_not_base64": Case(
        nothing, http(400, code="body_not_base64"), {EVENTS: 0}
    ),
    "ingest/api_gateway_refused.unknown_field": Case(nothing, http(422, code="invalid_event"), {EVENTS: 0}),
    "ingest/api_gateway_refused.without_key": Case(nothing, http(401, code="unauthorized"), {EVENTS: 0}),
    "ingest/api_gateway_refused.key_not_ascii": Case(
        nothing, http(422, code="invalid_idempotency_key"), {EVENTS: 0}
    ),
    "ingest/api_gateway_refused.two_idempotency_keys": Case(nothing, http(422), {EVENTS: 0}),
    "ingest/api_gateway_refused.compressed": Case(nothing, http(415, code="body_compressed"), {EVENTS: 0}),
    "console/api_gateway.without_session": Case(nothing, http(303)),
    "subscriptions/api_gateway.create": Case(nothing, http(201, id=1, verified=False), {ACTIVE: 1}),
    "subscriptions/api_gateway.list": Case(a_subscription, http(200, items=[{"id": 1}], next=None)),
    "subscriptions/api_gateway.show": Case(a_subscription, http(200, id=1, event_type="order.created")),
    "subscriptions/api_gateway.change": Case(
        a_subscription, http(200, description="the shop", timeout_seconds=5)
    ),
    "subscriptions/api_gateway.verify": Case(a_subscription, http(200, verified=True)),
    "subscriptions/api_gateway.pause": Case(a_subscription, http(200, id=1, flow={"state": "paused"})),
    "subscriptions/api_gateway.resume": Case(a_subscription, http(200, id=1, flow={"state": "open"})),
    "subscriptions/api_gateway.rotate_secret": Case(a_subscription, http(200)),
    "subscriptions/api_gateway.delete": Case(a_subscription, http(204), {ACTIVE: 0}),
    "subscriptions/api_gateway_refused.callback_without_tls": Case(
        nothing, http(422, code="invalid_callback_url"), {ACTIVE: 0}
    ),
    "subscriptions/api_gateway_refused.callback_to_private_address": Case(
        nothing, http(422, code="invalid_callback_url"), {ACTIVE: 0}
    ),
    "subscriptions/direct.reseal_secrets": Case(
        a_subscription, {"checked": 1, "changed": 0, "unreadable": [], "locked": [], "next": None}
    ),
    "subscriptions/direct.reseal_headers": Case(
        a_subscription_with_clear_headers,
        {"checked": 1, "changed": 1, "unreadable": [], "locked": [], "in_clear": [1], "next": None},
    ),
    "subscriptions/direct_refused.unknown_action": Case(nothing, refused("invalid_field")),
    "subscriptions/api_gateway_refused.missing": Case(nothing, http(404, code="subscription_not_found")),
    "subscriptions/api_gateway_refused.without_scope": Case(nothing, http(403, code="forbidden")),
}


def content_of(answer: Any) -> Any:
    """An answer of the gateway's form, or to a request without one, with its body read."""
    if isinstance(answer, dict) and "body" in answer and "status" in answer:
        return {"status": answer["status"], "body": json.loads(answer["body"])}
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return answer
    return {"statusCode": answer["statusCode"], "content": json.loads(answer["body"] or "{}")}


def holds(found: Any, wanted: Any) -> bool:
    """Whether everything wanted is in what was found; objects may have more fields."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and holds(found[name], one) for name, one in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(holds, found, wanted))
    return bool(found == wanted)
