"""Actions on one delivery: cancel it, retry it now, resend it. Each shows the page of the event afterwards."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import services_of
from hooksaga.api.routes.sagas import resend_for, retry_now_for, saga_id_of
from hooksaga.console.forms import Fields
from hooksaga.console.pages import action, redirect
from hooksaga.console.session import Visitor
from hooksaga.core.errors import Conflict
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import inspect
from hooksaga.operations.inspect import SagaState


@action("admin")
async def cancel(request: Request, visitor: Visitor, form: Fields) -> Response:
    saga = await _read(request, visitor)
    if saga.status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY):
        await services_of(request).wakes.cancel_saga(saga.traced)
    elif saga.final_error_code != ErrorCode.CANCELED:
        message = f"saga {saga.id} is {saga.status}: only a waiting saga can be canceled"
        raise Conflict("saga_not_waiting", message)
    return _event_page(request, visitor, saga)


@action("admin")
async def resend(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Start a new delivery for one that has ended; a second click finds the first one's."""
    saga = await _read(request, visitor)
    await resend_for(services_of(request), saga.id, visitor.caller.tenant_id)
    return _event_page(request, visitor, saga)


@action("admin")
async def retry_now(request: Request, visitor: Visitor, form: Fields) -> Response:
    saga = await _read(request, visitor)
    await retry_now_for(services_of(request), saga.id, visitor.caller.tenant_id)
    return _event_page(request, visitor, saga)


async def _read(request: Request, visitor: Visitor) -> SagaState:
    saga_id = saga_id_of(request)
    return await services_of(request).admin.run(
        inspect.show_saga_state, saga_id, tenant_id=visitor.caller.tenant_id
    )


def _event_page(request: Request, visitor: Visitor, saga: SagaState) -> Response:
    return redirect(request, f"{visitor.place.path}/events/{event_id_text(saga.webhook_id)}")
