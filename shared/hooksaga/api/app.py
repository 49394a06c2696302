"""Application with all routes of the HTTP API, for one machine."""

from starlette.routing import BaseRoute

from hooksaga.api import openapi, reference
from hooksaga.api.routes import (
    attempts,
    bulk_operations,
    erasures,
    event_types,
    events,
    filter_test,
    operations,
    subscriptions,
)

ALL_ROUTES: tuple[BaseRoute, ...] = (
    *events.INGEST_ROUTES,
    *events.ADMIN_ROUTES,
    *subscriptions.ROUTES,
    *event_types.ROUTES,
    *operations.ROUTES,
    *attempts.ROUTES,
    *filter_test.ROUTES,
    *bulk_operations.ROUTES,
    *erasures.ROUTES,
    *openapi.ROUTES,
    *reference.ROUTES,
)
