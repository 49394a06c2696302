"""/v1/subscriptions/{id}/health, and what a subscription missed that is switched on again."""

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.error_code_views import shown_content
from hooksaga.api.http_api import Caller, authorize, json_response, path_id, services_of
from hooksaga.core.endpoint_health import HealthPolicy, disabled_at_if_it_goes_on
from hooksaga.core.errors import NotFound
from hooksaga.core.models import rfc3339
from hooksaga.operations import subscription_health
from hooksaga.operations.subscription_health import EndpointHealth

_TIMES = ("first_failure_at", "last_failure_at", "last_success_at", "disabled_at", "counted_until")


async def show_health(request: Request) -> Response:
    """How the subscription's endpoint does, as far as attempts are counted."""
    caller = await authorize(request, "subscriptions:write")
    services = services_of(request)
    subscription_id = path_id(request, NotFound("subscription_not_found", "there is no such subscription"))
    health = await services.subscriptions.run(
        lambda connection: subscription_health.show_health(
            connection, subscription_id, tenant_id=caller.tenant_id
        )
    )
    return json_response(shown_content(caller, _shown(health, services.settings.health_policy)))


def _shown(health: EndpointHealth, policy: HealthPolicy) -> dict[str, Any]:
    fields = asdict(health)
    begun = health.first_failure_at if fields.pop("eligible") else None
    times = {name: rfc3339(fields[name]) for name in _TIMES}
    return {**fields, **times, "will_be_disabled_at": rfc3339(disabled_at_if_it_goes_on(begun, policy))}


async def missed_by(request: Request, caller: Caller, subscription_id: int) -> dict[str, Any]:
    """`{"missed": {…}}` for a subscription that the monitor switched off, {} for any other. To be asked before it is
    switched on again, which forgets since when it was off."""
    missed = await services_of(request).subscriptions.run(
        lambda connection: subscription_health.read_missed(
            connection, subscription_id, tenant_id=caller.tenant_id
        )
    )
    if missed is None:
        return {}
    times = {"failing_since": rfc3339(missed.failing_since), "since": rfc3339(missed.since)}
    return {"missed": {**asdict(missed), **times}}


ROUTES = [Route("/v1/subscriptions/{id}/health", show_health, methods=["GET"])]
