"""Response form of a routing, and the cursor of its pages."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from hooksaga.api.answers import routing as answers
from hooksaga.api.cursors import ROUTING_CURSOR, invalid_cursor
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.filters import FailedCondition, value_text
from hooksaga.core.models import rfc3339
from hooksaga.core.routing import Facts
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.explain import Decision, Place, Rank, Routing, SagaStanding
from hooksaga.operations.waiting_sagas import Waiting


def read_place(cursor: str | None) -> Place | None:
    """Return the end of the previous page from its cursor. Raises InvalidInput for any other text."""
    if cursor is None:
        return None
    if not re.fullmatch(ROUTING_CURSOR, cursor):
        raise invalid_cursor()
    return Place(Rank(int(cursor[0])), int(cursor[1:], 16))


def _cursor(place: Place) -> str:
    return f"{place.rank:d}{place.after_id:016X}"


def event_routing(routing: Routing) -> answers.EventRouting:
    """Return the routing with its event, for a response of its own."""
    return answers.EventRouting.of(
        routing,
        id=event_id_text(routing.webhook_id),
        created_at=rfc3339(routing.accepted_at),
        routing=routing_answer(routing),
    )


def routing_answer(routing: Routing) -> answers.Routing:
    return answers.Routing.of(
        routing,
        decisions=[_decision(decision) for decision in routing.decisions],
        next=None if routing.next is None else _cursor(routing.next),
    )


def _decision(decision: Decision) -> answers.RoutingDecision:
    """Return one decision. `now` is null while nothing has changed; only the host of the address is shown."""
    changed = decision.now != decision.then
    return answers.RoutingDecision.of(
        decision,
        callback_host=urlsplit(decision.callback_url).hostname or "",
        failed_condition=failed_answer(decision.failed_condition),
        then=None if decision.then is None else _facts(decision.then),
        now=_facts(decision.now) if changed else None,
        saga=None if decision.saga is None else _saga(decision.saga),
    )


def _facts(facts: Facts) -> answers.RoutingFacts:
    return answers.RoutingFacts.of(facts, filter=None if facts.filter is None else json.loads(facts.filter))


def failed_answer(failed: FailedCondition | None) -> answers.FailedCondition | None:
    """Return the condition. A number is a JSON number, as near as a float can be."""
    if failed is None:
        return None
    value = None if failed.value is None else json.loads(value_text(failed.value))
    return answers.FailedCondition(failed.name, list(failed.wanted), value)


def _saga(saga: SagaStanding) -> answers.SagaStanding:
    """Return one saga. next_attempt_at is set only while the saga waits."""
    waits = saga.status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY)
    return answers.SagaStanding.of(
        saga,
        next_attempt_at=rfc3339(saga.next_attempt_at) if waits else None,
        **waiting_fields(saga.waiting),
    )


def waiting_fields(waiting: Waiting | None) -> dict[str, Any]:
    """Return the fields that say what a saga waits for."""
    return {
        "waits_for": waiting and waiting.waits_for.value,
        "waits_for_saga_id": waiting and waiting.earlier_saga_id,
    }
