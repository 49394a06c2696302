"""Which function serves which path and method behind API Gateway."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.routing import BaseRoute, Route

Owner = TypeVar("Owner")


@dataclass(frozen=True, slots=True)
class GatewayRoute(Generic[Owner]):
    """methods: None for any method that no other route of the path has."""

    owner: Owner
    route: Route
    methods: frozenset[str] | None


def gateway_routes(functions: Iterable[tuple[Owner, Sequence[BaseRoute]]]) -> list[GatewayRoute[Owner]]:
    """Return one route per path and function. The first function of a path gets every method, so that it answers 405
    for those that nobody serves, where the gateway would answer 404; another function gets its own methods only."""
    taken: dict[str, Owner] = {}
    found: dict[tuple[str, int], GatewayRoute[Owner]] = {}
    for number, (owner, routes) in enumerate(functions):
        for route in routes:
            if not isinstance(route, Route):
                continue
            is_first = taken.setdefault(route.path, owner) is owner
            methods = frozenset(route.methods or ())
            earlier = found.get((route.path, number))
            if earlier is not None and earlier.methods is not None:
                methods |= earlier.methods
            found[route.path, number] = GatewayRoute(owner, route, None if is_first else methods)
    return list(found.values())
