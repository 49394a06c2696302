"""A bad night, as the person sees it who is woken: an endpoint dies, its backlog grows, the alarms' conditions become
true; it is found with `explain`, fixed, requeued at a rate, and the audit is clean."""

import json
import os
import subprocess
import sys
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.api.running_system import wait_until
from tests.e2e.world import Subscriber, World

pytestmark = pytest.mark.slow

EVENTS = 40
RATE = 40
ALARM_AT = 20
"""Dead letters in five minutes that set off the alarm `dead-letters` (docs/operations/alarms.md)."""


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    return {"max_retry_limit": 2, "breaker_failures": 1000}


def hooksaga(world: World, *arguments: str) -> str:
    """Return the output of a successful command, on stdout and stderr."""
    done = run(world, *arguments)
    return done.stdout + done.stderr


def run(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HOOKSAGA_")}
    access = {
        "HOOKSAGA_API_URL": f"http://127.0.0.1:{world.api.port}",
        "HOOKSAGA_API_KEY": world.api.key or "",
    }
    done = subprocess.run(
        [sys.executable, "-m", "hooksaga.cli.app", *arguments],
        env={**variables, **access, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done


def as_json(world: World, *arguments: str) -> Any:
    return json.loads(run(world, *arguments, "--json").stdout)


def total(world: World, name: str, **labels: str) -> float:
    """A counter of /metrics, as an alarm sums it up."""
    page = httpx.get(f"http://127.0.0.1:{world.api.port}/metrics", trust_env=False).text
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


@pytest.mark.long
def test_an_endpoint_dies_at_night_and_nothing_is_lost(world: World) -> None:
    shop, neighbour = world.subscribe("ok"), world.subscribe("ok")
    watcher = world.subscribe(event_type="hooksaga.subscription.disabled")
    before = total(world, "hooksaga_sagas_dead_lettered_total")
    world.ended(world.post(shop))

    # The endpoint begins to fail. Its neighbour notices nothing.
    world.recorder.script(shop.path, 503)
    lost = [world.post(shop, b'{"n": %d}' % number) for number in range(EVENTS)]
    for event_id in lost:
        assert world.ended(event_id)["status"] == "DeadLettered"
    assert world.ended(world.post(neighbour))["status"] == "Completed"
    assert total(world, "hooksaga_sagas_dead_lettered_total") - before >= ALARM_AT
    assert total(world, "hooksaga_delivery_failed_total", error_class="http_5xx") >= 2 * EVENTS

    # Support asks: why did my customer not get it?
    told = hooksaga(world, "explain", lost[0])
    assert "http_503" in told
    assert f"subscription {shop.id}" in told
    failed = as_json(world, "attempts", "list", "--subscription", str(shop.id), "--status-class", "5xx")
    assert {one["trigger"] for one in failed["items"]} == {"first", "retry"}
    assert {(one["attempt_number"], one["max_attempts"]) for one in failed["items"]} == {(1, 2), (2, 2)}
    shown = hooksaga(world, "subscriptions", "show", str(shop.id))
    assert "http_503" in shown
    assert "success" in shown.lower()

    # Its owner takes it away altogether: it says 410, is switched off, and who asked to be told is told.
    world.recorder.script(shop.path, 410)
    gone = world.post(shop)
    world.recorder.wait_for(watcher.path, 1, 30)
    assert world.ended(gone)["status"] == "DeadLettered"
    unheard = [world.post(shop, b'{"late": %d}' % number) for number in range(5)]
    for event_id in unheard:
        wait_until(lambda: has_no_saga(world, event_id), "it was routed past the inactive subscription")  # noqa: B023
    assert "inactive" in hooksaga(world, "explain", unheard[0])

    fix(world, shop)
    requeue_and_backfill(world, shop)
    for event_id in [*lost, gone, *unheard]:
        assert world.ended(event_id, 60)["status"] == "Completed"
    arrived = world.recorder.events(shop.path)
    assert {*lost, gone, *unheard} <= {one.header("webhook-id") for one in arrived}
    causes = {one.header("webhook-id"): dict(one.headers).get("hooksaga-started-by") for one in arrived}
    assert [causes[event_id] for event_id in (gone, *unheard)] == ["requeue"] + ["backfill"] * len(unheard)
    world.assert_audit_finds_nothing()


def has_no_saga(world: World, event_id: str) -> bool:
    event = world.api.good("GET", f"/v1/events/{event_id}")
    return event["routing"]["state"] == "routed" and not event["sagas"]


def fix(world: World, shop: Subscriber) -> None:
    """Switching it on again tells what to type next."""
    world.recorder.script(shop.path, 200)
    told = hooksaga(world, "subscriptions", "update", str(shop.id), "--active")
    assert f"hooksaga dead-letters requeue --subscription {shop.id}" in told
    assert f"hooksaga subscriptions backfill {shop.id} --since" in told


def requeue_and_backfill(world: World, shop: Subscriber) -> None:
    which = ("--subscription", str(shop.id))
    counted = as_json(world, "dead-letters", "requeue", *which, "--rate", str(RATE), "--dry-run")
    assert counted["matched"] == EVENTS + 1
    hooksaga(world, "dead-letters", "requeue", *which, "--rate", str(RATE), "--reason", "the shop is back")
    (operation,) = world.api.good("GET", "/v1/bulk-operations")["items"]
    assert (operation["status"], operation["done"], operation["reason"]) == (
        "Completed",
        EVENTS + 1,
        "the shop is back",
    )
    never_over_the_rate(world, shop)
    since = world.running.rows("SELECT to_json(min(created_at))#>>'{}' AS at FROM events")[0]["at"]
    hooksaga(world, "subscriptions", "backfill", str(shop.id), "--since", since, "--rate", "100")


def never_over_the_rate(world: World, shop: Subscriber) -> None:
    """In no second were more requeued deliveries due than the rate allows, one more for the second's edge."""

    def all_begun() -> list[float]:
        due = world.running.rows(
            "SELECT j.attempt_at AS at FROM webhook_delivery_jobs j JOIN webhook_delivery_sagas s ON s.id = j.saga_id "
            "WHERE s.subscription_id = %s AND s.requeued_from IS NOT NULL AND j.attempt_number = 1 ORDER BY 1",
            shop.id,
        )
        return [row["at"].timestamp() for row in due] if len(due) == EVENTS + 1 else []

    moments = wait_until(all_begun, "each requeued delivery has its job")
    assert max(sum(begin <= one < begin + 1 for one in moments) for begin in moments) <= RATE + 1
