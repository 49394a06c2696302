"""/v1/sagas: resend an ended delivery, and retry a waiting one now; /v1/subscriptions/{id}/retry-now: retry all."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.adapters.database import Connection
from hooksaga.api.answers import sagas as answers
from hooksaga.api.http_api import authorize, path_id, services_of, subscription_id_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.services import Services
from hooksaga.core.errors import NotFound
from hooksaga.core.flow_view import WaitsFor
from hooksaga.operations import resend
from hooksaga.operations.resend import Resent, Retried
from hooksaga.operations.telemetry import note_resent
from hooksaga.operations.waiting_sagas import waiting_of


async def resend_saga(request: Request) -> Response:
    """Resend a saga: 201 with the new one; 200 with that of an earlier call that has not ended."""
    caller = await authorize(request, "admin")
    answer = await resend_for(services_of(request), saga_id_of(request), caller.tenant_id)
    assert answer.saga_id is not None
    return answer_response(answers.ResentSaga(answer.saga_id), 201 if answer.created else 200)


async def resend_for(services: Services, saga_id: int, tenant_id: str | None) -> Resent:
    """Start the new saga of a resend and wake the orchestrator. Raises as `resend.resend_saga` does."""
    answer = await services.admin.run(resend.resend_saga, saga_id, tenant_id=tenant_id)
    if answer.created:
        note_resent(answer)
        await services.wakes.subscriptions_due({answer.subscription_id: answer.correlation_id})
    return answer


async def resend_chosen_for(services: Services, ids: Sequence[int], tenant_id: str | None) -> int:
    """Resend those of the sagas that have ended and that the tenant may see; return how many were started."""
    answers = await services.admin.run(resend.resend_chosen, ids, tenant_id=tenant_id)
    started = [one for one in answers if one.created]
    for one in started:
        note_resent(one)
    await services.wakes.subscriptions_due({one.subscription_id: one.correlation_id for one in started})
    return len(started)


async def retry_now(request: Request) -> Response:
    """Retry a waiting saga now: 202, with what it waits for after that, if anything."""
    caller = await authorize(request, "admin")
    saga_id = saga_id_of(request)
    waits_for = await retry_now_for(services_of(request), saga_id, caller.tenant_id)
    return answer_response(answers.RetriedSaga(saga_id, waits_for), 202)


async def retry_now_for(services: Services, saga_id: int, tenant_id: str | None) -> WaitsFor | None:
    """Make a saga due and wake the orchestrator; return what it still waits for. Raises as
    `resend.retry_saga_now` does."""

    async def retry(connection: Connection) -> tuple[Retried, WaitsFor | None]:
        done = await resend.retry_saga_now(connection, saga_id, tenant_id=tenant_id)
        waiting = (await waiting_of(connection, [saga_id])).get(saga_id)
        return done, waiting and waiting.waits_for

    done, waits_for = await services.admin.run(retry)
    await services.wakes.subscriptions_due({done.subscription_id: None})
    return waits_for


async def retry_all_now(request: Request) -> Response:
    """Retry all deliveries of a subscription that wait for a retry: 202 with their number."""
    caller = await authorize(request, "admin")
    wanted = subscription_id_of(request)
    done = await retry_all_now_for(services_of(request), wanted, caller.tenant_id)
    return answer_response(answers.RetriedSubscription(done.subscription_id, done.retried), 202)


async def retry_all_now_for(services: Services, subscription_id: int, tenant_id: str | None) -> Retried:
    """Make the waiting deliveries due and wake the orchestrator. Raises as `resend.retry_subscription_now` does."""
    done = await services.admin.run(resend.retry_subscription_now, subscription_id, tenant_id=tenant_id)
    await services.wakes.subscriptions_due({subscription_id: None})
    return done


def saga_id_of(request: Request) -> int:
    return path_id(request, NotFound("saga_not_found", "there is no such saga"))


ROUTES = [
    Route("/v1/sagas/{id}/resend", resend_saga, methods=["POST"]),
    Route("/v1/sagas/{id}/retry-now", retry_now, methods=["POST"]),
    Route("/v1/subscriptions/{id}/retry-now", retry_all_now, methods=["POST"]),
]
