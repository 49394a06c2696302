"""Services of the routes: sessions per role, the sender, the keys, and the wakes after a commit."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hooksaga.adapters.database import DatabaseAddress, Role, Sessions
from hooksaga.api.coalescing import Coalescer
from hooksaga.api.key_checks import KeyChecks
from hooksaga.core.event_catalogue import SchemaCompiler
from hooksaga.core.event_input import EventDraft
from hooksaga.core.trace import Traced
from hooksaga.operations.api_keys import check_api_keys
from hooksaga.runtime.settings import Settings
from hooksaga.stages.accept_events import AcceptedEvent, Answer, accept_events
from hooksaga.stages.event_catalogue import EventCatalogue
from hooksaga.stages.telemetry import note_accepted

if TYPE_CHECKING:  # a function whose routes call no receiver need not load the sender
    from hooksaga.adapters.http_sender import HttpSender
    from hooksaga.adapters.secret_box import SecretBox


class Wakes(Protocol):
    """Tells the next stage that there is work, after the commit. A lost call costs time, never an event."""

    async def events_accepted(self, events: Sequence[Traced]) -> None: ...

    async def subscriptions_due(self, traces: Mapping[int, str | None]) -> None:
        """These subscriptions may have something to start. traces: the trace of an event that is due, by their ids."""
        ...

    async def cancel_saga(self, saga: Traced) -> None:
        """Ask the orchestrator to end a waiting saga. Raises if the request could not be sent."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """Services of one event loop. Connections are opened on first use.

    sender and box are None if no route calls receivers; the routes of subscriptions do.
    """

    settings: Settings
    keys: Sessions
    events: Sessions
    subscriptions: Sessions
    admin: Sessions
    sender: "HttpSender | None"
    box: "SecretBox | None"
    wakes: Wakes
    accept: Coalescer[EventDraft, Answer]
    accept_batch: Callable[[Sequence[EventDraft]], Awaitable[list[Answer]]]
    key_checks: KeyChecks

    @property
    def _all_sessions(self) -> tuple[Sessions, ...]:
        return (self.keys, self.events, self.subscriptions, self.admin)

    def check_before_next_use(self) -> None:
        self.key_checks.forget()
        for sessions in self._all_sessions:
            sessions.check_before_next_use()

    async def close(self) -> None:
        for sessions in self._all_sessions:
            await sessions.close()


def build_services(
    settings: Settings,
    address: DatabaseAddress,
    sender: "HttpSender | None",
    box: "SecretBox | None",
    wakes: Wakes,
    *,
    sessions: int = 2,
    keys_role: Role = Role.INGEST,
    compile_schema: SchemaCompiler | None = None,
) -> Services:
    """Build services whose callers share statements: concurrent events are committed together.

    keys_role: the role that looks up API keys; the function's own role if there is only one function.
    compile_schema: for routes that accept events.
    """
    events = Sessions(address, Role.INGEST, sessions)
    keys = Sessions(address, keys_role, 1, reads_only=True)
    catalogue = EventCatalogue(compile_schema, reject_unknown=settings.unknown_event_types == "reject")

    async def accept(drafts: Sequence[EventDraft], *, in_order: bool = False) -> list[Answer]:
        answers = await events.run(accept_events, drafts, in_order=in_order, catalogue=catalogue)
        new = [answer for answer in answers if isinstance(answer, AcceptedEvent) and not answer.duplicate]
        if new:
            note_accepted(new)
            await wakes.events_accepted([event.traced for event in new])
        return answers

    return Services(
        settings=settings,
        keys=keys,
        events=events,
        subscriptions=Sessions(address, Role.SUBSCRIPTIONS, sessions),
        admin=Sessions(address, Role.ADMIN, sessions),
        sender=sender,
        box=box,
        wakes=wakes,
        accept=Coalescer(accept),
        accept_batch=partial(accept, in_order=True),
        key_checks=KeyChecks(lambda hashes: keys.run(check_api_keys, hashes)),
    )
