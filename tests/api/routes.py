"""Every route with the scopes that open it. A new route belongs here, or test_keys_and_tenants fails."""

from dataclasses import dataclass

from starlette.routing import Route as StarletteRoute

from hooksaga.api.app import ALL_ROUTES

EVENTS, SUBSCRIPTIONS, ADMIN, ERASE = "events:write", "subscriptions:write", "admin", "events:erase"
TYPES = "event-types:write"
ONE_TYPE = "/v1/event-types/{name}"


@dataclass(frozen=True)
class Route:
    """`path` may hold {id}, or the {name} of an event type."""

    method: str
    path: str
    scopes: tuple[str, ...]

    def at(self, identity: object) -> str:
        return self.path.replace("{id}", str(identity)).replace("{name}", str(identity))


_PROMISED = (
    Route("POST", "/v1/events", (EVENTS,)),
    Route("POST", "/v1/events/batch", (EVENTS,)),
    Route("POST", "/v1/subscriptions/{id}/test", (EVENTS,)),
    Route("GET", "/v1/events", (ADMIN,)),
    Route("GET", "/v1/events/{id}", (EVENTS, ADMIN)),
    Route("GET", "/v1/events/{id}/routing", (EVENTS, ADMIN)),
    Route("POST", "/v1/subscriptions", (SUBSCRIPTIONS,)),
    Route("GET", "/v1/subscriptions", (SUBSCRIPTIONS,)),
    Route("GET", "/v1/subscriptions/{id}", (SUBSCRIPTIONS,)),
    Route("PATCH", "/v1/subscriptions/{id}", (SUBSCRIPTIONS,)),
    Route("DELETE", "/v1/subscriptions/{id}", (SUBSCRIPTIONS,)),
    Route("POST", "/v1/subscriptions/{id}/verify", (SUBSCRIPTIONS,)),
    Route("POST", "/v1/subscriptions/{id}/rotate-secret", (SUBSCRIPTIONS,)),
    Route("POST", "/v1/subscriptions/{id}/pause", (SUBSCRIPTIONS,)),
    Route("POST", "/v1/subscriptions/{id}/resume", (SUBSCRIPTIONS,)),
    Route("POST", "/v1/subscriptions/{id}/test-filter", (SUBSCRIPTIONS, ADMIN)),
    Route("GET", "/v1/subscriptions/{id}/health", (SUBSCRIPTIONS,)),
    Route("POST", "/v1/portal-links", (SUBSCRIPTIONS,)),
    Route("GET", "/v1/event-types", (EVENTS, SUBSCRIPTIONS, TYPES, ADMIN)),
    Route("GET", ONE_TYPE, (EVENTS, SUBSCRIPTIONS, TYPES, ADMIN)),
    Route("PUT", ONE_TYPE, (TYPES, ADMIN)),
    Route("DELETE", ONE_TYPE, (TYPES, ADMIN)),
    Route("GET", "/v1/dead-letters", (ADMIN,)),
    Route("POST", "/v1/dead-letters/requeue", (ADMIN,)),
    Route("GET", "/v1/dead-letters/{id}", (ADMIN,)),
    Route("POST", "/v1/dead-letters/{id}/requeue", (ADMIN,)),
    Route("POST", "/v1/sagas/{id}/cancel", (ADMIN,)),
    Route("POST", "/v1/sagas/{id}/resend", (ADMIN,)),
    Route("POST", "/v1/sagas/{id}/retry-now", (ADMIN,)),
    Route("POST", "/v1/subscriptions/{id}/retry-now", (ADMIN,)),
    Route("GET", "/v1/attempts", (ADMIN,)),
    Route("GET", "/v1/attempts/follow", (ADMIN,)),
    Route("GET", "/v1/attempts/{id}", (ADMIN,)),
    Route("GET", "/v1/subscriptions/{id}/stats", (SUBSCRIPTIONS, ADMIN)),
    Route("POST", "/v1/erasures", (ERASE,)),
    Route("GET", "/v1/erasures", (ERASE, ADMIN)),
    Route("GET", "/v1/erasures/{id}", (ERASE, ADMIN)),
    Route("POST", "/v1/bulk-operations", (ADMIN,)),
    Route("GET", "/v1/bulk-operations", (ADMIN,)),
    Route("GET", "/v1/bulk-operations/{id}", (ADMIN,)),
    Route("PATCH", "/v1/bulk-operations/{id}", (ADMIN,)),
    Route("POST", "/v1/bulk-operations/{id}/pause", (ADMIN,)),
    Route("POST", "/v1/bulk-operations/{id}/resume", (ADMIN,)),
    Route("POST", "/v1/bulk-operations/{id}/stop", (ADMIN,)),
    Route("GET", "/v1/stats", (ADMIN,)),
)

SERVED = {
    (method, route.path_format)
    for route in ALL_ROUTES
    if isinstance(route, StarletteRoute)
    for method in route.methods or ()
    if method != "HEAD"
}

ROUTES = tuple(route for route in _PROMISED if (route.method, route.path) in SERVED)

BY_NAME = {f"{route.method} {route.path}": route for route in ROUTES}
WITH_ID = {name: route for name, route in BY_NAME.items() if "{id}" in route.path}
