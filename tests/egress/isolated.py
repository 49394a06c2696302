"""Runs inside the network of its own: sets it up, then makes the attempts that it reads from its input.

One line in is `{"case": name}` or `{"row": url}`; one line out is what was seen: outcomes, what the name server was
asked, and where requests arrived. Started by tests/egress/network.py.
"""

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest
from hooksaga.core.address_policy import AddressPolicy
from tests.delivery.hostile_receiver import Authority, Exchange, receiver
from tests.egress.cases import Case, case_of, every_address, table_case, table_rows
from tests.egress.name_server import NameServer

RESOLV_CONF, NSSWITCH = Path("/etc/resolv.conf"), Path("/etc/nsswitch.conf")

# It waits far longer than any deadline here, and asks once: no question of a case comes during the next one.
PATIENT_RESOLVER = "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n"


@dataclass
class Seen:
    """Result of one case. `reached` has local address, Host and request target of each request."""

    outcomes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: list[str] = field(default_factory=list[str])
    reached: list[tuple[str, str | None, str]] = field(default_factory=list[tuple[str, str | None, str]])


class Network:
    """The name server, one receiver on every address, and the sender under test."""

    def __init__(self, folder: Path) -> None:
        self._authority = Authority(folder / "ca.pem")
        self._resolv_conf = folder / "resolv.conf"
        self._names = NameServer()
        self._seen = Seen()

    async def start(self, stack: AsyncExitStack) -> None:
        await self._names.start()
        for host, port in product(("0.0.0.0", "::"), (443, 8443)):
            await stack.enter_async_context(receiver(self._behave, self._tls(), host=host, port=port))

    def _tls(self) -> ssl.SSLContext:
        """A good certificate for whatever name the client says; without one for the literal of the table."""
        context = self._authority.tls("8.8.8.8")

        def choose(connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
            if name is not None:
                connection.context = self._authority.tls(name)

        context.sni_callback = choose  # pyright: ignore[reportAttributeAccessIssue] - SSLObject, not SSLSocket
        return context

    async def _behave(self, exchange: Exchange) -> None:
        local = exchange.writer.get_extra_info("sockname")[0]
        self._seen.reached.append((local, exchange.request.header("host"), exchange.request.target))
        if exchange.request.target == "/redirect":
            await exchange.answer(302, b"", "Location: https://127.0.0.1/inside", "Connection: close")
        else:
            await exchange.answer(200, b"ok", "Connection: close")
        exchange.writer.close()

    async def attempt(self, case: Case) -> Seen:
        self._resolv_conf.write_text(f"{PATIENT_RESOLVER}{case.resolver}\n")
        self._names.forget(case.answers)
        self._seen = seen = Seen()
        sender = self._sender(case)
        for _ in case.want:
            outcome = await sender.send(OutgoingRequest(case.url, {}, b"{}", case.deadline))
            seen.outcomes.append(msgspec.structs.asdict(outcome))
            if not case.cached:
                await sender.close()
                sender = self._sender(case)
        await sender.close()
        seen.asked = self._names.asked
        return seen

    def _sender(self, case: Case) -> HttpSender:
        policy, ca_file = AddressPolicy.parse(case.allow), str(self._authority.ca_file)
        return HttpSender(policy, connect_timeout_seconds=case.connect, ca_file=ca_file)


def build(folder: Path) -> None:
    """Addresses on the loopback interface, and the system's resolver pointed at our name server."""
    _run("ip", "link", "set", "lo", "up")
    for address in sorted(every_address()):
        # These are on loopback already, where we listen.
        if address in ("0.0.0.0", "::", "::1") or address.startswith(("127.", "::ffff:")):
            continue
        prefix = "128" if ":" in address else "32"
        _run("ip", "address", "add", f"{address}/{prefix}", "dev", "lo")
    (folder / "resolv.conf").write_text(PATIENT_RESOLVER)
    (folder / "nsswitch.conf").write_text("hosts: files dns\n")
    for path in (RESOLV_CONF, NSSWITCH):
        if path.exists():
            _run("mount", "--bind", str(folder / path.name), str(path.resolve()))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=10)


def say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def serve(folder: Path) -> None:
    network = Network(folder)
    rows, loop = table_rows(), asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        await network.start(stack)
        say("ready")
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            wanted = json.loads(line)
            case = case_of(wanted["case"]) if "case" in wanted else table_case(rows[wanted["row"]])
            say(asdict(await network.attempt(case)))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hooksaga-egress-") as name:
        build(Path(name))
        asyncio.run(serve(Path(name)))
        subprocess.run(["umount", str(RESOLV_CONF.resolve())], check=False, timeout=10)
    os._exit(0)  # look-ups that the name server left unanswered would be waited for


if __name__ == "__main__":
    main()
