"""The HTTP API as one ASGI application: behind uvicorn on one machine, behind API Gateway on AWS."""

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from shared.runtime import openapi, reference
from shared.runtime.http_api import EXCEPTION_HANDLERS
from shared.runtime.routes import attempts, bulk_operations, events, operations, subscriptions
from shared.runtime.services import Services

ALL_ROUTES: tuple[BaseRoute, ...] = (
    *events.INGEST_ROUTES,
    *events.ADMIN_ROUTES,
    *subscriptions.ROUTES,
    *operations.ROUTES,
    *attempts.ROUTES,
    *bulk_operations.ROUTES,
    *openapi.ROUTES,
    *reference.ROUTES,
)


def build_app(services: Services, routes: Iterable[BaseRoute] = ALL_ROUTES) -> Starlette:
    """An application with these routes. A function on AWS takes only the routes that are its own."""
    app = Starlette(routes=list(routes), exception_handlers=EXCEPTION_HANDLERS)
    app.router.redirect_slashes = False
    app.state.services = services
    return app
