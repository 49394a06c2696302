"""Console: pages for operators and subscribers, through API Gateway. Each request uses the role of the corresponding
API function: `admin` to read and requeue, `subscriptions` to change subscriptions, `ingest` to send test events."""

import functools
from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.api.services import Services
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.function import Event
from hooksaga.aws.sending_function import SendingFunction
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.console.routes import ROUTES


class ConsoleFunction(SendingFunction, ApiFunction):
    """A function with sealed sessions that calls receivers for verification."""

    @functools.cached_property
    def services(self) -> Services:
        return self.services_with(self.sender, self.box)


function = ConsoleFunction(Role.ADMIN, ROUTES, compile_schema=compile_schema)


def handler(event: Event, context: Any) -> Any:
    """Handle a REST proxy event of API Gateway."""
    expect(event, Trigger.REST)
    return function.answer(event, context)
