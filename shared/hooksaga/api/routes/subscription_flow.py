"""/v1/subscriptions/{id}/pause and /resume, and the flow in every answer about one subscription."""

from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers import subscriptions as answers
from hooksaga.api.http_api import authorize, read_model, services_of, subscription_id_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.services import Services
from hooksaga.core.models import Resumption
from hooksaga.operations import subscription_flow
from hooksaga.operations.subscriptions import Subscription
from hooksaga.stages.own_headers import shown_headers

Shown = TypeVar("Shown", bound=answers.SubscriptionFacts)


async def shown(
    services: Services,
    subscription: Subscription,
    kind: type[answers.Subscription] = answers.Subscription,
    **more: Any,
) -> answers.Subscription:
    """Return the subscription with its flow, and with what else an answer of this kind has."""
    flows = await services.subscriptions.run(subscription_flow.flow_of, [subscription.id])
    flow = answers.SubscriptionFlow.of(flows[subscription.id])
    return subscription_answer(kind, subscription, flow=flow, **more)


def subscription_answer(kind: type[Shown], subscription: Subscription, **more: Any) -> Shown:
    """Return the subscription with what else an answer of this kind has."""
    count, seconds = subscription.rate_limit_count, subscription.rate_limit_seconds
    limit = None if count is None or seconds is None else answers.RateLimit(count, seconds)
    return kind.of(
        subscription,
        filter=subscription.parsed_filter,
        headers=shown_headers(subscription.headers),
        rate_limit=limit,
        **more,
    )


async def pause(request: Request) -> Response:
    """Pause a subscription: 200 with it. Its events are still routed, and wait."""
    caller = await authorize(request, "subscriptions:write")
    services, subscription_id = services_of(request), subscription_id_of(request)
    paused = await services.subscriptions.run(
        subscription_flow.pause_subscription, subscription_id, tenant_id=caller.tenant_id
    )
    return answer_response(await shown(services, paused))


async def resume(request: Request) -> Response:
    """Resume a subscription: 200 with it. The deliveries that wait are delivered, or discarded when asked to."""
    caller = await authorize(request, "subscriptions:write")
    services, subscription_id = services_of(request), subscription_id_of(request)
    asked = await read_model(request, Resumption, empty=b"{}")
    resumed = await services.subscriptions.run(
        subscription_flow.resume_subscription, subscription_id, asked.backlog, tenant_id=caller.tenant_id
    )
    await services.wakes.subscriptions_due({subscription_id: None})
    return answer_response(await shown(services, resumed))


ROUTES = [
    Route("/v1/subscriptions/{id}/pause", pause, methods=["POST"]),
    Route("/v1/subscriptions/{id}/resume", resume, methods=["POST"]),
]
