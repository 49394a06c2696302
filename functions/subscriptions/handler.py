"""Subscriptions: their routes behind API Gateway, and the verification handshake (spec §5, §8)."""

from typing import Any

from shared.adapters.database import Role
from shared.runtime.api_function import ApiFunction
from shared.runtime.function import Event
from shared.runtime.routes import subscriptions

function = ApiFunction(Role.SUBSCRIPTIONS, subscriptions.ROUTES)


def handler(event: Event, context: Any) -> Any:
    """API Gateway REST proxy event in, its answer out."""
    return function.answer(event, context)
