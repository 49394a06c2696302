"""How a subscription is shown on a terminal."""

import json
from collections.abc import Mapping
from typing import Any

from hooksaga.cli.subscription_flow import flow_in_brief, rate_in_brief


def state_of(subscription: Mapping[str, Any]) -> str:
    """Return the state of a subscription in one or two words."""
    if not subscription["active"]:
        return "inactive"
    if not subscription["verified"]:
        return "not verified"
    if subscription["pending_callback_url"]:
        return "new URL not verified"
    return "paused" if subscription["paused_at"] else "active"


def health_of(health: dict[str, Any]) -> str:
    """Return the health of an endpoint, with the failures since its last success."""
    failures = health["consecutive_failures"]
    if not failures:
        return health["state"]
    plural = "" if failures == 1 else "s"
    return f"{health['state']}: {failures} failure{plural}, {health['last_error_code']}"


def shown(subscription: dict[str, Any]) -> dict[str, object]:
    """Return the fields of an answer about one subscription as a person reads them."""
    subscription = {
        name: value for name, value in subscription.items() if name not in ("missed", "event_type")
    }
    headers = subscription["headers"]
    lines = ", ".join(f"{name}={value}" for name, value in headers.items())
    return {
        **subscription,
        "event_types": ", ".join(subscription["event_types"]),
        "filter": None
        if subscription["filter"] is None
        else json.dumps(subscription["filter"], ensure_ascii=False),
        "headers": lines or None,
        "description": subscription["description"] or None,
        "rate_limit": rate_in_brief(subscription["rate_limit"]),
        "flow": flow_in_brief(subscription["flow"]),
    }
