"""The same in SQS mode: each function dies at every one of its points, and the queues bring its work back."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hooksaga.local.api_client import ApiError
from tests.faults.crash_points import FaultFolder
from tests.faults.promises import Promise, RecordProperty, arrivals, tried
from tests.sqs.conftest import new_name, until
from tests.sqs.running_pipeline import Pipeline, running_pipeline

pytestmark = [
    pytest.mark.faults,
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.asyncio(loop_scope="module"),
]

SOME = (
    "before send to routing",
    "before send to orchestration",
    "after write orchestrate.mark_dispatched",
    "after POST of a delivery",
    "after write deliver.record_results",
)
"""Of each kind of point one: the story must pass it."""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> FaultFolder:
    return FaultFolder(tmp_path_factory.mktemp("faults"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(
    module_database: str,
    sqs_endpoint: str,
    runtime_client: None,
    faults: FaultFolder,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Pipeline]:
    faults.record()
    folder: Path = tmp_path_factory.mktemp("crashing")
    options = {"environment": faults.environment}
    async with running_pipeline(folder, module_database, sqs_endpoint, options) as pipeline:
        yield pipeline


async def call(pipeline: Pipeline, method: str, path: str, **request: Any) -> dict[str, Any]:
    """Call like a client: repeat requests without a response."""

    async def answered() -> dict[str, Any] | None:
        try:
            return {"answer": await pipeline.call(method, path, **request)}
        except ApiError as error:
            if error.status not in (500, 503, 504):  # the first: the gateway got nothing from the function
                raise
            return None

    return (await until(answered, f"{method} {path} is answered", 60))["answer"]


async def subscribe(pipeline: Pipeline, event_type: str, kind: str, **fields: Any) -> tuple[int, str]:
    path = f"{kind}/{new_name('crash')}"
    wanted = {"event_type": event_type, "callback_url": pipeline.receiver_url + path, **fields}
    created = await call(pipeline, "POST", "/v1/subscriptions", json=wanted)
    pipeline.receiver.add_secret(path, created["secret"])
    await call(pipeline, "POST", f"/v1/subscriptions/{created['id']}/verify")
    return created["id"], path


async def saga_in(pipeline: Pipeline, status: str, event_type: str, subscription: int) -> dict[str, Any]:
    """The newest saga of the pair, once it is in the state. Leases of the dead end at once meanwhile: no receiver
    here takes half as long."""

    def found() -> dict[str, Any] | None:
        pipeline.rewrite(
            "UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 second' "
            "WHERE status = 'Leased' AND leased_at < now() - interval '4 seconds'"
        )
        sagas = [saga for saga in pipeline.sagas(event_type) if saga["subscription_id"] == subscription]
        return sagas[-1] if sagas and sagas[-1]["status"] == status else None

    return await until(found, f"a saga of {event_type} is {status}", 60)


async def tell_story(pipeline: Pipeline) -> list[int]:
    """Everything that a system is asked to do, once; how often each delivery arrived."""
    kind = new_name("story")
    fine, fine_path = await subscribe(pipeline, kind, "/ok")
    flaky, flaky_path = await subscribe(pipeline, kind, "/flaky/1")
    down, down_path = await subscribe(pipeline, kind, "/status/500", max_retry_limit=1)
    slow, _ = await subscribe(pipeline, kind, "/status/503", base_delay_seconds=3600)
    event = {"event_type": kind, "payload": {"n": 1}}
    key = {"idempotency-key": new_name("key")}
    await call(pipeline, "POST", "/v1/events", json=event, headers=key)
    await saga_in(pipeline, "Completed", kind, fine)
    await saga_in(pipeline, "Completed", kind, flaky)
    await requeue(pipeline, await saga_in(pipeline, "DeadLettered", kind, down))
    waiting = await saga_in(pipeline, "PendingRetry", kind, slow)
    await until(lambda: len(pipeline.received(down_path)) >= 2, "the requeued delivery has arrived", 60)
    await saga_in(pipeline, "DeadLettered", kind, down)
    await call(pipeline, "POST", f"/v1/sagas/{waiting['id']}/cancel")
    assert (await saga_in(pipeline, "DeadLettered", kind, slow))["final_error_code"] == "canceled"
    other = new_name("alone")
    healthy, healthy_path = await subscribe(pipeline, other, "/ok")
    lone = {"event_type": other, "payload": {"n": 2}}
    await call(pipeline, "POST", "/v1/events", json=lone, headers={"idempotency-key": new_name("key")})
    await saga_in(
        pipeline, "Completed", other, healthy
    )  # a result that changes no flow, in a batch of its own
    return [len(pipeline.received(path)) for path in (fine_path, flaky_path, down_path, healthy_path)]


async def requeue(pipeline: Pipeline, saga: dict[str, Any]) -> None:
    (letter,) = pipeline.rows("SELECT id FROM dead_letters WHERE saga_id = %s", saga["id"])
    await call(pipeline, "POST", f"/v1/dead-letters/{letter['id']}/requeue")


@pytest.mark.long
@pytest.mark.guarantees(Promise.QUEUES, "a function killed before *", "a function killed after *")
async def test_a_kill_at_any_point_of_any_function_loses_nothing(
    pipeline: Pipeline, faults: FaultFolder, record_property: RecordProperty
) -> None:
    undisturbed = await tell_story(pipeline)
    assert undisturbed == [1, 2, 2, 1]
    points = faults.seen()
    assert set(SOME) <= set(points), sorted(set(SOME) - set(points))
    for point in points:
        faults.arm(point)
        arrived = await tell_story(pipeline)
        await until(lambda: faults.has_struck, f"a process has died {point}")
        extra = [now - was for was, now in zip(undisturbed, arrived, strict=True)]
        assert all(0 <= more <= 1 for more in extra), (point, undisturbed, arrived)
        tried(record_property, Promise.QUEUES, f"a function killed {point}", arrivals(arrived, undisturbed))
    await pipeline.until_quiet()
