"""How long each page of the console takes over a database with millions of jobs: `python -m bench.console_pages`.

The rows are those of the plan tests, and as many finished attempts of the last day as it takes to reach `--jobs`. The
application is called in this process, so the times are those of the page itself: its queries and its template.
"""

import argparse
import asyncio
import statistics
import time
from typing import LiteralString

import httpx
import psycopg

from bench.place import empty_database
from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.api.asgi import build_app
from hooksaga.api.services import build_services
from hooksaga.console.routes import ROUTES
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.trace import Traced
from hooksaga.operations.api_keys import create_api_key, generate_api_key
from hooksaga.runtime.settings import read_settings
from tests.database import a_million_rows as rows

RUNS = 20
LIMIT_MS = 100

MORE_JOBS: LiteralString = """
    INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status, claim_count,
           worker_id, response_status, error_code, duration_ms, resolved_ip, leased_at, created_at, finished_at)
    SELECT 1 + n %% 1000000, 1 + n %% 50000, 2 + n / 1000000, t,
           CASE WHEN n %% 50 = 0 THEN 'Failed' ELSE 'Completed' END::job_status, 1, 'w',
           CASE WHEN n %% 50 = 0 THEN 503 ELSE 200 END, CASE WHEN n %% 50 = 0 THEN 'http_503' END, n %% 900,
           '192.0.2.1', t, t, t
      FROM generate_series(1, %s) AS n,
           LATERAL (SELECT now() - n * interval '86400 seconds' / %s AS t) AS time"""

PAGES = (
    "/console",
    "/console?range=24h",
    "/console?range=7d",
    "/console/open?state=due",
    "/console/open?state=waiting+for+a+retry",
    "/console/events",
    "/console/events?type=type.7",
    "/console/events?type=none.such",
    "/console/events?subscription=45000",
    "/console/events?error=http_503",
    "/console/events?after=2026-01-01T00:00",
    "/console/events?tenant=default&key=key-500000",
    "/console/events?attribute=order_id:ORD-500000",
    "/console/events?attribute=region:eu",
    "/console/events?status=waiting",
    "/console/events?status=dead",
    "/console/search?q=ORD-none",
    "/console/search?q=...ffffffffffff",
    "/console/events/{event}",
    "/console/deliveries",
    "/console/deliveries?subscription=45000&outcome=failed",
    "/console/deliveries?error=http_503",
    "/console/deliveries?answer=5xx",
    "/console/deliveries/1701031",
    "/console/subscriptions",
    "/console/subscriptions/1",
    "/console/subscriptions/45000",
    "/console/dead-letters",
    "/console/dead-letters?subscription=77",
    "/console/dead-letters?state=standing",
    "/console/dead-letters?error=tls_error",
    "/console/dead-letters?before={long_ago}",
    "/console/dead-letters/500000",
    "/console/bulk-operations",
    "/console/bulk-operations/1",
    "/console/keys",
)


class _NoWakes:
    async def events_accepted(self, events: object) -> None: ...

    async def subscriptions_due(self, traces: object) -> None: ...

    async def cancel_saga(self, saga: Traced) -> None: ...


def main() -> None:
    """Fill, measure, print; exit code 1 when a page's median is over the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=5_000_000)
    wanted = parser.parse_args()
    with empty_database() as url:
        _fill(url, wanted.jobs)
        slow = asyncio.run(_measure(url))
    raise SystemExit(1 if slow else 0)


def _fill(url: str, jobs: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        rows.fill(connection)
        have = _count(connection)
        connection.execute("SET session_replication_role = replica")
        connection.execute(MORE_JOBS, [max(jobs - have, 1), max(jobs - have, 1)])
        connection.execute("VACUUM (ANALYZE) webhook_delivery_jobs")
        print(f"{_count(connection):,} jobs")


def _count(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM webhook_delivery_jobs").fetchone()
    assert row is not None
    return int(row[0])


async def _measure(url: str) -> bool:
    address = DatabaseAddress(url)
    session, key = Session(address, Role.ADMIN), generate_api_key()
    await session.run(create_api_key, key, name="bench")
    await session.close()
    sender = HttpSender(AddressPolicy(), connect_timeout_seconds=5)
    box = SecretBox([generate_key()])
    services = build_services(read_settings(), address, sender, box, _NoWakes())
    transport = httpx.ASGITransport(app=build_app(services, ROUTES))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
            origin = {"origin": "http://127.0.0.1:1"}
            signed_in = await client.post("/console/sign-in", data={"key": key}, headers=origin)
            assert signed_in.status_code == 303, signed_in.text
            return await _time_pages(client, url)
    finally:
        await services.close()
        await sender.close()


async def _time_pages(client: httpx.AsyncClient, url: str) -> bool:
    slow = False
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT webhook_id, now() - interval '20 days' FROM events WHERE id = 500000"
        ).fetchone()
    assert found is not None
    print("| page | median | slowest |\n|---|---|---|")
    for path in PAGES:
        target = path.format(event=f"evt_{found[0].hex}", long_ago=f"{found[1]:%Y-%m-%dT%H:%M}")
        times = [await _time(client, target) for _ in range(RUNS)]
        median = statistics.median(times[1:])
        slow = slow or median > LIMIT_MS
        print(f"| `{path}` | {median:.0f} ms | {max(times[1:]):.0f} ms |", flush=True)
    return slow


async def _time(client: httpx.AsyncClient, target: str) -> float:
    started = time.perf_counter()
    answer = await client.get(target)
    assert answer.status_code == 200, (target, answer.status_code, answer.text)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
