"""An event's routing in sentences: one per subscription, with a command if one helps."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from hooksaga.cli.subscription_match import condition_in_words
from hooksaga.cli.terminal import printable, short_time
from hooksaga.core.event_patterns import matching_patterns, shown_event_types

Json = dict[str, Any]

DELIVERED, WAITS, GIVEN_UP, NOT_MATCHED = "green", "yellow", "red", "cyan"
COLOURS = {"Completed": DELIVERED, "DeadLettered": GIVEN_UP}


def explanation(event: Json, *, every: bool = False) -> Iterator[Text]:
    """Yield the lines. Subscriptions that never had the event's type are counted, or listed with `every`."""
    yield Text(printable(f"{event['event_type']}  {event['id']}"), "bold")
    yield Text(printable(_routed(event)))
    shown = [one for one in event["routing"]["decisions"] if every or not _is_unrelated(event, one)]
    for decision in shown:
        yield Text(f"  {printable(_sentence(event, decision))}", _colour(decision))
        if command := _command(event, decision):
            yield Text(f"      {printable(command)}", "bold")
    yield from _not_shown(event, len(shown))


def _routed(event: Json) -> str:
    routing, accepted = event["routing"], f"accepted {short_time(event['created_at'])}"
    count = routing["sagas_started"]
    subscriptions = f"{count or 'no'} subscription{'' if count == 1 else 's'}"
    match routing["state"]:
        case "waiting" if count:
            return f"{accepted}; routing in progress, {subscriptions} so far"
        case "waiting":
            return f"{accepted}; waiting for routing since {short_time(routing['waiting_since'])}"
        case "unrecorded":
            return (
                f"{accepted}; routed before decisions were recorded, so only subscriptions with a delivery "
                "are known"
            )
        case _:
            whom = f"{subscriptions} of tenant {event['tenant_id']}"
            return f"{accepted}; routed to {whom} at {short_time(routing['routed_at'])}"


def _is_unrelated(event: Json, decision: Json) -> bool:
    """Return whether the subscription has another event type, then and now, and no saga."""
    moments = [one for one in (decision["then"], decision["now"]) if one]
    takes_it = any(_takes(one, event) for one in moments)
    return not takes_it and not decision["matched"] and decision["saga"] is None


def _takes(facts: Json, event: Json) -> bool:
    return bool(matching_patterns(facts["event_types"], event["event_type"]))


def _not_shown(event: Json, shown: int) -> Iterator[Text]:
    routing = event["routing"]
    left = len(routing["decisions"]) - shown
    if left:
        count = f"{left}{' or more' if routing['next'] else ''}"
        others = f"{count} other subscription{' takes' if count == '1' else 's take'} other event types"
        yield Text(f"  {others}; --all lists them", NOT_MATCHED)
    elif not shown and routing["state"] == "routed":
        yield Text(printable(f"  tenant {event['tenant_id']} had no subscription"), NOT_MATCHED)


def _colour(decision: Json) -> str:
    saga = decision["saga"]
    if saga is not None:
        return COLOURS.get(saga["status"], WAITS)
    return DELIVERED if decision["matched"] else NOT_MATCHED


def _sentence(event: Json, decision: Json) -> str:
    facts = decision["then"] or decision["now"]
    who = f"subscription {decision['subscription_id']} ({_types(facts, decision)} → {decision['callback_host']})"
    return f"{who}: {'; '.join(_clauses(event, decision))}"


def _types(facts: Json, decision: Json) -> str:
    """Return the event types that matched the event, or all if it did not match."""
    return shown_event_types(decision["matched_by"] or facts["event_types"])


def _clauses(event: Json, decision: Json) -> Iterator[str]:
    saga = decision["saga"]
    if decision["matched"] is False:
        yield f"not matched: {_why(event, decision)}"
        if saga is None:
            yield from _since(event, decision)
    if saga is not None:
        yield f"{_started(saga)}{_standing(saga)}"
    elif decision["matched"]:
        yield "it ended; retention deleted the record later"
    elif decision["matched"] is None and event["routing"]["state"] == "routed":
        yield "not known: its filter compared attributes that were erased later"


def _why(event: Json, decision: Json) -> str:
    then, routed = (
        decision["then"],
        f"when the event was routed at {short_time(event['routing']['routed_at'])}",
    )
    match decision["reason"]:
        case "created_later":
            return f"it was created at {short_time(decision['subscription_created_at'])}, {_after_routing(event)}"
        case "other_event_type":
            return f"it took {shown_event_types(then['event_types'])} {routed}"
        case "test_of_another" | "filtered" as reason:
            return _why_of_the_event(reason, decision)
        case "deleted":
            return f"it was deleted at {short_time(then['deleted_at'])}"
        case "inactive":
            return f"it was inactive{'' if then['verified'] else ' and not verified'} {routed}"
        case "unverified":
            return f"it was not verified {routed}"
        case "eligible_later":
            since = short_time(then["eligible_since"])
            return f"it became active and verified at {since}, after the event was accepted"
        case reason:  # sent by a newer API
            return str(reason).replace("_", " ")


def _why_of_the_event(reason: str, decision: Json) -> str:
    if reason == "filtered":
        return f"its filter did not match: {condition_in_words(decision['failed_condition'])}"
    return "the event is a test for another subscription"


def _after_routing(event: Json) -> str:
    return f"after the event was routed at {short_time(event['routing']['routed_at'])}"


def _since(event: Json, decision: Json) -> Iterator[str]:
    """Yield later changes that matter for a delivery of the event."""
    now, then = decision["now"], decision["then"]
    facts = now or then
    if facts["deleted_at"] is not None:
        if decision["reason"] != "deleted":
            yield "it is deleted now"
    elif not _takes(facts, event):
        if then is None or facts["event_types"] != then["event_types"]:
            yield f"it takes {shown_event_types(facts['event_types'])} now"
    elif not facts["active"]:
        yield "it is inactive now" if then is None or then["active"] else "it still is"
    elif not facts["verified"]:
        yield "it still is not" if decision["reason"] == "unverified" else "it is not verified now"
    else:
        yield from _since_eligible(decision)


def _since_eligible(decision: Json) -> Iterator[str]:
    if decision["reason"] == "filtered":
        if not _has_the_same_filter(decision):
            yield "it has another filter now"
    elif decision["reason"] != "eligible_later":
        yield "it is active and verified now"


def _has_the_same_filter(decision: Json) -> bool:
    facts = decision["now"] or decision["then"]
    return facts["filter"] == decision["then"]["filter"]


def _command(event: Json, decision: Json) -> str | None:
    """Return the command that delivers the event, if there is one."""
    saga, facts = decision["saga"], decision["now"] or decision["then"]
    would_take_it = facts["active"] and facts["verified"] and facts["deleted_at"] is None
    if saga is not None:
        dead = saga["dead_letter_id"] is not None and would_take_it
        return f"hooksaga dead-letters requeue {saga['dead_letter_id']}" if dead else None
    is_test = decision["reason"] == "test_of_another"
    if decision["reason"] == "filtered" and _has_the_same_filter(decision):
        return None  # a backfill has the same filter
    if decision["matched"] is False and would_take_it and _takes(facts, event) and not is_test:
        return f"hooksaga subscriptions backfill {decision['subscription_id']} --since {event['created_at']}"
    return None


def _started(saga: Json) -> str:
    match saga["started_by"]:
        case "requeue":
            return f"requeued at {short_time(saga['created_at'])}: "
        case "resend":
            return f"resent at {short_time(saga['created_at'])}: "
        case "backfill":
            return f"backfilled at {short_time(saga['created_at'])}: "
        case _:
            return ""


def _standing(saga: Json) -> str:
    made, limit = saga["attempt_count"], saga["attempt_limit"]
    match saga["status"]:
        case "Completed":
            return f"delivered on attempt {_of(made, limit)}"
        case "InProgress":
            return f"attempt {_of(made + 1, limit)} is in progress"
        case "Pending":
            return (
                f"waiting for its first attempt since {short_time(saga['next_attempt_at'])}{_waits_for(saga)}"
            )
        case "PendingRetry":
            due = f"the next attempt is due {short_time(saga['next_attempt_at'])}{_waits_for(saga)}"
            return f"attempt {_of(made, limit)} failed with {saga['final_error_code']}, {due}"
        case _:
            return _ended_undelivered(saga)


_WAITS_FOR = {
    "retry": "",
    "start": "",
    "paused": ": the subscription is paused",
    "retry_after": ": the endpoint asked for time with Retry-After",
    "breaker_open": ": the circuit breaker of the subscription is open",
    "limited": ": a limit of the subscription is reached",
}


def _waits_for(saga: Json) -> str:
    """Return what keeps a due delivery from starting."""
    reason = saga.get("waits_for")  # None from an older API
    if reason != "order":
        return _WAITS_FOR.get(reason, f": {reason}") if reason else ""
    earlier = saga["waits_for_saga_id"]
    return (
        f": saga {earlier} is before it in the order" if earlier else ": an earlier event waits for routing"
    )


def _of(attempt: int, limit: int) -> str:
    """Format the attempts and their limit, which may have been lowered since."""
    return f"{attempt} of {limit}" if attempt <= limit else str(attempt)


def _ended_undelivered(saga: Json) -> str:
    count = saga["attempt_count"]
    attempts = f"{count or 'no'} attempt{'' if count == 1 else 's'}"
    letter = f"dead letter {saga['dead_letter_id']}"
    match saga["final_error_code"]:
        case "canceled" | "discarded" | "expired" | "erased" as ended:
            return f"{ended} after {attempts} ({letter})"
        case "subscription_inactive":
            return f"dead-lettered: {saga['dead_letter_reason']} ({letter})"
        case code:
            why = f"; {saga['dead_letter_reason']}" if saga["dead_letter_reason"] else ""
            return f"dead-lettered after {attempts}, the last with {code}{why} ({letter})"
