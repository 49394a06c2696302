"""Console: the pages for operators and subscribers, behind API Gateway. What a page asks for, it asks as the role that
the API's own function would: it reads and requeues as `admin`, changes subscriptions as `subscriptions`, and sends test
events as `ingest`."""

import functools
from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.api.services import Services
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.function import Event
from hooksaga.aws.sending_function import SendingFunction
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.console.routes import ROUTES


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
