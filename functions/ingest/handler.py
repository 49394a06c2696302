"""Ingest: the routes of events behind API Gateway, and the description of the API."""

from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.api import openapi, reference
from hooksaga.api.routes import events
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.function import Event
from hooksaga.aws.triggers import Trigger, expect

function = ApiFunction(Role.INGEST, [*events.INGEST_ROUTES, *openapi.ROUTES, *reference.ROUTES])


def handler(event: Event, context: Any) -> Any:
    """API Gateway REST proxy event in, its answer out."""
    expect(event, Trigger.REST)
    return function.answer(event, context)
