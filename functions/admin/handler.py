"""Admin: reading and requeueing, behind API Gateway and by direct invocation (spec §9); bulk operations by a tick."""

from typing import Any

from shared.adapters.database import Role
from shared.runtime.admin_actions import run_action
from shared.runtime.api_function import ApiFunction
from shared.runtime.bulk_ticks import step_bulk_operations
from shared.runtime.function import Event
from shared.runtime.routes import attempts, bulk_operations, events, operations
from shared.runtime.triggers import Trigger, expect

ROUTES = [*events.ADMIN_ROUTES, *operations.ROUTES, *attempts.ROUTES, *bulk_operations.ROUTES]

function = ApiFunction(Role.ADMIN, ROUTES)


def handler(event: Event, context: Any) -> Any:
    """An API Gateway REST proxy event, `{"action": …}`, or a tick.

    An action's fault is answered as `{"error": problem}`.
    """
    trigger = expect(event, Trigger.REST, Trigger.TICK, Trigger.OBJECT, Trigger.EMPTY)
    if trigger is Trigger.REST:
        return function.answer(event, context)
    return function.run(step_bulk_operations if trigger is Trigger.TICK else run_action, event, context)
