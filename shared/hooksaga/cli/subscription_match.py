"""`hooksaga subscriptions match`: which recent events the filter of a subscription matches."""

import json
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.subscription_options import Filter, Id, given, read_filter
from hooksaga.cli.terminal import AsJson, echo, show_json, show_table


def match(
    id: Id,  # noqa: A002
    filter: Filter = None,  # noqa: A002
    last: Annotated[
        int, typer.Option(min=1, max=1000, help="How many of the newest events to compare.")
    ] = 100,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show which of the last events of its types the subscription's filter matches, or the one in --filter.

    For an event that does not match: the first condition that it does not meet. Nothing is sent or changed.
    """
    wanted = given(filter=read_filter(filter), last=last)
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", f"/v1/subscriptions/{id}/test-filter", json=wanted)
        found = client.read(answer)
    if as_json:
        show_json(answer)
        return
    rows = [
        (
            one["id"],
            one["event_type"],
            "matches" if one["matches"] else condition_in_words(one["failed_condition"]),
        )
        for one in found["items"]
    ]
    if rows:
        show_table(("event", "event type", "result"), rows)
    what = "the filter matches" if found["filter"] else "there is no filter: it matches"
    echo(f"{what} {found['matched']} of {found['compared']} events")


def condition_in_words(failed: dict[str, Any]) -> str:
    """Return the condition that an event does not meet, and what the event has."""
    condition = f"{failed['name']} {json.dumps(failed['wanted'], ensure_ascii=False)}"
    if failed["name"] == "$or":
        return f"{condition} has no alternative that matches"
    has = "none" if failed["value"] is None else json.dumps(failed["value"], ensure_ascii=False)
    return f"{condition}, the event has {has}"
