"""The form of a subscription: from its fields to the API's content, and back."""

import json
from typing import Any

from hooksaga.console.forms import Fields
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import check_json_text
from hooksaga.operations.subscriptions import Subscription

MAX_FILTER_BYTES = 65_536
TYPE = "type:"
"""Begin of the names of fields with one event type each."""

_YES, _NO = "yes", "no"
_CHOICES = ("ordered", "circuit_breaker")


def content_of(form: Fields) -> dict[str, Any]:
    """Return the content of a POST or PATCH; a choice that the form does not have is left out. Raises InvalidInput."""
    content = {
        "event_types": _event_types(form),
        "filter": _filter(form),
        "callback_url": form.raw("callback_url").strip(),
        "description": form.raw("description").strip(),
        "max_retry_limit": form.number("max_retry_limit"),
        "base_delay_seconds": form.decimal("base_delay_seconds"),
        "timeout_seconds": form.decimal("timeout_seconds"),
        "max_in_flight": form.number("max_in_flight"),
        "rate_limit": _rate_limit(form),
        "max_wait_seconds": form.decimal("max_wait_seconds"),
    }
    choices: dict[str, Any] = {name: form.raw(name) == _YES for name in _CHOICES if form.raw(name)}
    return content | choices | ({"format": form.raw("format")} if form.raw("format") else {})


def _event_types(form: Fields) -> list[str]:
    """Return the types that were typed and those that were ticked, each once."""
    typed = form.raw("event_types").replace(",", " ").split()
    chosen = [name.removeprefix(TYPE) for name in form.names() if name.startswith(TYPE)]
    return list(dict.fromkeys([*chosen, *typed]))


def at_creation(form: Fields) -> dict[str, object]:
    """Return what a form of a new subscription has beyond that of a change."""
    return {
        "tenant_id": form.text("tenant_id"),
        "secret": form.raw("secret").strip() or None,
        "verified": form.raw("verified") == "yes",
        "verified_reason": form.raw("verified_reason").strip(),
    }


def _filter(form: Fields) -> Any:
    text = form.raw("filter").strip()
    if not text:
        return None
    try:
        check_json_text(text.encode(errors="surrogatepass"), MAX_FILTER_BYTES)
        return json.loads(text)
    except (ValueError, InvalidInput) as error:
        raise InvalidInput("invalid_field", f"filter: {error}", field="filter", status=422) from None


def _rate_limit(form: Fields) -> dict[str, Any] | None:
    """Return the rate limit; a count without a period is per second."""
    count, seconds = form.number("rate_limit.count"), form.decimal("rate_limit.per_seconds")
    if count is None and seconds is None:
        return None
    return {"count": count, "per_seconds": 1.0 if seconds is None else seconds}


def filled(row: Subscription) -> dict[str, str]:
    """Return the fields of the form with what is set."""
    values: dict[str, Any] = {
        "event_types": ", ".join(row.event_types),
        "filter": row.filter,
        "callback_url": row.pending_callback_url or row.callback_url,
        "description": row.description,
        "max_retry_limit": row.max_retry_limit,
        "base_delay_seconds": row.base_delay_seconds,
        "timeout_seconds": row.timeout_seconds,
        "max_in_flight": row.max_in_flight,
        "rate_limit.count": row.rate_limit_count,
        "rate_limit.per_seconds": row.rate_limit_seconds,
        "max_wait_seconds": row.max_wait_seconds,
        "format": row.format,
    }
    chosen = {name: _YES if getattr(row, name) else _NO for name in _CHOICES}
    return {name: "" if value is None else str(value) for name, value in values.items()} | chosen
