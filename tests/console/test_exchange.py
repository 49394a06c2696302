"""The page of an attempt shows the whole exchange, no secret, and a command that repeats the request."""

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post, subscribe
from tests.console.endpoint import Endpoint
from tests.console.pages import Pages, Shown
from tests.console.test_browser import endpoint, running

__all__ = ["endpoint", "running"]

PAYLOAD = b'\n{"total": 1e400, "name": "O\'Brien & <b>",\n "items": [1.50, 20000000000000000000001]}\n'
SECRET = "token-of-the-shop"


@pytest.fixture(scope="module")
def pages(running: RunningSystem) -> Pages:
    return Pages(running.port).signed_in(running.key)


def attempt_of(running: RunningSystem, endpoint: Endpoint, **more: object) -> int:
    """The first attempt of a new subscription."""
    event_type = new_name("exchange")
    one = subscribe(running, running.api, event_type, endpoint.url, headers={"x-shop-token": SECRET}, **more)[
        "id"
    ]
    post(running.api, event_type, PAYLOAD)
    query = (
        "SELECT id FROM webhook_delivery_jobs WHERE subscription_id = %s AND finished_at IS NOT NULL"
        " ORDER BY id LIMIT 1"
    )
    return int(wait_until(lambda: running.rows(query, one), "an attempt")[0]["id"])


def part(shown: Shown, name: str) -> str:
    """The text of an element, as a browser copies it."""
    found = re.search(rf'<pre id="{name}"[^>]*>\n?(.*?)</pre>', shown.body, re.DOTALL)
    assert found is not None, name
    return html.unescape(found[1])


def test_the_whole_exchange_is_shown_without_secrets(
    running: RunningSystem, endpoint: Endpoint, pages: Pages
) -> None:
    endpoint.fixed.set()
    shown = pages.page(f"/console/deliveries/{attempt_of(running, endpoint)}")
    assert SECRET not in shown.body
    assert part(shown, "sent-body").encode() == endpoint.bodies[-1]
    assert "&#34;total&#34;: 1e400,\n" in shown.body, "formatted, with its numbers as they were"
    assert "20000000000000000000001" in shown.text
    sent = part(shown, "sent-headers")
    assert "webhook-signature: ***" in sent
    assert "x-shop-token: ***" in sent
    assert re.search(r"^webhook-timestamp: \d{10}$", sent, re.MULTILINE)
    assert "server: BaseHTTP" in part(shown, "received-headers")
    assert part(shown, "received-body") == "thank you"
    assert "Resend this delivery" in shown.text
    assert "Retry now" not in shown.text


def test_a_waiting_delivery_can_be_retried_from_its_attempt(
    running: RunningSystem, endpoint: Endpoint, pages: Pages
) -> None:
    endpoint.fixed.clear()
    attempt = attempt_of(running, endpoint, base_delay_seconds=3600, max_retry_limit=3)
    shown = wait_until(
        lambda: (
            found if "Retry now" in (found := pages.page(f"/console/deliveries/{attempt}")).text else None
        ),
        "it waits for its retry",
    )
    assert "Resend this delivery" not in shown.text
    endpoint.fixed.set()
    saga = running.rows("SELECT saga_id FROM webhook_delivery_jobs WHERE id = %s", attempt)[0]["saga_id"]
    assert pages.post(f"/console/sagas/{saga}/retry-now").status == 303
    done = "SELECT 1 FROM webhook_delivery_sagas WHERE id = %s AND status = 'Completed'"
    wait_until(lambda: running.rows(done, saga), "it is delivered")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
@pytest.mark.parametrize("format", ["payload", "cloudevents-structured", "cloudevents-binary"])
def test_the_command_for_curl_repeats_the_request(
    running: RunningSystem,
    endpoint: Endpoint,
    folder: Path,
    pages: Pages,
    format: str,  # noqa: A002
) -> None:
    endpoint.fixed.set()
    shown = pages.page(f"/console/deliveries/{attempt_of(running, endpoint, format=format)}")
    before = list(endpoint.bodies)
    trust = {"CURL_CA_BUNDLE": str(ensure_certificates(folder).ca), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash"], input=part(shown, "curl"), env=trust, capture_output=True, text=True, timeout=60
    )
    assert "200" in done.stdout.splitlines()[0], done.stderr
    assert endpoint.bodies == [*before, before[-1]]


def test_an_erased_event_leaves_no_body_and_no_command(
    running: RunningSystem, endpoint: Endpoint, pages: Pages
) -> None:
    endpoint.fixed.set()
    attempt = attempt_of(running, endpoint)
    event = running.rows(
        "SELECT e.webhook_id FROM webhook_delivery_jobs j JOIN webhook_delivery_sagas g ON g.id = j.saga_id"
        " JOIN events e ON e.id = g.event_id WHERE j.id = %s",
        attempt,
    )[0]["webhook_id"]
    wanted = {"event_id": f"evt_{event.hex}", "reason": "request 7"}
    assert running.api.post("/v1/erasures", wanted).status == 202
    erased = wait_until(
        lambda: (
            found
            if "None are stored." in (found := pages.page(f"/console/deliveries/{attempt}")).text
            else None
        ),
        "it is erased",
    )
    assert "O&#39;Brien" not in erased.body
    assert 'id="curl"' not in erased.body
    assert "Erased at" in erased.text
