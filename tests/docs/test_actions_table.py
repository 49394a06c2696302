"""The table of docs/operations/README.md says where each action is; commands are checked with those of all pages."""

import json
import re
from pathlib import Path

from hooksaga.console.routes import CONSOLE_ROUTES, PORTAL_ROUTES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "README.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("## Where each action is")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| action")
]
PATHS = {
    "resend a delivery": "/sagas/{id}/resend",
    "resend many deliveries": "/deliveries/resend",
    "retry a waiting delivery now": "/sagas/{id}/retry-now",
    "retry all of a subscription now": "/subscriptions/{id}/retry-now",
    "cancel a waiting delivery": "/sagas/{id}/cancel",
    "requeue a dead letter": "/dead-letters/{id}/requeue",
    "requeue many dead letters": "/dead-letters/requeue",
    "deliver what was missed": "/subscriptions/{id}/backfill",
    "outcomes of a bulk operation, pause, resume, stop": "/bulk-operations/{id}",
    "create a subscription, with your own secret": "/subscriptions/new",
    "vouch for an address": "",
    "verify an endpoint": "/subscriptions/{id}/verify",
    "rotate the secret": "/subscriptions/{id}/rotate-secret",
    "enable, disable, change": "/subscriptions/{id}/edit",
    "pause": "/subscriptions/{id}/pause",
    "resume, or discard what waits": "/subscriptions/{id}/resume",
    "send a test event": "/subscriptions/{id}/test-event",
    "search events": "/search",
    "lists by tenant, state, code and time; export": "/deliveries",
    "the exchange of an attempt": "/deliveries/{id}",
    "health of an endpoint": "/subscriptions/{id}",
    "erase": "/erasures",
}
"""Path of each action on the pages. To vouch for an address is a field of the form, which the portal refuses."""


def test_the_table_has_every_action_once() -> None:
    assert [row[0] for row in ROWS] == list(PATHS)


def test_the_api_has_what_the_table_says() -> None:
    described = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    named = [re.findall(r"`([A-Z]+) (/v1[^`]*)`", row[1])[0] for row in ROWS]
    assert {
        f"{method} {path}" for method, path in named if method.lower() not in described.get(path, {})
    } == set()


def test_console_and_portal_have_what_the_table_says() -> None:
    pages = {"console": {one.path for one in CONSOLE_ROUTES}, "portal": {one.path for one in PORTAL_ROUTES}}
    said = {
        (place, row[0], cell != "no")
        for row in ROWS
        if PATHS[row[0]]
        for place, cell in zip(pages, row[3:], strict=True)
    }
    assert said == {
        (place, action, f"/{place}{path}" in paths)
        for place, paths in pages.items()
        for action, path in PATHS.items()
        if path
    }
