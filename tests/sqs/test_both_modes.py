"""The same events through SQS mode and through polling mode end in the same rows."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from hooksaga.local import receiver as receivers
from hooksaga.local.api_client import ApiClient
from hooksaga.local.sqs.system import SqsOptions, SqsSystem
from hooksaga.local.system import LocalSystem
from hooksaga.local.tls import ensure_certificates
from hooksaga.runtime.settings import Settings, read_settings
from tests.conftest import copy_of
from tests.sqs.conftest import new_name, until

pytestmark = [pytest.mark.sqs, pytest.mark.slow]

EVENTS = 500
SUBSCRIBERS = {
    "a": ("/ok/a", "/flaky/1/a", "/down/a", "/status/404/a"),
    "b": ("/ok/b", "/huge/40000/b"),
    "c": (),
}
SAGAS = sum(len(paths) * len(range(first, EVENTS, 3)) for first, paths in enumerate(SUBSCRIBERS.values()))
FACTS: LiteralString = """
SELECT e.payload ->> 'n' AS n, e.event_type, regexp_replace(b.callback_url, '^https://[^/]+', '') AS path,
       s.status::text, s.attempt_count, s.final_error_code,
       (SELECT jsonb_agg(jsonb_build_array(j.attempt_number, j.status, j.claim_count, j.response_status, j.error_code,
                                           j.response_truncated, length(j.response_body))
                         ORDER BY j.id)
          FROM webhook_delivery_jobs j WHERE j.saga_id = s.id) AS jobs,
       (SELECT jsonb_agg(jsonb_build_array(d.final_error_code, d.payload_snapshot::text, d.event_type))
          FROM dead_letters d WHERE d.saga_id = s.id) AS dead
  FROM webhook_delivery_sagas s
  JOIN events e ON e.id = s.event_id
  JOIN subscriptions b ON b.id = s.subscription_id
 ORDER BY e.event_type, (e.payload ->> 'n')::int, path"""


@pytest.fixture
def databases(test_server: str, maintenance: psycopg.Connection) -> Iterator[tuple[str, str]]:
    """URLs of two migrated, empty databases."""
    with copy_of(maintenance, "hooksaga") as one, copy_of(maintenance, "hooksaga") as other:
        yield make_conninfo(test_server, dbname=one), make_conninfo(test_server, dbname=other)


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_the_same_events_end_the_same_in_both_modes(
    databases: tuple[str, str], sqs_endpoint: str, runtime_client: None, tmp_path: Path
) -> None:
    polling = await facts_after_all(LocalSystem(settings_for(tmp_path / "polling", databases[0]), port=0))
    options = SqsOptions(tick_seconds=1, endpoint=sqs_endpoint, queue_prefix=new_name("both"))
    queues = await facts_after_all(
        SqsSystem(settings_for(tmp_path / "sqs", databases[1]), port=0, options=options)
    )
    assert len(polling) == SAGAS
    assert queues == polling


def settings_for(folder: Path, database_url: str) -> Settings:
    folder.mkdir()
    return read_settings(
        data_dir=folder,
        database_url=database_url,
        ca_file=ensure_certificates(folder).ca,
        egress_allow="127.0.0.0/8",
        base_delay_seconds=0.2,
        max_retry_limit=2,
        retry_jitter=0,
        breaker_failures=1000,
    )


async def facts_after_all(system: LocalSystem) -> list[dict[str, Any]]:
    """Return the state of the database after all sagas have ended."""
    async with started(system) as api, database_of(system) as database:
        for start in range(0, EVENTS, 50):
            await post(api, range(start, start + 50))
        question: LiteralString = """
            SELECT count(*) AS ended FROM webhook_delivery_sagas WHERE status IN ('Completed', 'DeadLettered')"""

        async def all_ended() -> bool:
            return (await (await database.execute(question)).fetchall())[0]["ended"] == SAGAS

        await until(all_ended, "all sagas have ended", 240)
        return await (await database.execute(FACTS)).fetchall()


@asynccontextmanager
async def database_of(system: LocalSystem) -> AsyncIterator[psycopg.AsyncCursor[dict[str, Any]]]:
    connection = await psycopg.AsyncConnection.connect(system.address.url, autocommit=True)
    async with connection, connection.cursor(row_factory=dict_row) as cursor:
        yield cursor


@asynccontextmanager
async def started(system: LocalSystem) -> AsyncIterator[ApiClient]:
    """The API of the running system, with every subscriber verified."""
    running = await receivers.serve(certificates=ensure_certificates(system._settings.data_dir))
    api = ApiClient(await system.start(), system.api_key)
    try:
        for event_type, paths in SUBSCRIBERS.items():
            for path in paths:
                wanted = {"event_type": event_type, "callback_url": running.url + path}
                created = await asyncio.to_thread(api.call, "POST", "/v1/subscriptions", json=wanted)
                await asyncio.to_thread(api.call, "POST", f"/v1/subscriptions/{created['id']}/verify")
        yield api
    finally:
        await system.stop()
        await running.stop()


async def post(api: ApiClient, numbers: range) -> None:
    items = [{"event_type": "abc"[number % 3], "payload": {"n": number, "text": "ü"}} for number in numbers]
    answer = await asyncio.to_thread(api.call, "POST", "/v1/events/batch", json={"items": items})
    assert len(answer["items"]) == len(items)
