"""Console: the pages for operators and subscribers, behind API Gateway. What a page asks for, it asks as the role that
the API's own function would: it reads and requeues as `admin`, changes subscriptions as `subscriptions`, and sends test
events as `ingest`."""

import functools
from typing import Any

from shared.adapters.database import Role
from shared.runtime.api_function import ApiFunction
from shared.runtime.console.routes import ROUTES
from shared.runtime.function import Event
from shared.runtime.sending_function import SendingFunction
from shared.runtime.services import Services
from shared.runtime.triggers import Trigger, expect


class ConsoleFunction(SendingFunction, ApiFunction):
    """Its sessions are sealed, and its verifications call receivers."""

    @functools.cached_property
    def services(self) -> Services:
        return self.services_with(self.sender, self.box)


function = ConsoleFunction(Role.ADMIN, ROUTES)


def handler(event: Event, context: Any) -> Any:
    """An API Gateway REST proxy event."""
    expect(event, Trigger.REST)
    return function.answer(event, context)
