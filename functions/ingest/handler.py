"""Ingest: the routes of events behind API Gateway, and the description of the API (spec §5, §8)."""

from typing import Any

from shared.adapters.database import Role
from shared.runtime import openapi, reference
from shared.runtime.api_function import ApiFunction
from shared.runtime.function import Event
from shared.runtime.routes import events
from shared.runtime.triggers import Trigger, expect

function = ApiFunction(Role.INGEST, [*events.INGEST_ROUTES, *openapi.ROUTES, *reference.ROUTES])


def handler(event: Event, context: Any) -> Any:
    """API Gateway REST proxy event in, its answer out."""
    expect(event, Trigger.REST)
    return function.answer(event, context)
