"""Admin: reading and requeueing, behind API Gateway and by direct invocation (spec §9)."""

from typing import Any

from shared.adapters.database import Role
from shared.runtime.admin_actions import run_action
from shared.runtime.api_function import ApiFunction
from shared.runtime.function import Event
from shared.runtime.routes import attempts, events, operations

function = ApiFunction(Role.ADMIN, [*events.ADMIN_ROUTES, *operations.ROUTES, *attempts.ROUTES])


def handler(event: Event, context: Any) -> Any:
    """An API Gateway REST proxy event, or `{"action": …}`; an action's fault is answered as `{"error": problem}`."""
    if "httpMethod" in event:
        return function.answer(event, context)
    return function.run(run_action, event, context)
