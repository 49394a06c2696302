"""API keys: list, create, revoke, for operators of all tenants. A new key cannot have more rights than its
creator's."""

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.api.http_api import Forbidden, path_id, services_of
from hooksaga.console.forms import EMPTY_FIELDS, Fields
from hooksaga.console.pages import action, page, redirect, render
from hooksaga.console.session import Visitor
from hooksaga.console.shown_once import forget_secret, redirect_to_show, secret_to_show
from hooksaga.core.errors import InvalidInput, NotFound
from hooksaga.core.event_input import check_tenant
from hooksaga.core.scopes import Scope
from hooksaga.operations import api_keys


@page("admin")
async def list_all(request: Request, visitor: Visitor) -> Response:
    visitor.need_all_tenants()
    shown = await _show(request, visitor, key=secret_to_show(request, visitor))
    return forget_secret(request, visitor, shown)


async def _show(
    request: Request,
    visitor: Visitor,
    *,
    key: str | None = None,
    form: Fields = EMPTY_FIELDS,
    wrong: InvalidInput | None = None,
) -> Response:
    rows = await services_of(request).admin.run(api_keys.list_api_keys)
    return render(
        request,
        visitor,
        "keys.html",
        rows=rows,
        scopes=[scope for scope in Scope if visitor.may(scope)],
        key=key,
        form=form,
        wrong=wrong,
        back="/console/keys",
    )


@action("admin")
async def create(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Create a key and show it once, or show the form with its error."""
    visitor.need_all_tenants()
    try:
        name, scopes = _read(form)
        tenant_id = form.text("tenant_id")
        tenant_id = None if tenant_id is None else check_tenant(tenant_id, None)
    except InvalidInput as error:
        return await _show(request, visitor, form=form, wrong=error)
    if not set(scopes) <= visitor.scopes:
        raise Forbidden("a key that is made here may do no more than your own")
    key = api_keys.generate_api_key()
    await services_of(request).admin.run(
        api_keys.create_api_key, key, name=name, tenant_id=tenant_id, scopes=scopes
    )
    return redirect_to_show(request, visitor, "/console/keys", key)


def _read(form: Fields) -> tuple[str, list[str]]:
    name = form.text("name")
    if name is None:
        raise InvalidInput("invalid_field", "name: is required", field="name", status=422)
    scopes: list[str] = [scope for scope in Scope if form.raw(f"scope:{scope}")]
    if not scopes:
        raise InvalidInput("invalid_field", "scopes: choose at least one", field="scopes", status=422)
    return name, scopes


@action("admin")
async def revoke(request: Request, visitor: Visitor, form: Fields) -> Response:
    """Revoke a key, which also ends its sessions."""
    visitor.need_all_tenants()
    key_id = path_id(request, NotFound("api_key_not_found", "there is no such key"))
    await services_of(request).admin.run(api_keys.revoke_api_key, key_id)
    services_of(request).key_checks.forget()
    return redirect(request, "/console/keys")
