"""Lambda function for some routes of the HTTP API, with the same application as in every other deployment."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from hooksaga.adapters.database import Role
from hooksaga.adapters.queues import Queues
from hooksaga.api.asgi import build_app
from hooksaga.api.http_api import Caller
from hooksaga.api.services import Services, build_services
from hooksaga.aws.dispatch import ask_to_cancel, wake_orchestrator_for_subscriptions, wake_router
from hooksaga.aws.function import Event, Function, Invocation
from hooksaga.aws.gateway import answer_gateway
from hooksaga.core.event_catalogue import SchemaCompiler
from hooksaga.core.trace import Traced

if TYPE_CHECKING:  # only the functions that call receivers load them
    from hooksaga.adapters.http_sender import HttpSender
    from hooksaga.adapters.secret_box import SecretBox


class QueueWakes:
    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    async def events_accepted(self, events: Sequence[Traced]) -> None:
        await wake_router(self._queues, events)

    async def subscriptions_due(self, traces: Mapping[int, str | None]) -> None:
        await wake_orchestrator_for_subscriptions(self._queues, traces)

    async def cancel_saga(self, saga: Traced) -> None:
        await ask_to_cancel(self._queues, saga)


class ApiFunction(Function):
    """A function for the given routes. `answer` handles the proxy events that API Gateway sends for them.

    compile_schema: for routes that accept events.
    """

    def __init__(
        self, role: Role, routes: Sequence[BaseRoute], *, compile_schema: SchemaCompiler | None = None
    ) -> None:
        super().__init__(role)
        self.routes = routes
        self._compile_schema = compile_schema

    @functools.cached_property
    def services(self) -> Services:
        return self.services_with(None, None)

    def services_with(self, sender: "HttpSender | None", box: "SecretBox | None") -> Services:
        """Build the services of the routes; without sender and box if no route calls receivers."""
        return build_services(
            self.settings,
            self.address,
            sender,
            box,
            QueueWakes(self.queues),
            sessions=1,
            keys_role=self.role,
            compile_schema=self._compile_schema,
        )

    @functools.cached_property
    def _app(self) -> Starlette:
        return build_app(self.services, self.routes)

    async def answer_request(self, event: Event, operator: Caller | None = None) -> dict[str, Any]:
        """Answer an API Gateway REST proxy event. operator: name of a caller without a key."""
        self.services.check_before_next_use()
        return await answer_gateway(self._app, event, operator)

    def answer(self, event: Event, context: Any) -> Any:
        return self.run(_answer, event, context)


async def _answer(function: Function, invocation: Invocation) -> dict[str, Any]:
    assert isinstance(function, ApiFunction)
    return await function.answer_request(invocation.event)
