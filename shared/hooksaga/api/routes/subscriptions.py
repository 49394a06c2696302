"""/v1/subscriptions: configuration, and the verification handshake."""

import os

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.api.answers import subscriptions as answers
from hooksaga.api.http_api import (
    VERIFY_SCOPE,
    Caller,
    Forbidden,
    authorize,
    read_model,
    services_of,
    subscription_id_of,
)
from hooksaga.api.json_answers import answer_response
from hooksaga.api.list_answers import FORMAT, list_response
from hooksaga.api.lists import check_list_parameters
from hooksaga.api.query_parameters import query_tenant, query_text
from hooksaga.api.routes import portal_links, subscription_flow, subscription_health
from hooksaga.api.routes.subscription_flow import shown
from hooksaga.api.routes.subscription_lists import subscription_pages
from hooksaga.api.services import Services
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import check_tenant
from hooksaga.core.models import NewSubscription, SecretRotation, SubscriptionChange
from hooksaga.core.signing import encode_secret
from hooksaga.operations import subscriptions, verify_subscription
from hooksaga.operations.subscriptions import Subscription
from hooksaga.operations.telemetry import note_verification_failed
from hooksaga.operations.verify_subscription import VerificationFailed

SECRET_BYTES = 32


async def create(request: Request) -> Response:
    """Create a subscription: 201 with it and its secret, which is shown only this once."""
    caller = await authorize(request, "subscriptions:write")
    new = await read_model(request, NewSubscription)
    created, secret = await create_for(services_of(request), caller, new)
    return answer_response(await _with_secret(request, created, secret), 201)


async def create_for(services: Services, caller: Caller, new: NewSubscription) -> tuple[Subscription, str]:
    """Return the new subscription and its secret: the given one, or a random one. Raises InvalidInput for a tenant or
    address that is not allowed, or Forbidden for `verified` without the scope for it."""
    if new.verified and not caller.may_verify:
        raise Forbidden(f"verified: this key needs the scope {VERIFY_SCOPE}")
    tenant_id = check_tenant(new.tenant_id, caller.tenant_id)
    callback_url = subscriptions.normal_callback_url(new.callback_url, services.settings.address_policy)
    secret, box = new.secret or _random_secret(), box_of(services)
    created = await services.subscriptions.run(
        subscriptions.create_subscription,
        new,
        tenant_id=tenant_id,
        callback_url=callback_url,
        sealed_secret=box.seal(secret),
        box=box,
        key_id=caller.key_id,
    )
    return created, secret


async def list_all(request: Request) -> Response:
    """List subscriptions with the health of their endpoints, newest first, by any of the filters."""
    caller = await authorize(request, "subscriptions:write")
    check_list_parameters(request, FORMAT, "tenant_id", "event_type")
    tenant_id = query_tenant(request, caller.tenant_id)
    read = subscription_pages(
        services_of(request), tenant_id=tenant_id, event_type=query_text(request, "event_type")
    )
    return await list_response(request, caller, read, item=answers.ListedSubscription, name="subscriptions")


async def show(request: Request) -> Response:
    caller = await authorize(request, "subscriptions:write")
    return answer_response(await shown(services_of(request), await _read(request, caller)))


async def change(request: Request) -> Response:
    """Change a subscription and return it, with `missed` if this enables a disabled one."""
    caller = await authorize(request, "subscriptions:write")
    services = services_of(request)
    subscription_id = subscription_id_of(request)
    wanted = await read_model(request, SubscriptionChange)
    missed = await subscription_health.missed_by(request, caller, subscription_id) if wanted.active else UNSET
    changed = await services.subscriptions.run(
        subscriptions.change_subscription,
        subscription_id,
        wanted,
        tenant_id=caller.tenant_id,
        policy=services.settings.address_policy,
        box=box_of(services),
    )
    await services.wakes.subscriptions_due({subscription_id: None})
    return answer_response(await shown(services, changed, answers.ChangedSubscription, missed=missed))


async def delete(request: Request) -> Response:
    """Delete a subscription: 204. It receives nothing from now on."""
    caller = await authorize(request, "subscriptions:write")
    services, subscription_id = services_of(request), subscription_id_of(request)
    await services.subscriptions.run(
        subscriptions.deactivate_subscription, subscription_id, tenant_id=caller.tenant_id
    )
    await services.wakes.subscriptions_due({subscription_id: None})
    return Response(status_code=204)


async def rotate_secret(request: Request) -> Response:
    """Rotate the secret: 200 with the subscription and its new secret; both sign until the old one expires."""
    caller = await authorize(request, "subscriptions:write")
    subscription_id = subscription_id_of(request)
    asked = await read_model(request, SecretRotation, empty=b"{}")
    rotated, secret = await rotate_for(services_of(request), caller, subscription_id, asked)
    return answer_response(await _with_secret(request, rotated, secret))


async def rotate_for(
    services: Services, caller: Caller, subscription_id: int, asked: SecretRotation
) -> tuple[Subscription, str]:
    """Return the subscription and its new secret. Raises NotFound `subscription_not_found`."""
    secret = asked.secret or _random_secret()
    rotated = await services.subscriptions.run(
        subscriptions.rotate_secret,
        subscription_id,
        tenant_id=caller.tenant_id,
        sealed_secret=box_of(services).seal(secret),
        overlap_seconds=asked.overlap_seconds,
    )
    return rotated, secret


async def verify(request: Request) -> Response:
    """Verify: 200 with the subscription, or 422 with the reason. No connection is held during the challenge."""
    caller = await authorize(request, "subscriptions:write")
    services = services_of(request)
    return answer_response(await shown(services, await verify_for(services, await _read(request, caller))))


async def verify_for(services: Services, subscription: Subscription) -> Subscription:
    """Return the subscription once its address has answered the challenge.

    Raises InvalidInput `verification_failed` with the details that a subscriber may know; the log has the rest.
    """
    if subscription.verified and subscription.pending_callback_url is None:
        return subscription
    sealed = await services.subscriptions.run(verify_subscription.sealed_secrets, subscription.id)
    try:
        url = await verify_subscription.challenge(_sender(services), box_of(services), subscription, sealed)
    except VerificationFailed as failed:
        note_verification_failed(subscription.id, failed.error_code)
        raise InvalidInput("verification_failed", str(failed), field="callback_url", status=422) from failed
    return await services.subscriptions.run(verify_subscription.mark_verified, subscription.id, url)


def _random_secret() -> str:
    return encode_secret(os.urandom(SECRET_BYTES))


def box_of(services: Services) -> SecretBox:
    assert services.box is not None, "who has these routes has the keys"
    return services.box


def _sender(services: Services) -> HttpSender:
    assert services.sender is not None, "who has these routes calls receivers"
    return services.sender


async def _read(request: Request, caller: Caller) -> Subscription:
    subscription_id = subscription_id_of(request)
    return await services_of(request).subscriptions.run(
        subscriptions.show_subscription, subscription_id, tenant_id=caller.tenant_id
    )


async def _with_secret(request: Request, subscription: Subscription, secret: str) -> answers.Subscription:
    return await shown(services_of(request), subscription, answers.SubscriptionWithSecret, secret=secret)


ROUTES = [
    Route("/v1/subscriptions", create, methods=["POST"]),
    Route("/v1/subscriptions", list_all, methods=["GET"]),
    Route("/v1/subscriptions/{id}", show, methods=["GET"]),
    Route("/v1/subscriptions/{id}", change, methods=["PATCH"]),
    Route("/v1/subscriptions/{id}", delete, methods=["DELETE"]),
    Route("/v1/subscriptions/{id}/verify", verify, methods=["POST"]),
    Route("/v1/subscriptions/{id}/rotate-secret", rotate_secret, methods=["POST"]),
    *subscription_flow.ROUTES,
    *subscription_health.ROUTES,
    *portal_links.ROUTES,
]
