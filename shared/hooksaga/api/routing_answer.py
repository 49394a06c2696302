"""A routing as the API and the admin function show it, and the cursor of its pages."""

import re
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from hooksaga.api.cursors import ROUTING_CURSOR, invalid_cursor
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.models import rfc3339
from hooksaga.core.routing import Facts
from hooksaga.core.saga import SagaStatus
from hooksaga.operations.explain import Decision, Place, Rank, Routing, SagaStanding

Json = dict[str, Any]


def read_place(cursor: str | None) -> Place | None:
    """Where the page before ended. Raises InvalidInput for what no answer's `next` was."""
    if cursor is None:
        return None
    if not re.fullmatch(ROUTING_CURSOR, cursor):
        raise invalid_cursor()
    return Place(Rank(int(cursor[0])), int(cursor[1:], 16))


def _cursor(place: Place) -> str:
    return f"{place.rank:d}{place.after_id:016X}"


def event_routing_content(routing: Routing) -> Json:
    """The routing with its event, where it stands alone."""
    return {
        "id": event_id_text(routing.webhook_id),
        "event_type": routing.event_type,
        "tenant_id": routing.tenant_id,
        "created_at": rfc3339(routing.accepted_at),
        "routing": routing_content(routing),
    }


def routing_content(routing: Routing) -> Json:
    """The routing without its event."""
    return {
        "state": routing.state,
        "waiting_since": rfc3339(routing.waiting_since),
        "routed_at": rfc3339(routing.routed_at),
        "sagas_started": routing.sagas_started,
        "decisions": [_decision(decision) for decision in routing.decisions],
        "next": None if routing.next is None else _cursor(routing.next),
    }


def _decision(decision: Decision) -> Json:
    """`now` is null while nothing has changed; of the address only the host is shown."""
    return {
        "subscription_id": decision.subscription_id,
        "subscription_created_at": rfc3339(decision.subscription_created_at),
        "callback_host": urlsplit(decision.callback_url).hostname or "",
        "matched": decision.matched,
        "reason": decision.reason,
        "then": None if decision.then is None else _facts(decision.then),
        "now": None if decision.now == decision.then else _facts(decision.now),
        "saga": None if decision.saga is None else _saga(decision.saga),
    }


def _facts(facts: Facts) -> Json:
    times = {"eligible_since": rfc3339(facts.eligible_since), "deleted_at": rfc3339(facts.deleted_at)}
    return {**asdict(facts), **times}


def _saga(saga: SagaStanding) -> Json:
    """next_attempt_at is set while the saga waits, and for no other."""
    waits = saga.status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY)
    return {
        **asdict(saga),
        "created_at": rfc3339(saga.created_at),
        "next_attempt_at": rfc3339(saga.next_attempt_at) if waits else None,
    }
