"""The sentences of `hooksaga explain`, for everything that an answer can hold."""

from typing import Any

import pytest

from hooksaga.cli.explanation import explanation

EVENT_ID = "evt_" + "0" * 32
ELIGIBLE = {
    "event_types": ["order.paid"],
    "active": True,
    "verified": True,
    "eligible_since": "2026-01-01T00:00:00.000000Z",
    "deleted_at": None,
}
SAGA = {
    "id": 3,
    "status": "Completed",
    "started_by": "routing",
    "created_at": "2026-01-02T10:00:01.000000Z",
    "attempt_count": 2,
    "attempt_limit": 5,
    "next_attempt_at": None,
    "waits_for": None,
    "waits_for_saga_id": None,
    "final_error_code": None,
    "dead_letter_id": None,
    "dead_letter_reason": None,
}
ROUTED = "2026-01-02 10:00:01Z"
UNRECORDED = "routed before decisions were recorded, so only subscriptions with a delivery are known"
BACKFILL = "hooksaga subscriptions backfill 9 --since 2026-01-02T10:00:00.123456Z"


def decision(**fields: Any) -> dict[str, Any]:
    usual = {
        "subscription_id": 9,
        "subscription_created_at": "2026-01-01T00:00:00.000000Z",
        "callback_host": "receiver.example",
        "matched": False,
        "matched_by": [],
        "reason": None,
        "then": ELIGIBLE,
        "now": None,
        "saga": None,
    }
    return {**usual, **fields}


def event(*decisions: dict[str, Any], **routing: Any) -> dict[str, Any]:
    usual = {
        "state": "routed",
        "waiting_since": None,
        "routed_at": "2026-01-02T10:00:01.000000Z",
        "sagas_started": 1,
        "decisions": list(decisions),
        "next": None,
    }
    return {
        "id": EVENT_ID,
        "event_type": "order.paid",
        "tenant_id": "default",
        "created_at": "2026-01-02T10:00:00.123456Z",
        "routing": {**usual, **routing},
    }


def lines(shown: dict[str, Any], **options: bool) -> list[str]:
    return [line.plain.strip() for line in explanation(shown, **options)]


def told(one: dict[str, Any]) -> list[str]:
    """Return the sentence about one subscription, and the command after it."""
    _, _, first, *rest = lines(event(one), every=True)
    who, sentence = first.split("): ", 1)
    took = ", ".join(one["matched_by"] or (one["then"] or one["now"])["event_types"])
    assert who == f"subscription 9 ({took} → receiver.example"
    return [sentence, *rest]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "delivered on attempt 2 of 5"),
        ({"attempt_count": 7}, "delivered on attempt 7"),
        ({"status": "InProgress"}, "attempt 3 of 5 is in progress"),
        (
            {"status": "Pending", "attempt_count": 0, "next_attempt_at": "2026-01-02T10:00:02.000000Z"},
            "waiting for its first attempt since 2026-01-02 10:00:02Z",
        ),
        (
            {
                "status": "PendingRetry",
                "final_error_code": "http_503",
                "next_attempt_at": "2026-01-02T10:05:00.000000Z",
            },
            "attempt 2 of 5 failed with http_503, the next attempt is due 2026-01-02 10:05:00Z",
        ),
        ({"started_by": "requeue"}, "requeued at 2026-01-02 10:00:01Z: delivered on attempt 2 of 5"),
        ({"started_by": None}, "delivered on attempt 2 of 5"),
    ],
)
def test_a_match_says_where_it_stands(changes: dict[str, Any], sentence: str) -> None:
    assert told(decision(matched=True, saga={**SAGA, **changes})) == [sentence]


FILTERED = {**ELIGIBLE, "filter": {"total": [{"numeric": [">", 100]}]}}


@pytest.mark.parametrize(
    ("value", "has"), [(19.99, "19.99"), ("5", '"5"'), (None, "none"), (True, "true")], ids=str
)
def test_a_filter_says_what_failed(value: object, has: str) -> None:
    failed = {"name": "total", "wanted": [{"numeric": [">", 100]}], "value": value}
    one = decision(reason="filtered", then=FILTERED, failed_condition=failed)
    condition = f'total [{{"numeric": [">", 100]}}], the event has {has}'
    assert told(one) == [f"not matched: its filter did not match: {condition}"]


def test_another_filter_may_take_the_event_now() -> None:
    failed = {"name": "$or", "wanted": [{"a": [1]}, {"b": [2]}], "value": None}
    now = {**FILTERED, "filter": None}
    why = '$or [{"a": [1]}, {"b": [2]}] has no alternative that matches'
    assert told(decision(reason="filtered", then=FILTERED, now=now, failed_condition=failed)) == [
        f"not matched: its filter did not match: {why}; it has another filter now",
        BACKFILL,
    ]


@pytest.mark.parametrize(
    ("reason", "earlier", "words"),
    [
        ("retry", None, ""),
        ("start", None, ""),
        ("paused", None, ": the subscription is paused"),
        ("retry_after", None, ": the endpoint asked for time with Retry-After"),
        ("breaker_open", None, ": the circuit breaker of the subscription is open"),
        ("limited", None, ": a limit of the subscription is reached"),
        ("order", 2, ": saga 2 is before it in the order"),
        ("order", None, ": an earlier event waits for routing"),
        ("moonlight", None, ": moonlight"),
    ],
)
def test_a_waiting_delivery_says_what_it_waits_for(reason: str, earlier: int | None, words: str) -> None:
    due = {
        "next_attempt_at": "2026-01-02T10:00:02.000000Z",
        "waits_for": reason,
        "waits_for_saga_id": earlier,
    }
    waiting = {**SAGA, "status": "Pending", "attempt_count": 0, **due}
    sentence = f"waiting for its first attempt since 2026-01-02 10:00:02Z{words}"
    assert told(decision(matched=True, saga=waiting)) == [sentence]
    failed = {**waiting, "status": "PendingRetry", "attempt_count": 1, "final_error_code": "http_503"}
    sentence = f"attempt 1 of 5 failed with http_503, the next attempt is due 2026-01-02 10:00:02Z{words}"
    assert told(decision(matched=True, saga=failed)) == [sentence]


@pytest.mark.parametrize(
    ("code", "count", "reason", "sentence"),
    [
        ("http_503", 5, None, "dead-lettered after 5 attempts, the last with http_503 (dead letter 4)"),
        ("canceled", 0, "an operator canceled it", "canceled after no attempts (dead letter 4)"),
        ("discarded", 0, "the backlog was discarded", "discarded after no attempts (dead letter 4)"),
        ("expired", 3, "it was due for too long", "expired after 3 attempts (dead letter 4)"),
        (
            "subscription_inactive",
            0,
            "it was not sent: why",
            "dead-lettered: it was not sent: why (dead letter 4)",
        ),
        (
            "http_410",
            1,
            "no further attempt was made: why",
            "dead-lettered after 1 attempt, the last with http_410; no further attempt was made: why (dead letter 4)",
        ),
    ],
)
def test_a_dead_letter_comes_with_its_requeue(
    code: str, count: int, reason: str | None, sentence: str
) -> None:
    saga = {
        **SAGA,
        "status": "DeadLettered",
        "final_error_code": code,
        "attempt_count": count,
        "dead_letter_id": 4,
        "dead_letter_reason": reason,
    }
    assert told(decision(matched=True, saga=saga)) == [sentence, "hooksaga dead-letters requeue 4"]
    inactive = {**ELIGIBLE, "active": False}
    assert told(decision(matched=True, saga=saga, now=inactive)) == [sentence]


def test_a_match_without_a_saga_was_pruned() -> None:
    assert told(decision(matched=True)) == ["it ended; retention deleted the record later"]


INACTIVE = {**ELIGIBLE, "active": False, "eligible_since": None}
UNVERIFIED = {**ELIGIBLE, "verified": False, "eligible_since": None}
DELETED = {**INACTIVE, "deleted_at": "2026-01-01T12:00:00.000000Z"}
OTHER = {**ELIGIBLE, "event_types": ["order.sent"]}
NOW_OK = "it is active and verified now"


@pytest.mark.parametrize(
    ("reason", "then", "now", "sentence", "command"),
    [
        (
            "inactive",
            INACTIVE,
            None,
            f"it was inactive when the event was routed at {ROUTED}; it still is",
            None,
        ),
        (
            "inactive",
            INACTIVE,
            ELIGIBLE,
            f"it was inactive when the event was routed at {ROUTED}; {NOW_OK}",
            BACKFILL,
        ),
        (
            "inactive",
            {**INACTIVE, "verified": False},
            UNVERIFIED,
            f"it was inactive and not verified when the event was routed at {ROUTED}; it is not verified now",
            None,
        ),
        (
            "inactive",
            INACTIVE,
            DELETED,
            f"it was inactive when the event was routed at {ROUTED}; it is deleted now",
            None,
        ),
        (
            "unverified",
            UNVERIFIED,
            None,
            f"it was not verified when the event was routed at {ROUTED}; it still is not",
            None,
        ),
        (
            "unverified",
            UNVERIFIED,
            INACTIVE,
            f"it was not verified when the event was routed at {ROUTED}; it is inactive now",
            None,
        ),
        ("deleted", DELETED, None, "it was deleted at 2026-01-01 12:00:00Z", None),
        (
            "created_later",
            None,
            ELIGIBLE,
            f"it was created at 2026-01-01 00:00:00Z, after the event was routed at {ROUTED}; {NOW_OK}",
            BACKFILL,
        ),
        (
            "created_later",
            None,
            INACTIVE,
            f"it was created at 2026-01-01 00:00:00Z, after the event was routed at {ROUTED}; it is inactive now",
            None,
        ),
        (
            "eligible_later",
            ELIGIBLE,
            None,
            "it became active and verified at 2026-01-01 00:00:00Z, after the event was accepted",
            BACKFILL,
        ),
        (
            "other_event_type",
            {**OTHER},
            ELIGIBLE,
            f"it took order.sent when the event was routed at {ROUTED}; {NOW_OK}",
            BACKFILL,
        ),
        ("of_a_newer_api", ELIGIBLE, None, f"of a newer api; {NOW_OK}", BACKFILL),
    ],
)
def test_no_match_says_why_and_what_would_help(
    reason: str,
    then: dict[str, Any] | None,
    now: dict[str, Any] | None,
    sentence: str,
    command: str | None,
) -> None:
    first, *rest = told(decision(reason=reason, then=then, now=now))
    assert first == f"not matched: {sentence}"
    assert rest == ([] if command is None else [command])


def test_a_backfilled_one_tells_both() -> None:
    one = decision(reason="inactive", then=INACTIVE, now=ELIGIBLE, saga={**SAGA, "started_by": "backfill"})
    why = f"not matched: it was inactive when the event was routed at {ROUTED}"
    assert told(one) == [f"{why}; backfilled at {ROUTED}: delivered on attempt 2 of 5"]


def test_others_are_counted_until_all_are_asked_for() -> None:
    far = decision(reason="other_event_type", then=OTHER)
    near = decision(reason="other_event_type", then=OTHER, now=ELIGIBLE)
    assert (
        lines(event(near, far, far))[-1] == "2 other subscriptions take other event types; --all lists them"
    )
    assert lines(event(far))[-1] == "1 other subscription takes other event types; --all lists them"
    more = lines(event(far, next="2"))[-1]
    assert more == "1 or more other subscriptions take other event types; --all lists them"
    assert len(lines(event(near, far, far), every=True)) == len(lines(event(near))) + 2


@pytest.mark.parametrize(
    ("routing", "second"),
    [
        (
            {},
            "accepted 2026-01-02 10:00:00Z; routed to 1 subscription of tenant default at 2026-01-02 10:00:01Z",
        ),
        (
            {"sagas_started": 0},
            "accepted 2026-01-02 10:00:00Z; routed to no subscriptions of tenant default at 2026-01-02 10:00:01Z",
        ),
        (
            {"state": "waiting", "waiting_since": "2026-01-02T10:00:00.123456Z", "sagas_started": None},
            "accepted 2026-01-02 10:00:00Z; waiting for routing since 2026-01-02 10:00:00Z",
        ),
        (
            {"state": "waiting", "waiting_since": "2026-01-02T10:00:00.123456Z", "sagas_started": 500},
            "accepted 2026-01-02 10:00:00Z; routing in progress, 500 subscriptions so far",
        ),
        (
            {"state": "unrecorded"},
            f"accepted 2026-01-02 10:00:00Z; {UNRECORDED}",
        ),
    ],
)
def test_the_event_says_where_it_is(routing: dict[str, Any], second: str) -> None:
    assert lines(event(**routing))[:2] == [f"order.paid  {EVENT_ID}", second]


def test_a_tenant_without_subscriptions_is_said() -> None:
    assert lines(event(sagas_started=0))[-1] == "tenant default had no subscription"
    assert len(lines(event(state="waiting"))) == 2


def test_what_comes_from_outside_moves_no_terminal() -> None:
    shown = event(
        decision(callback_host="a\x1b[2J", reason="\x1b[2J", then={**OTHER, "event_types": ["\x07"]})
    )
    assert not any(ord(one) < 32 for line in explanation(shown, every=True) for one in line.plain)


def test_a_match_names_the_patterns_and_no_match_the_first_of_all_types() -> None:
    several = {**ELIGIBLE, "event_types": ["a", "order.*", "b", "c", "*"]}
    by = decision(matched=True, matched_by=["order.*", "*"], then=several, saga=SAGA)
    assert "(order.*, * → receiver.example)" in lines(event(by))[2]
    other = {**several, "event_types": ["a", "b", "c", "d"]}
    no_match = decision(reason="other_event_type", then=other)
    assert (
        "(a, b, c +1 → receiver.example): not matched: it took a, b, c +1 when"
        in lines(event(no_match), every=True)[2]
    )
    assert "take other event types" in lines(event(no_match, no_match))[2]
