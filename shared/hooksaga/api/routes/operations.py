"""Routes of dead letters, the backlog, and liveness."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers import dead_letters as answers
from hooksaga.api.answers.service import Health, Stats
from hooksaga.api.cursors import write_cursor
from hooksaga.api.error_code_views import checked_code_filter
from hooksaga.api.http_api import MAX_ID, Caller, authorize, path_id, read_model, services_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.list_answers import FORMAT, list_response
from hooksaga.api.lists import ReadPage, check_list_parameters
from hooksaga.api.query_parameters import (
    id_before,
    query_flag,
    query_integer,
    query_moment,
    query_tenant,
    query_text,
)
from hooksaga.api.routes import sagas
from hooksaga.api.services import Services
from hooksaga.core.errors import Conflict, InvalidInput, NotFound, RefusedRow
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.requeue_models import RequeueFilter
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import inspect, requeue
from hooksaga.operations.inspect import DeadLetterView
from hooksaga.operations.list_dead_letters import list_dead_letters
from hooksaga.operations.requeue import DeadLetterFilter, Requeued
from hooksaga.operations.telemetry import note_requeued
from hooksaga.stages.telemetry import note_refused

FILTERS = (
    "requeued",
    "tenant_id",
    "subscription_id",
    "event_type",
    "error_code",
    "failed_after",
    "failed_before",
)


async def list_all_dead_letters(request: Request) -> Response:
    """List dead letters, newest first, by any of the filters."""
    caller = await authorize(request, "admin")
    check_list_parameters(request, FORMAT, *FILTERS)
    wanted = DeadLetterFilter(
        tenant_id=query_tenant(request, caller.tenant_id),
        subscription_id=query_integer(request, "subscription_id", 1, MAX_ID),
        event_type=query_text(request, "event_type"),
        error_code=checked_code_filter(caller, query_text(request, "error_code")),
        failed_after=query_moment(request, "failed_after"),
        failed_before=query_moment(request, "failed_before"),
        requeued=query_flag(request, "requeued"),
    )
    read = dead_letter_pages(services_of(request), wanted)
    return await list_response(request, caller, read, item=answers.DeadLetter, name="dead-letters")


def dead_letter_pages(services: Services, wanted: DeadLetterFilter) -> ReadPage:
    """Return the reader of the pages of this list."""

    async def read(cursor: str | None, limit: int) -> answers.DeadLetterList:
        before_id = id_before(cursor)
        found = await services.admin.run(list_dead_letters, wanted, before_id=before_id, limit=limit)
        items = [answers.DeadLetter.of(row, event_id=event_id_text(row.webhook_id)) for row in found.items]
        following = found.following
        return answers.DeadLetterList(items, None if following is None else write_cursor(following))

    return read


async def show_dead_letter(request: Request) -> Response:
    """Show one dead letter with its payload, equal to the byte."""
    caller = await authorize(request, "admin")
    row = await _read(request, caller)
    answer = answers.DeadLetterWithPayload.of(row, event_id=event_id_text(row.webhook_id))
    return answer_response(answer, shown_to=caller)


async def requeue_dead_letter(request: Request) -> Response:
    """Requeue a dead letter: 201 with the new saga; a repeat: 200 with the same one."""
    caller = await authorize(request, "admin")
    row = await _read(request, caller)
    answer = await requeue_for(services_of(request), row.id)
    return answer_response(answers.Requeued.of(answer), 201 if answer.created else 200)


async def requeue_for(services: Services, dead_letter_id: int) -> Requeued:
    """Return its new saga, or the one that it has. Raises as the stage does. The caller has checked the tenant."""
    answer = await services.admin.run(requeue.requeue_one, dead_letter_id)
    if answer.created and answer.saga_id is not None:
        note_requeued([answer])
        await services.wakes.subscriptions_due({answer.subscription_id: answer.correlation_id})
    return answer


async def requeue_chosen_for(services: Services, ids: Sequence[int], tenant_id: str | None) -> int:
    """Requeue those of the dead letters that the tenant may see, and return how many new sagas were started."""
    answers = await services.admin.run(requeue.requeue_chosen, ids, tenant_id=tenant_id)
    started = [one for one in answers if one.created]
    note_requeued(started)
    await services.wakes.subscriptions_due({one.subscription_id: one.correlation_id for one in started})
    return len(started)


async def requeue_matching(request: Request) -> Response:
    """`{matched, requeued, skipped, dry_run}` for the oldest dead letters that match and were not requeued yet."""
    caller = await authorize(request, "admin")
    services = services_of(request)
    asked = await read_model(request, RequeueFilter, empty=b"{}")
    checked_code_filter(caller, asked.error_code)
    wanted = DeadLetterFilter(tenant_id=caller.tenant_id, **asked.model_dump(exclude={"limit", "dry_run"}))
    refused: list[RefusedRow] = []
    done = await services.admin.run(
        requeue.requeue_matching, wanted, limit=asked.limit, dry_run=asked.dry_run, on_refusal=refused.append
    )
    note_requeued(done.requeued)
    note_refused(refused)
    await services.wakes.subscriptions_due({one.subscription_id: one.correlation_id for one in done.requeued})
    return answer_response(answers.RequeuedMatches.of(done, requeued=len(done.requeued)))


async def cancel_saga(request: Request) -> Response:
    """Cancel a saga: 202 if the orchestrator was asked to end it, 200 if already canceled, 409 if it does not wait."""
    caller = await authorize(request, "admin")
    services = services_of(request)
    saga_id = path_id(request, NotFound("saga_not_found", "there is no such saga"))
    saga = await services.admin.run(inspect.show_saga_state, saga_id, tenant_id=caller.tenant_id)
    if saga.final_error_code == ErrorCode.CANCELED and saga.status == SagaStatus.DEAD_LETTERED:
        return answer_response(answers.CanceledSaga(saga_id, saga.status))
    if saga.status not in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY):
        message = f"saga {saga_id} is {saga.status}: only a waiting saga can be canceled"
        raise Conflict("saga_not_waiting", message)
    await services.wakes.cancel_saga(saga.traced)
    return answer_response(answers.CanceledSaga(saga_id, saga.status), 202)


async def show_stats(request: Request) -> Response:
    """Show the backlog of all tenants, only for keys that are bound to none."""
    caller = await authorize(request, "admin")
    if caller.tenant_id is not None:
        raise InvalidInput(
            "tenant_not_allowed", "stats require a key that is not bound to a tenant", status=403
        )
    stats = await services_of(request).admin.run(inspect.read_stats)
    return answer_response(Stats.of(stats))


async def check_health(request: Request) -> Response:
    """Check liveness without a key: 200 when the database answers, 503 otherwise, and no other information."""
    await services_of(request).keys.run(inspect.check_alive)
    return answer_response(Health("ok"))


async def _read(request: Request, caller: Caller) -> DeadLetterView:
    dead_letter_id = path_id(request, NotFound("dead_letter_not_found", "there is no such dead letter"))
    return await services_of(request).admin.run(
        inspect.show_dead_letter, dead_letter_id, tenant_id=caller.tenant_id
    )


ROUTES = [
    Route("/v1/dead-letters", list_all_dead_letters, methods=["GET"]),
    Route("/v1/dead-letters/requeue", requeue_matching, methods=["POST"]),
    Route("/v1/dead-letters/{id}", show_dead_letter, methods=["GET"]),
    Route("/v1/dead-letters/{id}/requeue", requeue_dead_letter, methods=["POST"]),
    Route("/v1/sagas/{id}/cancel", cancel_saga, methods=["POST"]),
    *sagas.ROUTES,
    Route("/v1/stats", show_stats, methods=["GET"]),
    Route("/healthz", check_health, methods=["GET"]),
]
