"""`hooksaga subscriptions match`: which recent events the filter of a subscription matches."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.subscription_options import Filter, Id, given, read_filter
from hooksaga.cli.terminal import echo, show_items


def match(
    id: Id,  # noqa: A002
    filter: Filter = None,  # noqa: A002
    last: Annotated[
        int, typer.Option(min=1, max=1000, help="How many of the newest events to compare.")
    ] = 100,
    *,
    api: Api,
) -> None:
    """Show which of the last events of its types the subscription's filter matches, or the one in --filter.

    For an event that does not match: the first condition that it does not meet. Nothing is sent or changed.
    """
    wanted = given(filter=read_filter(filter), last=last)
    found = api.ask("POST", f"/v1/subscriptions/{id}/test-filter", json=wanted)
    if found["items"]:
        show_items({"event": "id", "event type": "event_type", "result": _result}, found["items"])
    what = "the filter matches" if found["filter"] else "there is no filter: it matches"
    echo(f"{what} {found['matched']} of {found['compared']} events")


def _result(one: Mapping[str, Any]) -> str:
    return "matches" if one["matches"] else condition_in_words(one["failed_condition"])


def condition_in_words(failed: dict[str, Any]) -> str:
    """Return the condition that an event does not meet, and what the event has."""
    condition = f"{failed['name']} {json.dumps(failed['wanted'], ensure_ascii=False)}"
    if failed["name"] == "$or":
        return f"{condition} has no alternative that matches"
    has = "none" if failed["value"] is None else json.dumps(failed["value"], ensure_ascii=False)
    return f"{condition}, the event has {has}"
