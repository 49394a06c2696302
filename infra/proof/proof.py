"""What the steps share: the place, the account, the run's memory, and what is deployed."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from hooksaga.aws.deployed_stack import DeployedStack
from infra.proof.account import Account
from infra.proof.cdk import Cdk
from infra.proof.load import Load
from infra.proof.place import Place
from infra.proof.receiver import Receiver
from infra.proof.results import StepFailed
from infra.proof.state import State
from infra.proof.tls_front import TlsFront

POLL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    """minutes: of undisturbed load. fault_minutes: of each fault that lasts. alarm_minutes: 0 for no wait."""

    rate: float
    minutes: float
    fault_minutes: float
    alarm_minutes: float
    settle_minutes: float
    confirmed: bool


class Proof:
    """One run."""

    def __init__(self, place: Place, state: State, options: Options) -> None:
        self.place, self.state, self.options = place, state, options
        self.account = Account()
        self.cdk = Cdk(place, state.folder)
        self.stack = DeployedStack(place.prefix)
        self.journal = state.folder / "accepted.jsonl"
        self.has_deployed = False
        """Whether this run got past its check. Before that, what is there belongs to somebody else."""

    def begin(self) -> None:
        """Begin with an empty journal and memory, once nothing of the earlier run exists any more."""
        self.has_deployed = True
        self.state.clear()
        self.journal.unlink(missing_ok=True)

    @property
    def api_url(self) -> str:
        return self.place.api_url(self.state["outputs"])

    @cached_property
    def receiver(self) -> Receiver:
        return Receiver(self.account, self.state["receiver"]["ReceiverTable"], self.receiver_inside)

    @property
    def receiver_inside(self) -> str:
        """The receiver's URL from this machine."""
        return self.place.function_url(self.state["receiver"]["ReceiverUrl"])

    @contextmanager
    def load(self) -> Iterator[Load]:
        with Load(self.api_url, self.state["key"], self.options.rate, self.journal) as load:
            yield load
        self.state.set(given_up=[*self.state.get("given_up", []), *load.given_up])

    @contextmanager
    def callback_url(self) -> Iterator[str]:
        """Yield the URL that deliveries go to. On an emulator it answers within the block only."""
        if self.place.endpoint is None:
            yield self.receiver_inside
            return
        with TlsFront(self.receiver_inside, self.state.folder, self.state.get("port", 0)) as front:
            self.state.set(port=front.port)
            yield front.url


def wait_until(done: Callable[[], bool], minutes: float, what: str, *, every: float = POLL_SECONDS) -> float:
    """Return the seconds until it was done. Raises StepFailed when it is not done in time."""
    started = time.monotonic()
    while not done():
        if time.monotonic() - started > minutes * 60:
            raise StepFailed(f"{what} was not done within {minutes:g} minutes")
        time.sleep(every)
    return time.monotonic() - started
