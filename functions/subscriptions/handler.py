"""Subscriptions and the catalogue of event types: their routes through API Gateway, the verification handshake, and by
direct invocation the rotation of the key that seals secrets."""

import functools
from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.api.routes import event_types, subscriptions
from hooksaga.api.services import Services
from hooksaga.aws.api_function import ApiFunction
from hooksaga.aws.function import Event
from hooksaga.aws.secret_actions import run_secret_action
from hooksaga.aws.sending_function import SendingFunction
from hooksaga.aws.triggers import Trigger, expect


class SubscriptionsFunction(SendingFunction, ApiFunction):
    """A function whose routes call receivers."""

    @functools.cached_property
    def services(self) -> Services:
        return self.services_with(self.sender, self.box)


function = SubscriptionsFunction(Role.SUBSCRIPTIONS, [*subscriptions.ROUTES, *event_types.ROUTES])


def handler(event: Event, context: Any) -> Any:
    """Handle a REST proxy event, or `{"action": …}`. An error of an action is returned as `{"error": problem}`."""
    if expect(event, Trigger.REST, Trigger.OBJECT, Trigger.EMPTY) is Trigger.REST:
        return function.answer(event, context)
    return function.run(run_secret_action, event, context)
