"""/v1/subscriptions/{id}/health, and the deliveries missed by a subscription that is enabled again."""

from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers.subscriptions import EndpointHealth, Missed
from hooksaga.api.http_api import Caller, authorize, services_of, subscription_id_of
from hooksaga.api.json_answers import answer_response
from hooksaga.core.endpoint_health import expected_disable_time
from hooksaga.core.models import rfc3339
from hooksaga.operations import subscription_health


async def show_health(request: Request) -> Response:
    """Show the health of the subscription's endpoint, as far as attempts are counted."""
    caller = await authorize(request, "subscriptions:write")
    services = services_of(request)
    subscription_id = subscription_id_of(request)
    health = await services.subscriptions.run(
        subscription_health.show_health, subscription_id, tenant_id=caller.tenant_id
    )
    begun = health.first_failure_at if health.eligible else None
    ends = rfc3339(expected_disable_time(begun, services.settings.health_policy))
    return answer_response(EndpointHealth.of(health, will_be_disabled_at=ends), shown_to=caller)


async def missed_by(request: Request, caller: Caller, subscription_id: int) -> Missed | UnsetType:
    """Count what a disabled subscription has missed; UNSET for any other. Call it before the
    subscription is enabled again, which clears the time since when it was disabled."""
    missed = await services_of(request).subscriptions.run(
        subscription_health.read_missed, subscription_id, tenant_id=caller.tenant_id
    )
    return UNSET if missed is None else Missed.of(missed)


ROUTES = [Route("/v1/subscriptions/{id}/health", show_health, methods=["GET"])]
