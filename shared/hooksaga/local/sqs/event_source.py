"""Triggers of functions: queues, read like Lambda's event source mapping, and EventBridge schedules.

It works with any SQS-compatible endpoint and is stricter than emulators: several receives within the window form a
batch, messages are deleted only after the function has responded for them, and a mapping that AWS would reject is
rejected.
"""

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hooksaga.local.sqs.batch_answers import messages_to_keep
from hooksaga.local.sqs.functions import LambdaFunction
from hooksaga.local.sqs.runtime_api import ACCOUNT, REGION, Outcome
from hooksaga.local.sqs.sqs_api import MAX_BATCH, SqsApi, SqsError

MAX_REMEMBERED = 1000
POLL_SECONDS = 1
PAUSE_AFTER_ERROR_SECONDS = 0.5

Batch = list[dict[str, Any]]
log = logging.getLogger("hooksaga.local.sqs")


class InvalidMapping(ValueError):
    """AWS would reject this mapping; the message is AWS's."""


@dataclass(frozen=True, slots=True)
class QueueMapping:
    """From a queue to a function. `disturb` may split, duplicate or reorder messages, as SQS may. Lambda has five
    pollers at least, each of which gathers a batch of its own; one is easier on a small machine."""

    queue_url: str
    batch_size: int = 10
    window_seconds: float = 0
    maximum_concurrency: int = 2
    pollers: int = 1
    disturb: Callable[[Batch], list[Batch]] = field(default=lambda batch: [batch])


@dataclass(frozen=True, slots=True)
class Handled:
    """One batch: its message ids, the function's outcome, and the messages that stay in the queue."""

    message_ids: list[str]
    outcome: Outcome
    kept: set[str]


class QueueSource:
    def __init__(self, api: SqsApi, mapping: QueueMapping, function: LambdaFunction) -> None:
        self._api = api
        self._mapping = mapping
        self._function = function
        self._places = asyncio.Semaphore(mapping.maximum_concurrency)
        self._at_work: set[asyncio.Task[None]] = set()
        self.handled: deque[Handled] = deque(maxlen=MAX_REMEMBERED)

    async def start(self) -> None:
        """Start reading. Raises InvalidMapping for a mapping that AWS rejects."""
        attributes = await self._api.attributes(self._mapping.queue_url)
        check_mapping(self._mapping, self._function.spec.timeout_seconds, attributes)
        self._arn = attributes["QueueArn"]
        self._reading = [asyncio.create_task(self._read()) for _ in range(self._mapping.pollers)]

    async def stop(self) -> None:
        """Receive nothing more, and let the batches under way end."""
        for reading in self._reading:
            reading.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await asyncio.gather(*self._at_work)

    async def _read(self) -> None:
        while True:
            await self._places.acquire()
            try:
                batch = await self._collect()
            except SqsError as error:
                log.warning("no messages from %s: %s", self._mapping.queue_url, error)
                batch = []
                await asyncio.sleep(PAUSE_AFTER_ERROR_SECONDS)
            if not batch:
                self._places.release()
                continue
            task = asyncio.create_task(self._handle(batch))
            self._at_work.add(task)
            task.add_done_callback(self._at_work.discard)

    async def _collect(self) -> Batch:
        """Return one batch: the available messages, and those that arrive within the window until the batch is full."""
        size, url = self._mapping.batch_size, self._mapping.queue_url
        batch = await self._api.receive(url, size, POLL_SECONDS)
        deadline = time.monotonic() + self._mapping.window_seconds
        while batch and len(batch) < size and (left := deadline - time.monotonic()) > 0:
            more = await self._api.receive(url, min(MAX_BATCH, size - len(batch)))
            batch += more
            if not more:
                await asyncio.sleep(min(0.02, left))
        return batch

    async def _handle(self, batch: Batch) -> None:
        try:
            for part in self._mapping.disturb(batch):
                await self._handle_part(part)
        except SqsError as error:
            log.warning("messages not deleted from %s: %s", self._mapping.queue_url, error)
        finally:
            self._places.release()

    async def _handle_part(self, messages: Batch) -> None:
        outcome = await self._function.invoke({"Records": [record(one, self._arn) for one in messages]})
        ids = [one["MessageId"] for one in messages]
        kept = messages_to_keep(outcome, ids)
        self.handled.append(Handled(ids, outcome, kept))
        if outcome.error is not None:
            log.warning("%s failed: %s", self._function.spec.name, outcome.error)
        done = {one["ReceiptHandle"] for one in messages if one["MessageId"] not in kept}
        await self._api.delete(self._mapping.queue_url, list(done))


def check_mapping(mapping: QueueMapping, timeout_seconds: float, attributes: dict[str, str]) -> None:
    """Raise InvalidMapping for a mapping that AWS rejects. `attributes` are the queue's."""
    visibility = int(attributes["VisibilityTimeout"])
    if visibility < timeout_seconds:
        raise InvalidMapping(
            f"Queue visibility timeout: {visibility} seconds is less than Function timeout: {timeout_seconds:g} seconds"
        )
    if not 1 <= mapping.batch_size <= 10_000:
        raise InvalidMapping("BatchSize must be between 1 and 10000")
    if not 0 <= mapping.window_seconds <= 300:
        raise InvalidMapping("MaximumBatchingWindowInSeconds must be between 0 and 300")
    if mapping.batch_size > MAX_BATCH and mapping.window_seconds == 0:
        raise InvalidMapping(
            "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10"
        )
    if not 2 <= mapping.maximum_concurrency <= 1000:
        raise InvalidMapping("MaximumConcurrency must be between 2 and 1000")


def record(message: dict[str, Any], queue_arn: str) -> dict[str, Any]:
    """Return a received message in the format of Lambda events."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": {name: str(value) for name, value in message.get("Attributes", {}).items()},
        "messageAttributes": {
            name: _message_attribute(value) for name, value in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }


def _message_attribute(value: dict[str, Any]) -> dict[str, Any]:
    given = {
        "stringValue": value.get("StringValue"),
        "binaryValue": value.get("BinaryValue"),
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value["DataType"],
    }
    return {name: one for name, one in given.items() if one is not None}


class Schedule:
    """Invokes a function at an interval with the event of an EventBridge rule; one minute on AWS."""

    def __init__(self, function: LambdaFunction, every_seconds: float = 60) -> None:
        self._function = function
        self._every = every_seconds
        self.outcomes: deque[Outcome] = deque(maxlen=MAX_REMEMBERED)

    def start(self) -> None:
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """A tick under way is not waited for; its process ends with its function."""
        self._ticking.cancel()
        await asyncio.gather(self._ticking, return_exceptions=True)

    async def fire(self) -> Outcome:
        outcome = await self._function.invoke(tick_event(f"{self._function.spec.name}-every-minute"))
        self.outcomes.append(outcome)
        if outcome.error is not None:
            log.warning("%s failed at its tick: %s", self._function.spec.name, outcome.error)
        return outcome

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self.fire()


def tick_event(rule: str) -> dict[str, Any]:
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{rule}"],
        "detail": {},
    }
