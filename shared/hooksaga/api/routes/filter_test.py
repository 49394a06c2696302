"""POST /v1/subscriptions/{id}/test-filter: which recent events a filter matches."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers import filters as answers
from hooksaga.api.http_api import authorize, read_model, services_of, subscription_id_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.routing_answer import failed_answer
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.filter_input import FilterToTest
from hooksaga.core.models import utc_text
from hooksaga.operations.match_events import ComparedEvent, match_events


async def test_filter(request: Request) -> Response:
    """Compare the last events of the subscription's types with a filter: 200 with each."""
    caller = await authorize(request, "subscriptions:write", "admin")
    subscription_id = subscription_id_of(request)
    wanted = await read_model(request, FilterToTest, empty=b"{}")
    found = await services_of(request).admin.run(
        match_events, subscription_id, tenant_id=caller.tenant_id, wanted=wanted.filter, last=wanted.last
    )
    items = [_compared(event) for event in found.events]
    matched = sum(event.matches for event in found.events)
    answer = answers.FilterTest(subscription_id, found.filter, len(items), matched, items)
    return answer_response(answer)


def _compared(event: ComparedEvent) -> answers.ComparedEvent:
    return answers.ComparedEvent(
        id=event_id_text(event.webhook_id),
        event_type=event.event_type,
        created_at=utc_text(event.created_at),
        matches=event.matches,
        failed_condition=failed_answer(event.failed_condition),
    )


ROUTES = [Route("/v1/subscriptions/{id}/test-filter", test_filter, methods=["POST"])]
