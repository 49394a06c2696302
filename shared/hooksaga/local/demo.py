"""`hooksaga demo`: delivers sample events to healthy and failing subscribers, and checks the results."""

import asyncio
import itertools
import json
import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from hooksaga.adapters.database import Role
from hooksaga.adapters.package_files import package_folder
from hooksaga.local import receiver as receivers
from hooksaga.local.api_client import ApiClient
from hooksaga.local.database_account import make_data_folder
from hooksaga.local.given_database import run_as
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.receiver import Receiver, RunningReceiver
from hooksaga.local.receiver_journal import Signature
from hooksaga.local.system import LocalSystem
from hooksaga.local.tls import ensure_certificates
from hooksaga.operations.audit import Finding, audit
from hooksaga.runtime.settings import Settings, read_settings

SAMPLES_DIR = package_folder("events-samples") / "ingest"
ATTEMPTS = 4
DEADLINE_SECONDS = 50


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscriber of event types at a path of the receiver. attempts: the expected number per delivery."""

    name: str
    path: str
    event_types: tuple[str, ...]
    attempts: int
    ends_dead: bool = False


SUBSCRIBERS = (
    Subscriber("healthy", "/ok", ("order.created", "invoice.paid", "user.updated"), 1),
    Subscriber("flaky: fails twice", "/flaky/2", ("order.created",), 3),
    Subscriber("slow: 800 ms", "/slow/800", ("order.created",), 1),
    Subscriber("down", "/down", ("order.created",), ATTEMPTS, ends_dead=True),
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One saga, and whether its result is the expected one."""

    event_id: str
    event_type: str
    subscriber: str
    attempts: int
    state: str
    last_error: str | None
    latency_seconds: float | None
    as_expected: bool


class SystemFactory(Protocol):
    def __call__(self, settings: Settings, *, port: int) -> LocalSystem: ...


async def run_demo(
    data_dir: Path,
    console: Console,
    *,
    keep: Callable[[str, str, str], Awaitable[None]] | None = None,
    make_system: SystemFactory = LocalSystem,
) -> bool:
    """Run the demo in a data folder of its own, which is emptied first. Returns whether all results are as expected.

    keep: awaited at the end, with the API's URL and key and a link to the console; the system stays up meanwhile.
    """
    folder = data_dir / "demo"
    await asyncio.to_thread(_start_fresh, folder)
    certificates = ensure_certificates(folder)
    receiver = Receiver()
    async with AsyncExitStack() as running:
        subscribers = await receivers.serve(certificates=certificates, receiver=receiver)
        running.push_async_callback(subscribers.stop)
        system = make_system(_demo_settings(folder, certificates.ca), port=0)
        url = await system.start()
        running.push_async_callback(system.stop)
        console.print(
            f"API at {url}, subscribers at {subscribers.url} (TLS, signatures checked)", soft_wrap=True
        )
        story = _Story(system, ApiClient(url, system.api_key), receiver, subscribers, console)
        verdict = await story.tell()
        if keep:
            await keep(url, system.api_key, await system.console_link(url))
        return verdict


def _start_fresh(folder: Path) -> None:
    EmbeddedPostgres(folder).stop()  # left by a killed demo
    shutil.rmtree(folder, ignore_errors=True)
    for one in (folder.parent, folder):
        make_data_folder(one)


def _demo_settings(folder: Path, ca_file: Path) -> Settings:
    """Return the settings of `hooksaga up` with short waits, so that a dead letter takes seconds."""
    return read_settings(
        data_dir=folder,
        database_url=None,
        egress_allow="127.0.0.0/8",
        ca_file=ca_file,
        base_delay_seconds=0.5,
        max_retry_limit=ATTEMPTS,
        breaker_failures=1000,  # the subscriber that is down ends in dead letters
    )


class _Story:
    def __init__(
        self,
        system: LocalSystem,
        api: ApiClient,
        receiver: Receiver,
        running: RunningReceiver,
        console: Console,
    ) -> None:
        self._system = system
        self._api = api
        self._receiver = receiver
        self._running = running
        self._console = console
        self._subscribers: dict[int, Subscriber] = {}
        self._sent: dict[str, bytes] = {}

    async def tell(self) -> bool:
        await self._subscribe()
        await self._send_samples()
        with _progress(self._console) as progress:
            events = await self._wait_until_all_ended(progress, "delivering, retrying, giving up")
            dead = sum(saga["status"] == "DeadLettered" for event in events for saga in event["sagas"])
            self._console.print(f"{dead} dead letters; the receiver is fixed, they are requeued")
            self._receiver.fix()
            await self._call("POST", "/v1/dead-letters/requeue", json={"error_code": "http_503"})
            events = await self._wait_until_all_ended(progress, "delivering the requeued ones")
        findings = await self._audit()
        deliveries = [self._delivery(event, saga) for event in events for saga in event["sagas"]]
        self._console.print(_table(deliveries))
        return self._verdict(deliveries, findings)

    async def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self._api.call, method, path, **arguments)

    async def _subscribe(self) -> None:
        for subscriber in SUBSCRIBERS:
            for event_type in subscriber.event_types:
                wanted = {"event_type": event_type, "callback_url": self._running.url + subscriber.path}
                created = await self._call("POST", "/v1/subscriptions", json=wanted)
                self._receiver.add_secret(subscriber.path, created["secret"])
                await self._call("POST", f"/v1/subscriptions/{created['id']}/verify")
                self._subscribers[created["id"]] = subscriber
        self._console.print(f"{len(self._subscribers)} subscriptions created and verified")

    async def _send_samples(self) -> None:
        for path in sorted(SAMPLES_DIR.glob("api_gateway.*.json")):
            sample = json.loads(path.read_text(encoding="utf-8"))
            body = sample["body"].encode()
            headers = {
                name: sample["headers"][name] for name in ("Idempotency-Key",) if name in sample["headers"]
            }
            accepted = await self._call("POST", "/v1/events", content=body, headers=headers)
            self._sent[accepted["id"]] = body
        self._console.print(f"{len(self._sent)} events of {SAMPLES_DIR.parent.name}/ accepted")

    async def _wait_until_all_ended(self, progress: Progress, what: str) -> list[dict[str, Any]]:
        task = progress.add_task(what, total=None)
        give_up = time.monotonic() + DEADLINE_SECONDS
        while True:
            events = [await self._call("GET", f"/v1/events/{event_id}") for event_id in self._sent]
            sagas = [saga for event in events for saga in event["sagas"]]
            ended = sum(saga["status"] in ("Completed", "DeadLettered") for saga in sagas)
            progress.update(task, completed=ended, total=max(len(sagas), len(self._sent)))
            all_routed = all(event["sagas"] for event in events)
            if (all_routed and ended == len(sagas)) or time.monotonic() > give_up:
                return events
            await asyncio.sleep(0.2)

    async def _audit(self) -> list[Finding]:
        return [one for one in await run_as(self._system.address, Role.OWNER, audit) if one.rows]

    def _delivery(self, event: dict[str, Any], saga: dict[str, Any]) -> Delivery:
        subscriber = self._subscribers[saga["subscription_id"]]
        requeued = saga["requeued_from"] is not None
        wanted = ("DeadLettered", ATTEMPTS) if subscriber.ends_dead and not requeued else ("Completed", None)
        attempts = 1 if requeued else subscriber.attempts
        return Delivery(
            event_id=event["id"],
            event_type=event["event_type"],
            subscriber=f"{subscriber.name}: fixed, requeued" if requeued else subscriber.name,
            attempts=saga["attempt_count"],
            state=saga["status"],
            last_error=saga["final_error_code"],
            latency_seconds=_latency(saga),
            as_expected=saga["status"] == wanted[0] and saga["attempt_count"] == attempts,
        )

    def _verdict(self, deliveries: list[Delivery], findings: list[Finding]) -> bool:
        faults = [
            f"not as expected: {one.event_id} to {one.subscriber}"
            for one in deliveries
            if not one.as_expected
        ]
        faults += [f"audit: {finding.invariant}: {finding.rows}" for finding in findings]
        faults += self._signature_and_payload_faults()
        wanted = sum(len(subscriber.event_types) for subscriber in SUBSCRIBERS)
        if len({one.subscriber for one in deliveries}) < len(SUBSCRIBERS) + 1 or len(deliveries) < wanted:
            faults.append("some deliveries are missing")
        for fault in faults:
            self._console.print(f"[red]{fault}[/red]")
        if not faults:
            self._console.print(
                "[green]Every delivery ended as it should, every signature and payload was right.[/green]"
            )
        return not faults

    def _signature_and_payload_faults(self) -> list[str]:
        received = [one for one in self._receiver.journal.of() if one.webhook_id in self._sent]
        faults = [f"bad signature on {one.path}" for one in received if one.signature is not Signature.GOOD]
        changed = [one for one in received if one.body.encode() not in self._sent[one.webhook_id]]
        return faults + [f"payload changed on {one.path}" for one in changed]


def _latency(saga: dict[str, Any]) -> float | None:
    if saga["status"] != "Completed" or not saga["attempts"]:
        return None
    begin, end = (
        datetime.fromisoformat(at) for at in (saga["created_at"], saga["attempts"][-1]["finished_at"])
    )
    return (end - begin).total_seconds()


def _progress(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


def _table(deliveries: list[Delivery]) -> Table:
    """Format the results, grouped by event, in 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("event and subscriber", "attempts", "state", "last error", "latency"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("attempts", "latency") else "left")
    for event_id, group in itertools.groupby(deliveries, key=lambda one: one.event_id):
        of_event = list(group)
        table.add_row(f"[bold]{of_event[0].event_type}[/bold] …{event_id[-8:]}")
        for one in of_event:
            table.add_row(*_cells(one))
    return table


def _cells(one: Delivery) -> tuple[str, ...]:
    latency = "" if one.latency_seconds is None else f"{one.latency_seconds * 1000:,.0f} ms"
    colour = "red" if not one.as_expected else "green" if one.state == "Completed" else "yellow"
    state = f"[{colour}]{one.state}[/{colour}]"
    return f"  {one.subscriber}", str(one.attempts), state, one.last_error or "", latency
