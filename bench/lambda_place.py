"""The functions in one process, as Lambda runs them: real handlers, a real PostgreSQL, a real receiver over TLS.

SQS alone is left out: what a function sends is kept here, and handed to the next one as the event that Lambda would
make of it. So a time is that of the function and its database, without calls to SQS.
"""

import asyncio
import importlib
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

from bench.place import rows_of
from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.migrations import migrate
from hooksaga.adapters.queues import Queue, Queues
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.core.models import NewSubscription
from hooksaga.core.signing import encode_secret
from hooksaga.local.bench_figures import make_body, make_payload
from hooksaga.local.bench_processes import child, receive
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import ensure_certificates
from hooksaga.operations.api_keys import create_api_key, generate_api_key
from hooksaga.operations.subscriptions import create_subscription
from hooksaga.operations.verify_subscription import mark_verified

EVENT_TYPE = "bench.event"
PAYLOAD_BYTES = 600
TIMEOUT_MS = 45_000

Handler = Callable[[dict[str, Any], Any], Any]
Entry = dict[str, Any]


class KeptMessages:
    """Stands where a client of SQS would: keeps entries by queue and counts the calls."""

    def __init__(self) -> None:
        self.entries: defaultdict[str, list[Entry]] = defaultdict(list)
        self.calls = 0

    def send_message_batch(self, *, QueueUrl: str, Entries: list[Entry]) -> dict[str, Any]:  # noqa: N803 - SQS's names
        self.calls += 1
        self.entries[QueueUrl] += Entries
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def take(self, queue: Queue) -> list[Entry]:
        return self.entries.pop(queue.value, [])


class Context:
    """The context of an invocation."""

    aws_request_id = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return TIMEOUT_MS


@dataclass(slots=True)
class Spent:
    """Of some invocations of one function: how many, of how much each, and what they took."""

    invocations: int = 0
    messages: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    slowest_seconds: float = 0.0

    def add(self, messages: int, seconds: float, cpu_seconds: float) -> None:
        self.invocations += 1
        self.messages += messages
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds
        self.slowest_seconds = max(self.slowest_seconds, seconds)


@dataclass(slots=True)
class Pipeline:
    """Functions that were imported, and the messages between them."""

    folder: Path
    database_url: str
    api_key: str
    kept: KeptMessages
    _handlers: dict[str, Handler] = field(default_factory=dict[str, Handler])
    _functions: dict[str, Any] = field(default_factory=dict[str, Any])

    def invoke(self, name: str, event: dict[str, Any], messages: int, spent: Spent) -> Any:
        handler = self._handlers.get(name) or self._import(name)
        started, cpu = time.perf_counter(), time.process_time()
        answer = handler(event, Context())
        spent.add(messages, time.perf_counter() - started, time.process_time() - cpu)
        return answer

    def post(self, number: int, spent: Spent) -> None:
        """One event through the function behind the API. Raises AssertionError unless it was accepted."""
        body = make_body(EVENT_TYPE, make_payload(number, PAYLOAD_BYTES)).decode()
        answer = self.invoke("ingest", _gateway_event(self.api_key, body), 1, spent)
        assert answer["statusCode"] == 202, answer

    def work_off(self, name: str, queue: Queue, batch: int, spent: Spent | None = None) -> Spent:
        """Hand all messages of the queue to the function, so many at a time."""
        spent, entries = spent or Spent(), self.kept.take(queue)
        for first in range(0, len(entries), batch):
            part = entries[first : first + batch]
            answer = self.invoke(name, {"Records": [_record(entry) for entry in part]}, len(part), spent)
            assert answer == {"batchItemFailures": []}, answer
        return spent

    def run(self, statement: LiteralString, params: Sequence[Any] = ()) -> list[Any]:
        """The rows of the answer, as the database's owner."""
        return rows_of(self.database_url, statement, params)

    def close(self) -> None:
        """Close the connections to receivers, which Lambda would drop with the process."""
        delivery = self._functions.get("delivery")
        if delivery is not None:
            loop: asyncio.AbstractEventLoop = delivery._loop
            loop.run_until_complete(delivery.sender.close())

    def _import(self, name: str) -> Handler:
        module = importlib.import_module(f"functions.{name}.handler")
        module.function.queues = Queues({queue: queue.value for queue in Queue}, lambda: self.kept)
        self._functions[name] = module.function
        self._handlers[name] = module.handler
        return module.handler


@contextmanager
def running_pipeline(fan_out: int = 1) -> Generator[Pipeline]:
    """An empty database with so many subscriptions to a receiver of our own; all gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="lambda-") as name, child(receive, Path(name)) as receiver:
        folder, server = Path(name), EmbeddedPostgres(Path(name))
        url: str = server.start()
        try:
            key = generate_key()
            os.environ |= {
                "HOOKSAGA_DATABASE_URL": url,
                "HOOKSAGA_PREPARED_STATEMENTS": "true",
                "HOOKSAGA_SECRETS_KEY": key,
                "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
                "HOOKSAGA_CA_FILE": str(ensure_certificates(folder).ca),
                "AWS_LAMBDA_FUNCTION_NAME": "hooksaga-bench-function",
            }
            migrate(DatabaseAddress(url))
            api_key = _prepare(url, key, f"{receiver.recv()}/ok", fan_out)
            with closing(Pipeline(folder, url, api_key, KeptMessages())) as pipeline:
                yield pipeline
        finally:
            server.stop()


def _prepare(url: str, secrets_key: str, receiver: str, fan_out: int) -> str:
    """Makes the subscriptions, and an API key, which it returns."""
    api_key, box = generate_api_key(), SecretBox([secrets_key])

    async def prepare() -> None:
        session = Session(DatabaseAddress(url), Role.OWNER)
        await session.run(create_api_key, api_key, name="bench")
        for number in range(fan_out):
            await session.run(_subscribe, box, f"{receiver}/{number}")
        await session.close()

    asyncio.run(prepare())
    return api_key


async def _subscribe(connection: Any, box: SecretBox, url: str) -> None:
    made = await create_subscription(
        connection,
        NewSubscription(event_type=EVENT_TYPE, callback_url=url),
        tenant_id="default",
        callback_url=url,
        sealed_secret=box.seal(encode_secret(os.urandom(32))),
        box=box,
    )
    await mark_verified(connection, made.id, url)
    await connection.execute("UPDATE subscription_flow SET in_flight_limit = 1000")  # as after a while


def _record(entry: Entry) -> dict[str, Any]:
    attributes = {
        name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
        for name, value in entry.get("MessageAttributes", {}).items()
    }
    return {"messageId": entry["Id"], "body": entry["MessageBody"], "messageAttributes": attributes}


def _gateway_event(api_key: str, body: str) -> dict[str, Any]:
    path, headers = "/v1/events", {"authorization": f"Bearer {api_key}", "content-type": "application/json"}
    return {
        "resource": path,
        "path": path,
        "httpMethod": "POST",
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": None,
        "requestContext": {"path": f"/bench{path}", "stage": "bench", "requestId": "bench"},
        "body": body,
        "isBase64Encoded": False,
    }


@contextmanager
def log_into(path: Path) -> Generator[None]:
    """Redirect the functions' output to the file: logs on stderr, metrics on stdout."""
    kept = {number: os.dup(number) for number in (1, 2)}
    with path.open("ab") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
