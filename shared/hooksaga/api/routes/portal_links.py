"""/v1/portal-links: the link that an application gives to its own signed-in user."""

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.answers.portal_links import PortalLink
from hooksaga.api.http_api import authorize, bearer_of, read_model
from hooksaga.api.json_answers import answer_response
from hooksaga.api.portal_url import portal_url
from hooksaga.core.event_input import check_tenant
from hooksaga.core.moments import utc_text
from hooksaga.core.portal_links import NewPortalLink
from hooksaga.operations.api_keys import hash_api_key


async def create(request: Request) -> Response:
    """Create a link: 201. Its pages have the rights of the key, for this tenant, as long as the key is valid."""
    caller = await authorize(request, "subscriptions:write")
    wanted = await read_model(request, NewPortalLink, empty=b"{}")
    tenant_id = check_tenant(wanted.tenant_id, caller.tenant_id)
    url, ends = portal_url(request, hash_api_key(bearer_of(request)), wanted, tenant_id)
    expires_at = utc_text(datetime.fromtimestamp(ends, UTC))
    return answer_response(PortalLink(url, tenant_id, expires_at), 201)


ROUTES = [Route("/v1/portal-links", create, methods=["POST"])]
