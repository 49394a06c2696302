"""The list of subscriptions, with the health of each endpoint."""

from collections.abc import Mapping

from hooksaga.adapters.database import Connection
from hooksaga.api.answers import subscriptions as answers
from hooksaga.api.lists import ReadPage
from hooksaga.api.query_parameters import id_before, next_cursor
from hooksaga.api.routes.subscription_flow import subscription_answer
from hooksaga.api.services import Services
from hooksaga.core.endpoint_health import health_state
from hooksaga.operations.overview import HealthSummary, health_of
from hooksaga.operations.subscriptions import Subscription, list_subscriptions


def subscription_pages(services: Services, *, tenant_id: str | None, event_type: str | None) -> ReadPage:
    """Return the reader of the pages of this list."""

    async def read(cursor: str | None, limit: int) -> answers.SubscriptionList:
        before_id = id_before(cursor)

        async def read_rows(
            connection: Connection,
        ) -> tuple[list[Subscription], Mapping[int, HealthSummary]]:
            rows = await list_subscriptions(
                connection,
                tenant_id=tenant_id,
                event_type=event_type,
                before_id=before_id,
                limit=limit,
            )
            return rows, await health_of(connection, [row.id for row in rows])

        rows, health = await services.subscriptions.run(read_rows)
        items = [_listed(row, health.get(row.id)) for row in rows]
        return answers.SubscriptionList(items, next_cursor(rows, limit))

    return read


def _listed(row: Subscription, health: HealthSummary | None) -> answers.ListedSubscription:
    summary = answers.HealthSummary(
        state=health_state(
            active=row.active,
            disabled_at=health and health.disabled_at,
            consecutive_failures=health.consecutive_failures if health else 0,
            last_success_at=health and health.last_success_at,
        ),
        consecutive_failures=health.consecutive_failures if health else 0,
        last_error_code=health and health.last_error_code,
    )
    return subscription_answer(answers.ListedSubscription, row, health=summary)
