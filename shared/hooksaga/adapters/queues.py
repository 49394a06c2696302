"""SQS through botocore: batches of ids, sent after the commit that made them true.

A send may fail: SendMessageBatch can answer 200 and still name entries that it did not take. Those are sent once more,
and what fails then is left to the sweeps, which find the same work by SQL. So nothing here waits long for SQS either.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel

from hooksaga.core.messages import CORRELATION_ATTRIBUTE

BATCH = 10
"""Maximum number of messages in one SQS call."""

MAX_DELAY_SECONDS = 900
PARALLEL_CALLS = 8
TRIES = 2


class Queue(StrEnum):
    """The queues; the values are their names in HOOKSAGA_<NAME>_QUEUE_URL."""

    ROUTING = "routing"
    ORCHESTRATION = "orchestration"
    DELIVERY = "delivery"
    DELIVERY_RETRY = "delivery_retry"
    DEAD_TASKS = "dead_tasks"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message. group: SQS shares a queue fairly between groups. delay_seconds: 0 to 900.

    correlation_id goes beside the body, as an attribute: a body is ids of work and nothing else.
    """

    body: BaseModel
    group: str | None = None
    delay_seconds: int = 0
    correlation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """Positions of the messages that were taken, and of those that were not."""

    taken: list[int] = field(default_factory=list[int])
    failed: list[int] = field(default_factory=list[int])


def sqs_client() -> Any:
    """A client for AWS, or for AWS_ENDPOINT_URL, or for LOCALSTACK_HOST (host, or host:port)."""
    host = os.environ.get("LOCALSTACK_HOST")
    endpoint = None
    if host and not os.environ.get("AWS_ENDPOINT_URL"):
        endpoint = f"http://{host if ':' in host else host + ':4566'}"
    config = Config(
        connect_timeout=2,
        read_timeout=5,
        retries={"max_attempts": 2, "mode": "standard"},
        max_pool_connections=16,
    )
    return botocore.session.get_session().create_client("sqs", endpoint_url=endpoint, config=config)


class Queues:
    """Sends to queues by their URLs. The client is made on first use; one object serves one event loop."""

    def __init__(self, urls: dict[Queue, str], make_client: Callable[[], Any] = sqs_client) -> None:
        self._urls = urls
        self._make_client = make_client

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    async def send(self, queue: Queue, messages: Sequence[Outgoing]) -> Sent:
        """Send in batches of ten. Never raises for what SQS refuses: the answer says which were taken.

        A queue without a URL takes none.
        """
        url = self._urls.get(queue)
        if url is None:
            return Sent(failed=list(range(len(messages))))
        client = self._client  # made here, before there are threads: making one is not safe in several
        limit = asyncio.Semaphore(PARALLEL_CALLS)

        async def send_one(batch: Sequence[tuple[int, Outgoing]]) -> list[int]:
            async with limit:
                return await asyncio.to_thread(_send_batch, client, url, batch)

        batches = _batches(enumerate(messages))
        failed = [position for part in await asyncio.gather(*map(send_one, batches)) for position in part]
        missing = set(failed)
        return Sent([position for position in range(len(messages)) if position not in missing], failed)


def _send_batch(client: Any, url: str, batch: Sequence[tuple[int, Outgoing]]) -> list[int]:
    """The positions that were not taken. A call that fails as a whole was repeated by the client already."""
    waiting = {str(position): _entry(position, message) for position, message in batch}
    for _ in range(TRIES):
        try:
            answer = client.send_message_batch(QueueUrl=url, Entries=list(waiting.values()))
        except (ClientError, BotoCoreError):
            break
        for taken in answer.get("Successful", []):
            waiting.pop(taken["Id"], None)
        if not waiting:
            break
    return [int(position) for position in waiting]


def _batches(items: Iterable[tuple[int, Outgoing]]) -> list[list[tuple[int, Outgoing]]]:
    rest = iter(items)
    return list(iter(lambda: list(islice(rest, BATCH)), []))


def _entry(position: int, message: Outgoing) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(position), "MessageBody": message.body.model_dump_json()}
    if message.delay_seconds:
        entry["DelaySeconds"] = min(MAX_DELAY_SECONDS, message.delay_seconds)
    if message.group:
        entry["MessageGroupId"] = message.group
    if message.correlation_id:
        attribute = {"DataType": "String", "StringValue": message.correlation_id}
        entry["MessageAttributes"] = {CORRELATION_ATTRIBUTE: attribute}
    return entry
