"""Admin: inspection and requeue, through API Gateway and by direct invocation. A tick continues bulk operations."""

from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.api.routes import attempts, bulk_operations, erasures, events, filter_test, operations
from hooksaga.aws.admin_actions import run_action
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.bulk_ticks import step_bulk_operations
from hooksaga.aws.function import Event
from hooksaga.aws.triggers import Trigger, expect

ROUTES = [
    *events.ADMIN_ROUTES,
    *operations.ROUTES,
    *attempts.ROUTES,
    *bulk_operations.ROUTES,
    *erasures.ROUTES,
    *filter_test.ROUTES,
]

function = ApiFunction(Role.ADMIN, ROUTES)


def handler(event: Event, context: Any) -> Any:
    """Handle a REST proxy event, a direct `{"method": …, "path": …}` or `{"action": …}`, or a tick.

    An error of an action is returned as `{"error": problem}`.
    """
    trigger = expect(event, Trigger.REST, Trigger.TICK, Trigger.OBJECT, Trigger.EMPTY)
    if trigger is Trigger.REST:
        return function.answer(event, context)
    return function.run(step_bulk_operations if trigger is Trigger.TICK else run_action, event, context)
