"""ASGI application of some routes of the HTTP API. A function on AWS includes only its own routes."""

from collections.abc import Iterable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from hooksaga.api.http_api import is_fixed
from hooksaga.api.problem_answers import EXCEPTION_HANDLERS
from hooksaga.api.services import Services


def build_app(services: Services, routes: Iterable[BaseRoute]) -> Starlette:
    """Build the application: behind uvicorn on one machine, behind API Gateway on AWS."""
    app = Starlette(routes=fixed_paths_first(list(routes)), exception_handlers=EXCEPTION_HANDLERS)
    app.router.redirect_slashes = False
    app.state.services = services
    return app


def fixed_paths_first(routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Sort the routes in API Gateway's order of matching: by the path alone, and a fixed path before a pattern.

    A fixed path that also matches a pattern refuses methods that it lacks: `batch` is not an event's id.
    """
    fixed = [route for route in routes if is_fixed(route)]
    patterns = [route for route in routes if not is_fixed(route)]
    covered = dict.fromkeys(
        route.path for route in fixed if isinstance(route, Route) and _fits(route.path, patterns)
    )
    return [*fixed, *(Route(path, _RefusedMethod()) for path in covered), *patterns]


def _fits(path: str, patterns: Iterable[BaseRoute]) -> bool:
    scope: Scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
    return any(route.matches(scope)[0] is not Match.NONE for route in patterns)


class _RefusedMethod:
    """Accepts every method and answers that the path does not support it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise HTTPException(405)
