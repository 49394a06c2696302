"""SQS through botocore: batches of ids, sent after the commit that they refer to, and messages that are passed on.

SendMessageBatch can return 200 and still reject single entries. These are sent once more; the sweeps find the work of
those that fail again by SQL. So sending never waits long for SQS.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel

from hooksaga.core.messages import CORRELATION_ATTRIBUTE

BATCH = 10
"""Maximum number of messages in one SQS call."""

BATCH_BYTES = 262_144
"""Maximum size of the bodies of one call, unless one alone is larger: the lowest limit of the endpoints in use."""

MAX_ATTRIBUTES = 10
"""Maximum number of attributes of a message."""

MAX_DELAY_SECONDS = 900
PARALLEL_CALLS = 8
TRIES = 2


class Queue(StrEnum):
    """The queues; the values are their names in HOOKSAGA_<NAME>_QUEUE_URL."""

    INTAKE = "intake"
    INTAKE_REDRIVE = "intake_redrive"
    ROUTING = "routing"
    ORCHESTRATION = "orchestration"
    DELIVERY = "delivery"
    DELIVERY_SLOW = "delivery_slow"
    DEAD_TASKS = "dead_tasks"

    @property
    def dashed(self) -> str:
        """The end of the queue's name in a deployment."""
        return self.value.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message. group: SQS serves groups fairly. delay_seconds: 0 to 900.

    body: a message of hooksaga, which has ids only, or the text of one that is passed on. correlation_id is sent as an
    attribute. attributes: others, as SQS takes them.
    """

    body: BaseModel | str
    group: str | None = None
    delay_seconds: int = 0
    correlation_id: str | None = None
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    @property
    def text(self) -> str:
        return self.body if isinstance(self.body, str) else self.body.model_dump_json()


@dataclass(frozen=True, slots=True)
class Sent:
    """Positions of the accepted and of the failed messages."""

    taken: list[int] = field(default_factory=list[int])
    failed: list[int] = field(default_factory=list[int])


def sqs_client() -> Any:
    """Create a client for AWS, for AWS_ENDPOINT_URL, or for LOCALSTACK_HOST (host or host:port)."""
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
    """Sends to queues by their URLs. The client is created on first use. Bound to one event loop."""

    def __init__(self, urls: dict[Queue, str], make_client: Callable[[], Any] = sqs_client) -> None:
        self._urls = urls
        self._make_client = make_client

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    async def send(self, queue: Queue, messages: Sequence[Outgoing]) -> Sent:
        """Send in batches of ten. Rejected messages are part of the result, not an exception. A queue without a URL
        rejects all."""
        url = self._urls.get(queue)
        if url is None:
            return Sent(failed=list(range(len(messages))))
        client = self._client  # created before any threads exist: creating a client is not thread-safe
        limit = asyncio.Semaphore(PARALLEL_CALLS)

        async def send_one(batch: Sequence[tuple[int, Outgoing]]) -> list[int]:
            async with limit:
                return await asyncio.to_thread(_send_batch, client, url, batch)

        batches = _batches(enumerate(messages))
        failed = [position for part in await asyncio.gather(*map(send_one, batches)) for position in part]
        missing = set(failed)
        return Sent([position for position in range(len(messages)) if position not in missing], failed)


def _send_batch(client: Any, url: str, batch: Sequence[tuple[int, Outgoing]]) -> list[int]:
    """Return the positions of the failed messages. The client has already retried a call that fails as a whole."""
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
    batches: list[list[tuple[int, Outgoing]]] = []
    left = 0
    for position, message in items:
        size = len(message.body.encode(errors="replace")) if isinstance(message.body, str) else 0
        if not batches or len(batches[-1]) == BATCH or size > left:
            batches.append([])
            left = BATCH_BYTES
        batches[-1].append((position, message))
        left -= size
    return batches


def _entry(position: int, message: Outgoing) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(position), "MessageBody": message.text}
    if message.delay_seconds:
        entry["DelaySeconds"] = min(MAX_DELAY_SECONDS, message.delay_seconds)
    if message.group:
        entry["MessageGroupId"] = message.group
    attributes = dict(message.attributes)
    if message.correlation_id:
        attributes[CORRELATION_ATTRIBUTE] = text_attribute(message.correlation_id)
    if attributes:
        entry["MessageAttributes"] = attributes
    return entry


def text_attribute(text: str) -> dict[str, str]:
    """Return an attribute of the type String. text: not empty."""
    return {"DataType": "String", "StringValue": text}
