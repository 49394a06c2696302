"""/v1/erasures: remove everything that the producer sent, from one event or from events of a tenant."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers import erasures as answers
from hooksaga.api.http_api import ERASE_SCOPE, authorize, path_id, read_model, services_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.list_answers import FORMAT, list_response
from hooksaga.api.lists import check_list_parameters
from hooksaga.api.query_parameters import id_before, next_cursor
from hooksaga.core.erasures import NewErasure
from hooksaga.core.errors import NotFound
from hooksaga.core.event_ids import event_id_text
from hooksaga.operations import erasures
from hooksaga.operations.erasures import Erasure


async def start(request: Request) -> Response:
    """Start an erasure: 202 with it; 200 with the same one that is running."""
    caller = await authorize(request, ERASE_SCOPE)
    wanted = await read_model(request, NewErasure)
    asking = caller.requester
    erasure, created = await services_of(request).admin.run(erasures.start_erasure, wanted, asking)
    answer = answers.ErasureStarted.of(erasure, event_id=_event_id(erasure), created=created)
    return answer_response(answer, 202 if created else 200)


async def list_all(request: Request) -> Response:
    """List erasures, newest first."""
    caller = await authorize(request, ERASE_SCOPE, "admin")
    check_list_parameters(request, FORMAT)
    admin = services_of(request).admin

    async def read(cursor: str | None, limit: int) -> answers.ErasureList:
        before_id = id_before(cursor)
        rows = await admin.run(
            erasures.list_erasures, tenant_id=caller.tenant_id, before_id=before_id, limit=limit
        )
        items = [answers.Erasure.of(row, event_id=_event_id(row)) for row in rows]
        return answers.ErasureList(items, next_cursor(rows, limit))

    return await list_response(request, caller, read, item=answers.Erasure, name="erasures")


async def show(request: Request) -> Response:
    """Show one erasure and how far it is."""
    caller = await authorize(request, ERASE_SCOPE, "admin")
    erasure_id = path_id(request, NotFound("erasure_not_found", "there is no such erasure"))
    erasure = await services_of(request).admin.run(
        erasures.show_erasure, erasure_id, tenant_id=caller.tenant_id
    )
    return answer_response(answers.Erasure.of(erasure, event_id=_event_id(erasure)))


def _event_id(erasure: Erasure) -> Any:
    return None if erasure.webhook_id is None else event_id_text(erasure.webhook_id)


ROUTES = [
    Route("/v1/erasures", start, methods=["POST"]),
    Route("/v1/erasures", list_all, methods=["GET"]),
    Route("/v1/erasures/{id}", show, methods=["GET"]),
]
