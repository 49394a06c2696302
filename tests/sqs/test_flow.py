"""Flow control through the functions and their queues, without the orchestrator's schedule: messages alone."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hooksaga.local.sqs.event_source import Batch
from hooksaga.local.sqs.queue_set import WORK_QUEUES
from tests.sqs.conftest import until
from tests.sqs.running_pipeline import Pipeline, running_pipeline

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]

RATE_SECONDS = 3


class Seen:
    """Keeps the bodies of what the functions are given, by queue."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[dict[str, Any]]] = {queue: [] for queue in WORK_QUEUES}

    def options(self) -> dict[str, Any]:
        return {"mappings": {queue: {"disturb": self._of(queue)} for queue in WORK_QUEUES}}

    def _of(self, queue: str) -> Any:
        def keep(batch: Batch) -> list[Batch]:
            self.bodies[queue] += [json.loads(message["Body"]) for message in batch]
            return [batch]

        return keep


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(
    module_database: str,
    sqs_endpoint: str,
    runtime_client: None,
    seen: Seen,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Pipeline]:
    folder: Path = tmp_path_factory.mktemp("flow")
    async with running_pipeline(folder, module_database, sqs_endpoint, seen.options()) as pipeline:
        await pipeline.system.schedules["orchestrator"].stop()
        yield pipeline


def states(pipeline: Pipeline, event_type: str) -> Counter[str]:
    return Counter(saga["status"] for saga in pipeline.sagas(event_type))


async def post_all(pipeline: Pipeline, event_type: str, count: int) -> None:
    """In one batch."""
    events = [{"event_type": event_type, "payload": number} for number in range(count)]
    await pipeline.call("POST", "/v1/events/batch", json={"items": events})


@pytest.mark.long
async def test_a_receiver_that_was_slow_is_served_by_the_slow_queue(pipeline: Pipeline, seen: Seen) -> None:
    _, path = await pipeline.subscribe("f.slow", "/slow/2200")
    await pipeline.post("f.slow")
    assert await pipeline.until_ended("f.slow", 1) == {"Completed": 1}
    assert len(seen.bodies["delivery-slow"]) == 0
    await pipeline.post("f.slow")
    assert await pipeline.until_ended("f.slow", 2) == {"Completed": 2}
    (job,) = pipeline.rows("SELECT id, saga_id FROM webhook_delivery_jobs WHERE slow")
    sent = seen.bodies["delivery-slow"]  # twice, where the visibility timeout of these tests is over first
    assert sent
    assert all(one == {"job_id": job["id"], "saga_id": job["saga_id"]} for one in sent)
    assert len(pipeline.received(path)) == 2


async def test_a_pause_holds_and_a_resume_drains(pipeline: Pipeline) -> None:
    """More than there is room for at once: results start the rest."""
    subscription, path = await pipeline.subscribe("f.paused", "/ok")
    await pipeline.call("POST", f"/v1/subscriptions/{subscription}/pause")
    await post_all(pipeline, "f.paused", 25)
    await until(lambda: len(pipeline.sagas("f.paused")) == 25, "all are routed")

    async def is_quiet() -> bool:
        return not any([await pipeline.depth(queue) for queue in WORK_QUEUES])

    await until(is_quiet, "every message is taken")
    assert states(pipeline, "f.paused") == {"Pending": 25}
    await pipeline.call("POST", f"/v1/subscriptions/{subscription}/resume")
    assert await pipeline.until_ended("f.paused", 25) == {"Completed": 25}
    assert len(pipeline.received(path)) == 25


async def test_a_rate_limit_is_kept_by_delayed_messages(pipeline: Pipeline) -> None:
    """Two at once, and then one each time that a token has come."""
    rate = {"count": 2, "per_seconds": RATE_SECONDS}
    subscription, _ = await pipeline.subscribe("f.rate", "/ok", rate_limit=rate)
    await post_all(pipeline, "f.rate", 5)
    assert await pipeline.until_ended("f.rate", 5) == {"Completed": 5}
    assert pipeline.seconds_of_starts(subscription) >= RATE_SECONDS * (5 - 2) / 2 - 0.5
