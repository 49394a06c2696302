"""Ingest: the routes of events through API Gateway, and the API description."""

from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.api import openapi, reference
from hooksaga.api.routes import events
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.function import Event
from hooksaga.aws.triggers import Trigger, expect

function = ApiFunction(
    Role.INGEST,
    [*events.INGEST_ROUTES, *openapi.ROUTES, *reference.ROUTES],
    compile_schema=compile_schema,
)


def handler(event: Event, context: Any) -> Any:
    expect(event, Trigger.REST)
    return function.answer(event, context)
