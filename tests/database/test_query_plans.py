"""Every hot query over a million rows, with real parameters, as its real role: it reads what it needs, no more.

The statement really runs and is rolled back, so the counts hold what its triggers and foreign keys read too. A
prepared statement may get another plan from its sixth run on, so that run is measured as well.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import sql

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.adapters.queries import load_queries
from hooksaga.core.flow import Flow
from hooksaga.stages.event_catalogue import NO_ENTRIES
from tests.database import a_million_rows as rows

pytestmark = [
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
]

RUNS_BEFORE_A_GENERIC_PLAN = 5


@dataclass(frozen=True)
class Hot:
    """One query as it is run. answers: the rows that come back; the other two are the most that it may read."""

    role: Role
    stage: str
    query: str
    params: dict[str, Any]
    answers: int = rows.DUE
    rows: int = 200
    buffers: int = 2_000

    def __str__(self) -> str:
        given = [name for name, value in self.params.items() if value is not None]
        return f"{self.query}({', '.join(given)})"


@dataclass
class Cost:
    """Rows that a statement read from the large tables."""

    answers: int
    buffers: int
    rows: int
    scanned: set[str] = field(default_factory=set[str])


def accepted(first: int, count: int) -> dict[str, Any]:
    """Columns of a batch of events with keys."""
    return {
        "tenant_ids": ["default"] * count,
        "event_types": ["type.1"] * count,
        "sources": [""] * count,
        "external_ids": [f"key-{first + 2 * n}" for n in range(count)],
        "payloads": ['{"n": 1}'] * count,
        "traceparents": [None] * count,
        "ordering_keys": [None] * count,
        "attributes": ["{}"] * count,
        "test_subscription_ids": [None] * count,
        "cloud_events": [None] * count,
        "extracted": ["{}"] * count,
    }


def taken(status: str) -> dict[str, Any]:
    count = rows.DUE
    return {
        "saga_ids": list(rows.FINISHED_SAGAS),
        "attempts_at": [rows.ATTEMPT_AT] * count,
        "statuses": [status] * count,
        "attempt_counts": [1] * count,
        "next_attempts": ["2030-01-01T00:00:00Z"] * count,
        "error_codes": ["http_503"] * count,
        "reasons": [None] * count,
        "subscription_ids": FLOWS["flow_subscription_id"],
        "change_flow": [True] * count,
        **FLOWS,
    }


FLOWS: dict[str, Any] = {
    "flow_subscription_id": [42_001 + n for n in range(rows.DUE)],
    "flow_version": [0] * rows.DUE,
    **{
        f"flow_{name}": [value] * rows.DUE
        for name, value in msgspec.structs.asdict(Flow(failures_in_a_row=1)).items()
    },
}
DUE_IDS = list(rows.DUE_SUBSCRIPTIONS)


def starting(ids: list[int], **changed: Any) -> dict[str, Any]:
    return {
        "subscription_ids": ids,
        "in_flight": [1000] * len(ids),
        "starts": [25] * len(ids),
        "versions": [0] * len(ids),
        "probes": [False] * len(ids),
        "tokens": [None] * len(ids),
        "tokens_at": "2030-01-01T00:00:00Z",
        "slow": [False] * len(ids),
        "max_attempts": [5] * len(ids),
        "has_ordered": [False] * len(ids),
        "cursors": [""] * len(ids),
        "most_keys": 1000,
        "only": None,
        **changed,
    }


def ending(ids: list[int]) -> dict[str, Any]:
    return {
        "subscription_ids": ids,
        "due_before": ["infinity"] * len(ids),
        "through": [2**63 - 1] * len(ids),
        "causes": ["expired"] * len(ids),
        "limit": 12,
        "only": None,
    }


def reported(count: int) -> dict[str, Any]:
    return {
        "worker_id": "w",
        "job_ids": list(rows.LEASED_JOBS[-count:]),
        "claim_counts": [1] * count,
        "statuses": ["Completed"] * count,
        "response_statuses": [200] * count,
        "error_codes": [None] * count,
        "durations": [12] * count,
        "response_bodies": ["ok"] * count,
        "truncated": [False] * count,
        "retry_afters": [None] * count,
        "resolved_ips": ["192.0.2.1"] * count,
        "reconnected": [False] * count,
        "own_header_names": ["authorization x-shop"] * count,
        "sent_formats": [None] * count,
        "response_headers": ["content-type: text/plain"] * count,
    }


def letters(**wanted: Any) -> dict[str, Any]:
    names = ["tenant_id", "subscription_id", "event_type", "error_code", "failed_after", "failed_before"]
    return {**dict.fromkeys([*names, "after_id", "before_id"]), "limit": 50, **wanted}


def counted_letters(**wanted: Any) -> dict[str, Any]:
    params = letters(**wanted)
    del params["limit"]
    return params


def orchestrate(query: str, params: dict[str, Any], **limits: int) -> Hot:
    """params: also those of statements that do more; they are left out."""
    statement = load_queries("orchestrate")[query]
    named = {name: value for name, value in params.items() if f"%({name})s" in statement}
    return Hot(Role.ORCHESTRATOR, "orchestrate", query, named, **limits)


def deliver(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.DELIVERY, "deliver", query, params, **limits)


def flow(role: Role, query: str, *, answers: int, **params: Any) -> Hot:
    return Hot(role, "subscription_flow", query, params, answers=answers, rows=3_000, buffers=6_000)


def watch(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.HEALTH_MONITOR, "watch_endpoints", query, params, **limits)


def tell(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.HEALTH_MONITOR, "operational_events", query, params, **limits)


def recoveries(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.HEALTH_MONITOR, "recovery_events", query, params, **limits)


def breakers(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.HEALTH_MONITOR, "breaker_events", query, params, **limits)


def health(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.SUBSCRIPTIONS, "subscription_health", query, params, answers=1, **limits)


def judged(percent: int | None, reason: str | None) -> dict[str, Any]:
    ids = list(range(31_001, 31_001 + rows.DUE))
    return {
        "subscription_ids": ids,
        "percents": [percent] * rows.DUE,
        "reasons": [reason] * rows.DUE,
        "first_failures": ["2026-01-01T00:00:00Z"] * rows.DUE,
    }


OPERATIONAL_EVENTS = {
    "tenant_ids": ["default"] * rows.DUE,
    "event_types": ["hooksaga.subscription.failing"] * rows.DUE,
    "external_ids": [f"key-{n}" for n in range(rows.DUE)],
    "payloads": ["{}"] * rows.DUE,
}


def inspect(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.ADMIN, "inspect", query, params, **limits)


def explain(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.ADMIN, "explain", query, params, **limits)


def walked(after_id: int = 0) -> dict[str, Any]:
    of_type = {"tenant_id": "default", "event_type": "type.7"}
    return {"event_id": 2_000, **of_type, "after_id": after_id, "limit": 250}


def bulk(query: str, params: dict[str, Any], **limits: int) -> Hot:
    return Hot(Role.ADMIN, "bulk_operations", query, params, **{"answers": 1, **limits})


def step(**changed: Any) -> dict[str, Any]:
    """Sixty sagas: three seconds of twenty."""
    usual = {"passed_by": [], "horizon_seconds": 3, "max_sagas": 500, "max_lanes": 100, "max_open": 100}
    return {**usual, **changed}


def dead_letters(*, answers: int = 50, **wanted: Any) -> Hot:
    return inspect("list_dead_letters", letters(**wanted), answers=answers)


def attempts(query: str, *, answers: int = 50, rows: int = 200, **wanted: Any) -> Hot:
    """A step along the attempt log, from now back unless another position is given."""
    params = {"before_at": "infinity", "before_id": 0, "after": "-infinity", "limit": 50, **wanted}
    return Hot(Role.ADMIN, "attempt_log", query, params, answers=answers, rows=rows)


def merged(query: str, *, ids: list[int], answers: int = 50, rows: int = 300) -> Hot:
    return attempts(query, subscription_ids=ids, answers=answers, rows=rows)


def bulk_list(*, answers: int, buffers: int = 2_000, **wanted: Any) -> Hot:
    params = {"tenant_id": None, "status": None, "before_id": None, "limit": 50, **wanted}
    return bulk("list_bulk_operations", params, answers=answers, buffers=buffers)


def subscriptions(*, answers: int = 50, rows: int = 200, **wanted: Any) -> Hot:
    names = ["tenant_id", "event_type", "before_id"]
    params = {**dict.fromkeys(names), "limit": 50, **wanted}
    return Hot(Role.SUBSCRIPTIONS, "subscriptions", "list_subscriptions", params, answers=answers, rows=rows)


def followed(after_at: str, answers: int = 50) -> Hot:
    params = {"after_at": after_at, "after_id": 0, "limit": 50}
    return Hot(Role.ADMIN, "attempt_log", "scan_forward", params, answers=answers)


def matching_attempts(query: str = "attempts_by_id", *, answers: int = 50, **wanted: Any) -> Hot:
    names = ["tenant_id", "subscription_id", "event_type", "error_code", "class", "status"]
    limits = {name: wanted.pop(name) for name in ("rows", "buffers") if name in wanted}
    params = dict.fromkeys([*names, "finished_after", "finished_before"])
    params = {**params, "ids": list(rows.BUSY_JOBS[-50:]), **wanted}
    return Hot(Role.ADMIN, "attempt_log", query, params, answers=answers, **limits)


def subscription(query: str, subscription_id: int, rows: int = 200, **more: Any) -> Hot:
    buffers = more.pop("buffers", 4_000)
    params = {"id": subscription_id, **more}
    return Hot(Role.ADMIN, "attempt_log", query, params, answers=1, rows=rows, buffers=buffers)


LONG_AGO = str(datetime.now(UTC) - timedelta(days=20))


def prune(
    older_than: str,
    kind: str = "deliveries",
    *,
    after: str | None = None,
    dry_run: bool = False,
    **limits: int,
) -> Hot:
    """One batch of 500 rows. Of each it reads the job, the saga and the event, locks both rows, and deletes them."""
    params: dict[str, Any] = {
        "older_than": older_than,
        "limit": 500,
        "after_at": after,
        "after_id": 0,
        "dry_run": dry_run,
    }
    return Hot(Role.RETENTION, "prune", f"prune_{kind}", params, answers=1, **limits)


CLAIM = {"worker_id": "w", "lease_seconds": 60, "alone_from": 2, "one_alone": True}
UNCOMPARED = ("traceparents", "test_subscription_ids", "cloud_events", "extracted")
NEW_KEYS, KNOWN_KEYS = accepted(10_000_000, 100), accepted(500_000, 100)

COMPARED = {"tenant_id": "default", "event_types": ["type.77"], "filter_path": "exists($.a)", "last": 100}

HOT = [
    Hot(
        Role.ADMIN,
        "match_events",
        "recent_events",
        {**COMPARED, "scanned": 1000},
        answers=100,
        rows=2_500,
        buffers=8_000,
    ),
    Hot(
        Role.INGEST,
        "accept_events",
        "insert_events",
        {**NEW_KEYS, "in_order": False, "revision": NO_ENTRIES},
        answers=100,
        buffers=5_000,
    ),
    Hot(
        Role.INGEST,
        "accept_events",
        "insert_events",
        {**KNOWN_KEYS, "in_order": True, "revision": NO_ENTRIES},
        answers=0,
        buffers=5_000,
    ),
    Hot(Role.INGEST, "accept_events", "subscription_to_test", {"id": 1, "tenant_id": None}, answers=1),
    Hot(
        Role.INGEST,
        "accept_events",
        "find_events_by_key",
        {
            **{name: some for name, some in KNOWN_KEYS.items() if name not in UNCOMPARED},
            "positions": [*range(1, 101)],
        },
        answers=100,
    ),
    # Twenty events with fifty subscriptions each: a thousand sagas, each checked against both its parents.
    Hot(
        Role.ROUTER,
        "route_events",
        "route_outbox",
        {
            "event_ids": None,
            "max_events": 20,
            "max_sagas": 2_000,
            "wide_from": 500,
            "part_size": 500,
            "go_on": True,
        },
        answers=20,
        rows=6_000,
        buffers=60_000,
    ),
    Hot(
        Role.ROUTER,
        "route_events",
        "route_outbox",
        {
            "event_ids": [700_000, 800_000],
            "max_events": 500,
            "max_sagas": 2_000,
            "wide_from": 500,
            "part_size": 500,
            "go_on": True,
        },
        answers=2,
        rows=600,
        buffers=6_000,
    ),
    Hot(
        Role.ROUTER,
        "route_events",
        "waiting_events",
        {"event_ids": None, "max_events": 500, "go_on": True},
        answers=500,
        rows=1_500,
        buffers=6_000,
    ),
    # The crowd: a page of its million sagas in progress, and the page after it.
    orchestrate(
        "unapplied_results",
        {"limit": 500, "after_subscription": 0, "after_saga": 0},
        answers=1,
        rows=2_000,
        buffers=6_000,
    ),
    orchestrate(
        "unapplied_results", {"limit": 500, "after_subscription": 42_000, "after_saga": 0}, answers=1
    ),
    orchestrate("finished_jobs", {"job_ids": list(rows.FINISHED_JOBS)}),
    orchestrate("unlocked_results", {"job_ids": list(rows.FINISHED_JOBS)}),
    orchestrate("flow_to_start", {"subscription_ids": DUE_IDS, "most_woken": 0}, answers=20),
    orchestrate("flow_to_start", {"subscription_ids": [], "most_woken": 500}, answers=20),
    orchestrate("lock_flow", {"subscription_ids": DUE_IDS, "versions": [0] * len(DUE_IDS)}, answers=20),
    orchestrate("start_due", starting(DUE_IDS), answers=40, rows=1_000, buffers=6_000),
    # The crowd: a thousand in progress are counted, and no more.
    orchestrate("start_due", starting([rows.CROWD]), answers=1, rows=1_100),
    orchestrate("start_due_with_rules", starting(DUE_IDS), answers=40, rows=1_000, buffers=6_000),
    orchestrate(
        "start_due_with_rules", starting(DUE_IDS, probes=[True] * 20), answers=40, rows=1_000, buffers=6_000
    ),
    orchestrate(
        "start_due_with_rules", starting(DUE_IDS, tokens=[25.0] * 20), answers=40, rows=1_000, buffers=6_000
    ),
    orchestrate("due_sagas", {"subscription_id": DUE_IDS[5], "limit": 500}, answers=1),
    orchestrate("end_waiting", ending(DUE_IDS), answers=240, rows=1_000, buffers=4_000),
    orchestrate("write_flow", FLOWS),
    orchestrate("waiting_subscriptions", {"after": 0, "limit": 500}, answers=500, rows=1_500, buffers=5_000),
    orchestrate("next_wake", {}, answers=1),
    orchestrate("lock_sagas_by_id", {"saga_ids": list(rows.DUE_RETRIES), "tenant_id": None}),
    orchestrate("inactive_subscriptions", {"ids": list(range(1, 51))}, answers=50),
    orchestrate("dead_letter_of_saga", {"saga_id": 6_500_000}, answers=1),
    orchestrate("apply_results", taken("PendingRetry")),
    orchestrate("apply_results_and_flow", taken("PendingRetry")),
    orchestrate("apply_results_and_flow", taken("DeadLettered")),
    orchestrate(
        "dead_letter_waiting",
        {
            "saga_ids": list(rows.DUE_RETRIES),
            "error_codes": ["canceled"] * rows.DUE,
            "reasons": [None] * rows.DUE,
        },
    ),
    orchestrate(
        "find_undispatched_jobs", {"grace_seconds": 60, "redispatch_seconds": 900, "limit": 500}, answers=20
    ),
    orchestrate("mark_dispatched", {"job_ids": list(rows.CROWD_JOBS[500_000:500_010])}),
    deliver("claim_waiting_jobs", {"slow": False, "limit": 50, **CLAIM}, answers=50, rows=500, buffers=4_000),
    deliver("claim_waiting_jobs", {"slow": True, "limit": 50, **CLAIM}, answers=0),
    deliver(
        "claim_jobs",
        {
            "job_ids": list(rows.CROWD_JOBS[500_000:500_050]),
            **CLAIM,
        },
        answers=50,
        rows=500,
        buffers=4_000,
    ),
    deliver("record_results", reported(50), answers=50, rows=500),
    deliver(
        "hand_back_jobs",
        {"job_ids": list(rows.LEASED_JOBS[-50:]), "claim_counts": [1] * 50, "worker_id": "w"},
        answers=50,
        rows=500,
        buffers=2_500,
    ),
    deliver(
        "hand_back_lost_claims",
        {"worker_id": "w", "slow": False, "in_hand": list(rows.LEASED_JOBS[:-50])},
        answers=50,
        rows=2 * len(rows.LEASED_JOBS),
        buffers=20_000,
    ),
    Hot(
        Role.LEASE_CLEANER,
        "clean_leases",
        "reset_expired_leases",
        {"max_lost_leases": 5, "in_hand": [], "job_ids": None, "limit": 500},
    ),
    Hot(Role.LEASE_CLEANER, "clean_leases", "expired_leases", {"in_hand": [], "limit": 500}),
    # What is leased, and no more.
    Hot(
        Role.LEASE_CLEANER,
        "clean_leases",
        "lease_holders",
        {"but_for": "w1", "limit": 10_000},
        answers=1,
        rows=1_200,
    ),
    Hot(
        Role.LEASE_CLEANER,
        "clean_leases",
        "give_back_leases",
        {"max_lost_leases": 5, "worker_ids": ["gone"], "limit": 500},
        answers=0,
        rows=1_200,
    ),
    # A few hundred attempts, each read twice, and the rows of their endpoints.
    watch(
        "count_attempts",
        {"settle_seconds": 60, "limit": 5_000, "uncounted": ["lease_expired"]},
        answers=1,
        rows=2_000,
    ),
    watch("lock_gone", {"lookback_seconds": 3600, "limit": 500}),
    watch(
        "lock_failing",
        {
            "warn_seconds": 216_000.0,
            "warn_again_seconds": 388_800.0,
            "disable_seconds": 432_000.0,
            "fresh_seconds": 86_400.0,
            "min_failures": 10,
            "limit": 500,
        },
    ),
    watch("note_verdicts", judged(None, "failing")),
    watch("note_verdicts", judged(50, None)),
    recoveries("lock_recovered", {"limit": 500}, answers=10, rows=3_000),
    recoveries("note_recovered", {"subscription_ids": list(range(31_001, 31_001 + rows.DUE))}),
    # a thousand open ones, with what was told of them, and twenty that have changed
    breakers(
        "lock_breaker_changes",
        {
            "limit": 500,
            "uncounted": ["lease_expired", "http_400"],
            "opened_type": "hooksaga.subscription.breaker_opened",
            "closed_type": "hooksaga.subscription.breaker_closed",
        },
        answers=20,
        rows=3_000,
    ),
    breakers(
        "note_told", {"subscription_ids": [*range(33_001, 33_011)], "told_at": ["2026-01-01"] * rows.DUE}
    ),
    tell("take_dead_letters", {"limit": 10}),
    tell("forget_dead_letters", {"dead_letter_ids": list(range(900_001, 900_011))}),
    tell("insert_operational_events", OPERATIONAL_EVENTS),
    health("show_health", {"id": 31_001, "tenant_id": None}),
    # 33 events of its type since, and as many from before as it may look at
    health(
        "read_missed", {"id": rows.DISABLED, "tenant_id": "default", "most": 100}, rows=250, buffers=4_000
    ),
    inspect("sagas_of_event", {"event_id": 2_000, "limit": 1_000}, answers=3),
    inspect(
        "attempts_of_sagas",
        {"saga_ids": list(rows.FINISHED_SAGAS), "limit": 1_000, "most_characters": 1_000},
    ),
    Hot(Role.ADMIN, "attempt_log", "request_of_attempt", {"id": rows.FINISHED_JOBS[0]}, answers=1),
    inspect("show_dead_letter", {"id": 500_000, "tenant_id": None}, answers=1),
    dead_letters(),
    inspect("count_dead_letters", counted_letters(), answers=1, rows=45_000, buffers=90_000),
    matching_attempts(
        "count_by_id", ids=list(rows.BUSY_JOBS[-10_000:]), answers=1, rows=31_000, buffers=110_000
    ),
    dead_letters(before_id=500_000),
    dead_letters(tenant_id="default"),
    dead_letters(tenant_id="nobody", answers=0),
    dead_letters(subscription_id=77, answers=20),
    dead_letters(event_type="type.7"),
    dead_letters(error_code="http_503"),
    dead_letters(error_code="tls_error", answers=10),
    dead_letters(error_code="none such", answers=0),
    dead_letters(subscription_id=77, error_code="http_503", answers=20),
    dead_letters(subscription_id=77, tenant_id="default", answers=20),
    dead_letters(failed_after="yesterday"),
    dead_letters(failed_after="tomorrow", answers=0),
    dead_letters(failed_before="2020-01-01", answers=0),
    bulk("step_bulk_operation", step(), rows=1_500, buffers=20_000),
    bulk("step_bulk_operation", step(passed_by=[1]), rows=1_500, buffers=10_000),
    bulk("step_bulk_operation", step(passed_by=[1, 2]), answers=0),
    # of one operation a million open sagas are counted, on their index
    bulk_list(answers=2, buffers=8_000),
    bulk_list(tenant_id="default", answers=1),
    bulk_list(tenant_id="nobody", answers=0),
    subscriptions(),
    subscriptions(tenant_id="default"),
    subscriptions(tenant_id="default", before_id=25_000),
    subscriptions(tenant_id="nobody", answers=0),
    bulk("backfill_facts", {"id": 77, "tenant_id": "default"}),
    # Of fifty thousand subscriptions a page of the others looks at 250, each once more for sagas and history.
    explain("walk_started", {"event_id": 2_000, "after_id": 0, "limit": 250}, answers=3),
    explain("walk_started", {"event_id": 900_000_000, "after_id": 0, "limit": 250}, answers=0),
    explain("walk_of_type", walked(), answers=50),
    explain("walk_of_type", walked(40_000), answers=10),
    explain("walk_others", walked(), answers=250, rows=1_000, buffers=4_000),
    explain("walk_others", walked(49_900), answers=100, rows=400),
    explain(
        "decisions_of_subscriptions",
        {"event_id": 500_000, "subscription_ids": list(range(1, 251))},
        answers=250,
        rows=2_000,
        buffers=6_000,
    ),
    Hot(
        Role.ADMIN,
        "requeue",
        "ids_of_time",
        {"failed_after": LONG_AGO, "failed_before": LONG_AGO},
        answers=1,
        rows=2_200,
    ),
    Hot(
        Role.ADMIN, "attempt_log", "is_of_tenant", {"subscription_id": 77, "tenant_id": "default"}, answers=1
    ),
    attempts("scan_all"),
    attempts("scan_all", before_at=LONG_AGO),
    attempts("scan_all", after="tomorrow", answers=0),
    attempts("scan_subscription", subscription_id=rows.BUSY),
    attempts("scan_subscription", subscription_id=rows.BUSY, before_at=LONG_AGO, answers=2),
    attempts("scan_subscription", subscription_id=77, answers=8),
    attempts("scan_failed_of_subscription", subscription_id=rows.BUSY),
    attempts("scan_failed_of_subscription", subscription_id=77, answers=0),
    Hot(
        Role.ADMIN,
        "attempt_log",
        "subscriptions_of_tenant",
        {"tenant_id": "default", "limit": 101},
        answers=101,
    ),
    merged("scan_subscriptions", ids=[77, 78, rows.BUSY]),
    merged("scan_subscriptions", ids=list(range(1, 101)), rows=2_000),
    merged("scan_failed_of_subscriptions", ids=[77, 78, rows.BUSY]),
    merged("scan_failed_of_subscriptions", ids=list(range(1, 101)), answers=0),
    attempts("scan_error_code", error_code="http_500"),
    attempts("scan_error_code", error_code="tls_error", answers=10),
    attempts("scan_error_code", error_code="none such", answers=0),
    attempts("scan_failed_classes", classes=[0], answers=20),
    attempts("scan_failed_classes", classes=[3], answers=0),
    attempts("scan_failed_classes", classes=list(range(10))),
    followed("yesterday"),
    followed("tomorrow", answers=0),
    matching_attempts(),
    matching_attempts(tenant_id="nobody", answers=0),
    matching_attempts(subscription_id=rows.BUSY, event_type="none such", answers=0),
    Hot(Role.ADMIN, "attempt_log", "read_horizon", {}, answers=1),
    Hot(Role.ADMIN, "attempt_log", "show_attempt", {"id": rows.BUSY_JOBS[0], "tenant_id": None}, answers=1),
    subscription("subscription_exists", 77, tenant_id=None),
    subscription("subscription_window", rows.BUSY, window_hours=24, sample=10_000, rows=10_100),
    subscription("subscription_window", 77, window_hours=1, sample=10_000),
    subscription("subscription_last_error", rows.BUSY),
    # Of ten thousand in progress each has its job looked up.
    subscription("subscription_backlog", rows.CROWD, most=10_000, rows=20_500, buffers=45_000),
    subscription("subscription_backlog", 77, most=10_000, rows=1_500),
    prune("29 days 12 hours", rows=6_000, buffers=60_000),
    prune("29 days 12 hours", dry_run=True, rows=3_500, buffers=20_000),
    prune("29 days 12 hours", after="2999-01-01T00:00:00Z"),
    prune("400 days"),
    *(
        prune("29 days 12 hours", kind, rows=8_000, buffers=80_000)
        for kind in ("dead_letters", "payloads", "events")
    ),
    Hot(
        Role.RETENTION,
        "prune",
        "plan_retention",
        {"deliveries": "1 day", "dead_letters": None, "payloads": None, "events": "1 day"},
        answers=1,
    ),
    Hot(Role.RETENTION, "prune", "retention_lag", {}, answers=0),
]


def observe(query: str, params: dict[str, Any] | None = None, **limits: int) -> Hot:
    return Hot(Role.OBSERVER, "observe", query, params or {}, **limits)


EACH_WAITING = 350_000
"""One look at each of 50,000 subscriptions with something that waits; of a few rows, and on pages in memory."""

# What is counted is read, but from an index that holds nothing else, or as the leases that there are.
HOT += [
    Hot(Role.ROUTER, "route_events", "outbox_age", {}, answers=1),
    orchestrate("oldest_due", {}, answers=1, buffers=EACH_WAITING),
    observe("outbox_age", answers=1),
    observe("oldest_due_saga", answers=1, buffers=EACH_WAITING),
    Hot(Role.RETENTION, "observe", "retention_lag", {}, answers=0),  # no age is set
    # Those that are due, on whose page the tests before have left their traces.
    observe("retry_debt_by_subscription", {"limit": 50}, answers=50, rows=50, buffers=10_000),
    observe("in_flight_by_subscription", {"limit": 50}, answers=50, rows=1_000, buffers=5_000),
    # Of a thousand open breakers, and few others, the flow, the settings, and whether something waits.
    observe("subscriptions_by_flow_state", answers=1, rows=6_000, buffers=15_000),
    Hot(
        Role.HEALTH_MONITOR,
        "observe",
        "subscriptions_by_flow_state",
        {},
        answers=1,
        rows=6_000,
        buffers=15_000,
    ),
    observe("gauges", answers=1, rows=7_200, buffers=EACH_WAITING + 25_000),
]


def console(query: str, role: Role = Role.ADMIN, **limits: Any) -> Hot:
    params = limits.pop("params", {})
    return Hot(role, "console", query, params, **limits)


FROM_NOW = {"before_at": "infinity", "before_id": 0, "after": "-infinity", "limit": 50}

SLICES = [datetime.now(UTC) - timedelta(days=7) + timedelta(minutes=36 * place) for place in range(281)]
A_WEEK: dict[str, Any] = {"begins": SLICES[:-1], "ends": SLICES[1:]}
ENDPOINTS = [*range(1, 15), rows.CROWD, 45_000]
ALL_OF_IT = {"after": SLICES[0] - timedelta(days=365), "before": SLICES[-1], "most": 10_000}
EVERY_SUBSCRIPTION = {"first": 0, "last": 2**63 - 1}
OPEN_PAGE = {**EVERY_SUBSCRIPTION, "most": 10_000, "limit": 50}

# The console's pages: each reads a page or a sample, however much there is.
HOT += [
    console("moment", answers=1, buffers=EACH_WAITING),
    console("attempts_by_slice", params={**A_WEEK, "sample": 60}, answers=280, rows=20_000, buffers=30_000),
    console(
        "latencies",
        params={**A_WEEK, "parts": [place // 5 for place in range(280)], "sample": 6},
        answers=3,
        rows=12_000,
        buffers=40_000,
    ),
    console(
        "attempts_of_endpoints",
        params={"ids": ENDPOINTS, **A_WEEK, "sample": 50},
        answers=4_480,
        rows=60_000,
        buffers=30_000,
    ),
    console("count_of_endpoints", params={"ids": ENDPOINTS, **ALL_OF_IT}, answers=16, rows=60_000),
    console("error_codes", params={**ALL_OF_IT, "limit": 50}, answers=3, rows=25_000),
    console("count_open_work", params={**EVERY_SUBSCRIPTION, "most": 10_000}, answers=1, rows=60_000),
    console("unrouted_events", params=OPEN_PAGE, answers=50),
    console(
        "count_due",
        params={**EVERY_SUBSCRIPTION, "most": 10_000},
        answers=1,
        rows=60_000,
        buffers=2 * EACH_WAITING,
    ),
    console("due_sagas", params=OPEN_PAGE, answers=20, rows=60_000, buffers=2 * EACH_WAITING),
    console("retrying_sagas", params=OPEN_PAGE, answers=50, rows=12_000),
    console("due_sagas", params={**OPEN_PAGE, "first": rows.CROWD, "last": rows.CROWD}, answers=0),
    console("leased_sagas", params=OPEN_PAGE, answers=50),
    console(
        "failing_endpoints", Role.SUBSCRIPTIONS, params={"limit": 8}, answers=8, rows=60_000, buffers=8_000
    ),
    console("disabled_endpoints", Role.SUBSCRIPTIONS, params={"limit": 8}, answers=1, rows=50),
    console("health_of_subscriptions", Role.SUBSCRIPTIONS, params={"ids": list(range(1, 51))}, answers=50),
    # a page of a list, with 20 waiting deliveries each, and a thousand of the crowded one's million in flight
    flow(Role.SUBSCRIPTIONS, "flow_of_subscriptions", ids=list(range(1, 51)), most=100, answers=50),
    flow(Role.SUBSCRIPTIONS, "flow_of_subscriptions", ids=[rows.CROWD], most=10_000, answers=1),
    flow(Role.ADMIN, "flow_of_sagas", saga_ids=list(rows.WAITING_SAGAS[:250]), answers=250),
    flow(Role.SUBSCRIPTIONS, "pause", id=77, tenant_id=None, answers=1),
    flow(Role.SUBSCRIPTIONS, "resume", id=77, tenant_id=None, discard=True, answers=0),
    console("create_sign_in", params={"token_hash": b"x", "key_hash": b"y", "valid_seconds": 60}, answers=1),
    console("use_sign_in", params={"token_hash": b"x"}, answers=1),
    console(
        "end_sessions",
        params={"hashes": [b"x" * 32], "valid_until": "2026-01-01", "callers_now": "2026-01-01"},
        answers=1,
    ),
    console("session_has_ended", params={"hash": b"x"}, answers=1),
]


def find(query: str, *, answers: int = 50, rows: int = 200, buffers: int = 2_000, **wanted: Any) -> Hot:
    params = {**FROM_NOW, "within": "infinity", **wanted}
    return Hot(Role.ADMIN, "find_events", query, params, answers=answers, rows=rows, buffers=buffers)


def dead(*, answers: int = 50, **wanted: Any) -> Hot:
    names = ["tenant_id", "event_type", "before_id", "after_id"]
    params = {**dict.fromkeys(names), "limit": 50, **wanted}
    return Hot(Role.ADMIN, "find_events", "scan_dead", params, answers=answers, rows=400)


def named_events(*, answers: int = 50, **wanted: Any) -> Hot:
    names = [
        "tenant_id",
        "event_type",
        "idempotency_key",
        "status",
        "accepted_after",
        "accepted_before",
        "attribute",
    ]
    params = {**dict.fromkeys(names), "values": [], "ids": list(range(500_000, 500_050)), **wanted}
    return Hot(Role.ADMIN, "find_events", "events_by_id", params, answers=answers, rows=1_000, buffers=4_000)


def with_attribute(name: str | None, value: str, *, answers: int, rows: int = 100, buffers: int = 500) -> Hot:
    params = {"attribute": name, "values": [value], "most": 5_000}
    return Hot(
        Role.ADMIN,
        "find_events",
        "events_with_attribute",
        params,
        answers=answers,
        rows=rows,
        buffers=buffers,
    )


def search(query: str, *, answers: int, rows: int, buffers: int, **params: Any) -> Hot:
    return Hot(Role.ADMIN, "search", query, params, answers=answers, rows=rows, buffers=buffers)


ANY_ID = {"first": "00000000-0000-0000-0000-000000000000", "last": "ffffffff-ffff-ffff-ffff-ffffffffffff"}
OPEN_WORK = 15_000
"""Rows of three kinds, of which five thousand each are counted."""

HOT += [
    find("scan_events"),
    find("scan_events", before_at=LONG_AGO),
    find("scan_events", within="24 hours"),
    find("scan_events_of_type", event_type="type.7"),
    find("scan_events_of_type", event_type="none such", answers=0),
    find("scan_events_of_tenant", tenant_id="default"),
    find("scan_events_of_tenant", tenant_id="default", before_at=LONG_AGO),
    find("scan_events_of_tenant", tenant_id="nobody", answers=0),
    find("scan_key", idempotency_key="key-500000", tenant_id=None, answers=1),
    find("scan_key", idempotency_key="key-500000", tenant_id="default", answers=1),
    find("scan_key", idempotency_key="none such", tenant_id=None, answers=0),
    Hot(
        Role.ADMIN,
        "find_events",
        "count_open_work",
        {"most": 5_000},
        answers=1,
        rows=OPEN_WORK,
        buffers=10_000,
    ),
    Hot(
        Role.ADMIN,
        "find_events",
        "scan_open_work",
        {**FROM_NOW, "most": 5_000},
        answers=50,
        rows=2 * OPEN_WORK,
        buffers=80_000,
    ),
    dead(),
    dead(before_id=500_000),
    dead(tenant_id="default"),
    dead(tenant_id="nobody", answers=0),
    dead(event_type="type.7"),
    dead(tenant_id="default", event_type="type.7"),
    dead(after_id=999_990, answers=10),
    named_events(),
    named_events(tenant_id="default", event_type="type.7", answers=1),
    named_events(status="waiting"),
    named_events(status="dead"),
    named_events(status="delivered", answers=0),
    named_events(status="none", answers=0),
    named_events(attribute="region", values=['"eu"']),
    with_attribute("order_id", '"ORD-500000"', answers=1),
    with_attribute(None, '"ORD-500000"', answers=1),
    with_attribute("order_id", '"none such"', answers=0),
    with_attribute(None, '"none such"', answers=0),
    # a value of all events: its list in the index is read, and of the table as many rows as are wanted
    with_attribute("region", '"eu"', answers=5_000, rows=6_000, buffers=10_000),
    with_attribute(None, '"eu"', answers=5_000, rows=6_000, buffers=10_000),
    Hot(
        Role.ADMIN,
        "find_events",
        "scan_chosen",
        {**FROM_NOW, "chosen": list(range(500_000, 505_000)), "tenant_id": "default"},
        answers=50,
        rows=5_100,
        buffers=22_000,
    ),
    # A hundred thousand ids are compared on the index, and the pages of the table whose visibility is not known.
    search(
        "events_by_id_parts",
        **ANY_ID,
        end="00000000000",
        most=100_000,
        tenant_id=None,
        limit=50,
        answers=0,
        rows=100_100,
        buffers=110_000,
    ),
    search(
        "events_of_tenant_by_end",
        tenant_id="default",
        end="00000000000",
        most=20_000,
        limit=50,
        answers=0,
        rows=20_100,
        buffers=25_000,
    ),
    search("things_by_number", number=rows.BUSY_JOBS[0], tenant_id=None, answers=2, rows=40, buffers=100),
]

LAST_HOUR = observe("deliveries_per_minute", rows=5_000)
"""554 attempts of a month, 4,000 of the busy subscription."""

HOT_STAGES = (
    "accept_events",
    "route_events",
    "orchestrate",
    "deliver",
    "clean_leases",
    "explain",
    "attempt_log",
    "observe",
    "prune",
    "watch_endpoints",
    "operational_events",
    "breaker_events",
    "console",
    "subscription_flow",
    "find_events",
    "search",
)


@pytest.fixture(scope="module")
def plans(module_database: str) -> DatabaseAddress:
    """The database with a million rows in each table, for all tests of this file."""
    with psycopg.connect(module_database, autocommit=True) as connection:
        rows.fill(connection)
    return DatabaseAddress(module_database)


def measure(connection: psycopg.Connection, statement: sql.Composed, params: Any = None) -> Cost:
    """Run the statement in a transaction that is rolled back."""
    with connection.transaction(force_rollback=True):
        answer = connection.execute(statement, params).fetchone()
        assert answer is not None
        read = connection.execute(
            "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint,"
            " array_agg(relname::text) FILTER (WHERE seq_scan > 0)"
            " FROM pg_stat_xact_user_tables WHERE relname = ANY (%s)",
            [list(rows.BIG_TABLES)],
        ).fetchone()
    assert read is not None
    plan = answer[0][0]["Plan"]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return Cost(int(plan["Actual Rows"]), buffers, read[0], set(read[1] or []))


EXPLAIN = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ")


def measure_once(connection: psycopg.Connection, hot: Hot) -> Cost:
    query = sql.SQL(load_queries(hot.stage)[hot.query])
    return measure(connection, EXPLAIN + query, hot.params)


def measure_prepared(connection: psycopg.Connection, hot: Hot) -> Cost:
    """The cost of the run after which the server may prefer a plan that fits all parameters."""
    text, names = load_queries(hot.stage)[hot.query], list(hot.params)
    numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", text).replace("%%", "%")
    connection.execute(b"PREPARE hot AS " + numbered.encode())
    values = sql.SQL(", ").join(sql.Literal(value) for value in hot.params.values())
    execute = sql.SQL("EXECUTE hot({})").format(values) if names else sql.SQL("EXECUTE hot").format()
    for _ in range(RUNS_BEFORE_A_GENERIC_PLAN):
        connection.execute(sql.SQL("EXPLAIN ") + execute)
    return measure(connection, EXPLAIN + execute)


@pytest.mark.parametrize("how", [measure_once, measure_prepared], ids=["once", "prepared"])
@pytest.mark.parametrize("hot", HOT, ids=str)
def test_a_hot_query_reads_what_it_needs(plans: DatabaseAddress, hot: Hot, how: Any) -> None:
    with psycopg.connect(role_conninfo(plans, hot.role), autocommit=True) as connection:
        cost: Cost = how(connection, hot)
    assert cost.scanned == set()
    assert cost.answers == hot.answers
    assert cost.rows <= hot.rows
    assert cost.buffers <= hot.buffers


def test_an_event_is_found_by_its_public_id(plans: DatabaseAddress) -> None:
    with psycopg.connect(role_conninfo(plans, Role.ADMIN), autocommit=True) as connection:
        found = connection.execute("SELECT webhook_id FROM events WHERE id = 500000").fetchone()
        assert found is not None
        show = inspect("show_event", {"webhook_id": found[0], "tenant_id": "default"}, answers=1)
        cost = measure_once(connection, show)
    assert (cost.scanned, cost.answers) == (set(), 1)
    assert cost.rows <= 2  # the look-up of its id was one


def test_an_events_routing_is_found_by_its_public_id(plans: DatabaseAddress) -> None:
    with psycopg.connect(role_conninfo(plans, Role.ADMIN), autocommit=True) as connection:
        found = connection.execute("SELECT webhook_id FROM events WHERE id = 500000").fetchone()
        assert found is not None
        show = explain("show_routing", {"webhook_id": found[0], "tenant_id": "default"}, answers=1)
        cost = measure_once(connection, show)
    assert (cost.scanned, cost.answers) == (set(), 1)
    assert cost.rows <= 20  # the planner looks at the ends of the three indexes


def test_the_last_hour_is_read_and_no_more(plans: DatabaseAddress) -> None:
    """An hour that does not begin on the minute has a part of one more; the last ones passed after the last row."""
    with psycopg.connect(role_conninfo(plans, Role.OBSERVER), autocommit=True) as connection:
        cost = measure_once(connection, LAST_HOUR)
    assert cost.scanned == set()
    assert 0 < cost.answers <= 61
    assert cost.rows <= LAST_HOUR.rows
    assert cost.buffers <= LAST_HOUR.buffers


def test_the_backlog_is_counted_on_indexes(plans: DatabaseAddress) -> None:
    """Every row of the outbox is open work, and of the sagas every second one, so that these may be read as tables."""
    with psycopg.connect(role_conninfo(plans, Role.ADMIN), autocommit=True) as connection:
        cost = measure_once(connection, inspect("stats", {}))
    assert cost.scanned <= {"routing_outbox", "webhook_delivery_sagas"}
    assert cost.buffers <= EACH_WAITING + 150_000


def test_every_hot_query_is_measured() -> None:
    measured = {(hot.stage, hot.query) for hot in [*HOT, LAST_HOUR]} | {
        ("explain", "show_routing"),
        ("find_events", "event_ids"),
    }
    assert measured >= {(stage, query) for stage in HOT_STAGES for query in load_queries(stage)}
