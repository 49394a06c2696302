"""An ASGI application of some routes of the HTTP API. A function on AWS takes only the routes that are its own."""

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from shared.runtime.http_api import EXCEPTION_HANDLERS
from shared.runtime.services import Services


def build_app(services: Services, routes: Iterable[BaseRoute]) -> Starlette:
    """Behind uvicorn on one machine, behind API Gateway on AWS."""
    app = Starlette(routes=list(routes), exception_handlers=EXCEPTION_HANDLERS)
    app.router.redirect_slashes = False
    app.state.services = services
    return app
