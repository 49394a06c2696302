"""What passed a subscription by while it was disabled: told once it is enabled again, with its backfill beside it."""

from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request

from hooksaga.api.http_api import services_of
from hooksaga.console.forms import Fields
from hooksaga.console.session import Visitor
from hooksaga.core.errors import InvalidInput
from hooksaga.operations import subscription_health
from hooksaga.operations.subscription_health import Missed
from hooksaga.operations.subscriptions import Subscription


@dataclass(frozen=True, slots=True)
class PassedBy:
    """Events accepted from `since` until the subscription was enabled again, and dead letters since `failing_since`.
    at_least: the counts are lower limits."""

    events: int
    dead_letters: int
    since: datetime
    until: datetime
    failing_since: datetime
    at_least: bool


async def read_missed(request: Request, visitor: Visitor, row: Subscription) -> Missed | None:
    """Count what a disabled subscription has missed. Enabling it ends the time that is counted, so call it before."""
    return await services_of(request).subscriptions.run(
        subscription_health.read_missed, row.id, tenant_id=visitor.caller.tenant_id
    )


def passed_by_parameters(missed: Missed | None, until: datetime) -> dict[str, object]:
    """Return the parameters of the page that tells what was missed."""
    if missed is None or not (missed.events or missed.dead_letters):
        return {}
    return {
        "missed": missed.events,
        "dead": missed.dead_letters,
        "since": missed.since,
        "until": until,
        "failing_since": missed.failing_since,
        "more": "yes" if missed.at_least else "",
    }


def passed_by_of(fields: Fields) -> PassedBy | None:
    """Return what the page's address tells, or None."""
    events, dead = fields.count("missed"), fields.count("dead")
    try:
        since, until, failing = (fields.moment(name) for name in ("since", "until", "failing_since"))
    except InvalidInput:
        return None
    if events is None or dead is None or since is None or until is None or failing is None:
        return None
    return PassedBy(events, dead, since, until, failing, at_least=fields.raw("more") == "yes")
