"""What a name server may say about hook.example.com, and what must come of an attempt to deliver there.

The network of these cases answers at every address that they name, the public as well as the refused ones: where
nothing was reached, it was not for want of anybody there.
"""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dnslib import RR, DNSLabel, DNSRecord

from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.callback_url import parse_callback_url
from tests.egress.name_server import (
    Answers,
    addresses,
    changed,
    failing,
    in_turn,
    only,
    silent,
    truncated,
    zone,
)

PUBLIC, PUBLIC_6 = "93.184.215.14", "2606:4700::1111"
METADATA, LOOPBACK, PRIVATE = "169.254.169.254", "127.0.0.1", "10.0.0.1"
HOOK = "https://hook.example.com/hook"
TABLE = Path(__file__).resolve().parents[1] / "unit" / "callback_urls.jsonl"

BLOCKED = ("address_blocked", None)
MISSING = ("dns_nxdomain", None)
TROUBLE = ("dns_error", None)
HERE = ("http_200", PUBLIC)
ONCE = ("A hook.example.com. udp", "AAAA hook.example.com. udp")
"""One look-up is one question for each family."""


@dataclass(frozen=True)
class Case:
    """Attempts one after the other, and the word and the peer of each; `asked` where it is part of the promise.

    Each attempt is made by a sender of its own, as long after the one before as it likes; with `cached` by the
    same one, at once. `resolver` is added to /etc/resolv.conf, `allow` is HOOKSAGA_EGRESS_ALLOW.
    """

    answers: Answers
    want: tuple[tuple[str, str | None], ...]
    url: str = HOOK
    asked: tuple[str, ...] | None = None
    cached: bool = False
    resolver: str = ""
    allow: str = ""
    deadline: float = 5
    connect: float = 2


def _refused(*found: str) -> Case:
    return Case(addresses(*found), (BLOCKED,), asked=ONCE)


def _reached(peer: str, *found: str) -> Case:
    return Case(addresses(*(found or (peer,))), (("http_200", peer),), asked=ONCE)


def _fails(answers: Answers, outcome: tuple[str, str | None], **more: Any) -> Case:
    return Case(answers, (outcome,), **more)


def _chain(end: str, links: int) -> Answers:
    names = ["hook.example.com.", *(f"c{number}.example.net." for number in range(links))]
    lines = [f"{a} 60 IN CNAME {b}" for a, b in pairwise(names)]
    return zone("\n".join([*lines, f"{names[-1]} 60 IN A {end}"]))


def _in_capitals(reply: DNSRecord) -> None:
    """A server that mixes the case of names (0x20), in another way than it was asked."""
    for record in reply.rr:
        record.rname = DNSLabel(str(record.rname).swapcase())


def _for_another_name(reply: DNSRecord) -> None:
    for record in reply.rr:
        record.rname = DNSLabel("other.example.com.")


def _with_another_id(reply: DNSRecord) -> None:
    reply.header.id = (reply.header.id + 1) % 65536


def _with_a_stray_address(reply: DNSRecord) -> None:
    """Beside the answer an address for a name that nobody asked for."""
    reply.add_answer(*RR.fromZone(f"other.example.com. 60 IN A {LOOPBACK}"))


def _to_another_question(reply: DNSRecord) -> None:
    reply.q.qname = DNSLabel("other.example.com.")
    _for_another_name(reply)


_INSIDE = [f"10.0.{number // 256}.{number % 256}" for number in range(300)]

# A search list as Kubernetes and corporate networks have it: a wildcard in it knows every name.
_SEARCH = "search cluster.example.net\noptions ndots:5"
_WILD = "\n".join(
    f"{name}.cluster.example.net. 60 IN A {LOOPBACK}"
    for name in ("hook.example.com", "gone.example.com", "metadata", "internal.example.com")
)

CASES: dict[str, Case] = {
    "only an IPv4 address": _reached(PUBLIC),
    "only an IPv6 address": _reached(PUBLIC_6),
    "both families": Case(addresses(PUBLIC, PUBLIC_6), (("http_200", PUBLIC_6),), asked=ONCE),
    "lifetime 0": Case(addresses(PUBLIC, lifetime=0), (HERE,), asked=ONCE),
    "lifetime of a week": Case(addresses(PUBLIC, lifetime=604800), (HERE,), asked=ONCE),
    # Rebinding
    "public, then loopback, during one attempt": Case(
        in_turn(addresses(PUBLIC), addresses(LOOPBACK)), (HERE,), asked=ONCE
    ),
    "public, then loopback, at the next attempt": Case(
        in_turn(addresses(PUBLIC), addresses(LOOPBACK)), (HERE, BLOCKED), asked=ONCE * 2
    ),
    "public, then metadata, at the next attempt": Case(
        in_turn(addresses(PUBLIC), addresses(METADATA)), (HERE, BLOCKED), asked=ONCE * 2
    ),
    "public, then loopback, lifetime 0, new connection within ten seconds": Case(
        in_turn(addresses(PUBLIC, lifetime=0), addresses(LOOPBACK, lifetime=0)),
        (HERE, HERE),
        asked=ONCE,
        cached=True,
    ),
    "loopback, then public, at the next attempt": Case(
        in_turn(addresses(LOOPBACK), addresses(PUBLIC)), (BLOCKED, HERE), asked=ONCE * 2
    ),
    "loopback, then public, at once": Case(
        in_turn(addresses(LOOPBACK), addresses(PUBLIC)), (BLOCKED, HERE), asked=ONCE * 2, cached=True
    ),
    # Several addresses
    "one public, one private": _reached(PUBLIC, PRIVATE, PUBLIC),
    "one public, one loopback of the other family": _reached(PUBLIC, "::1", PUBLIC),
    "public IPv6, loopback IPv4": _reached(PUBLIC_6, LOOPBACK, PUBLIC_6),
    "all private": _refused(PRIVATE, "192.168.1.10", "fd00:ec2::254"),
    "300 private ones and one public": Case(truncated(addresses(*_INSIDE, PUBLIC)), (HERE,)),
    "300 private ones": _fails(truncated(addresses(*_INSIDE)), BLOCKED),
    "the same one 500 times": _fails(truncated(addresses(*[PUBLIC] * 500)), HERE),
    # Addresses that are refused in whatever form
    "loopback": _refused(LOOPBACK),
    "the end of the loopback network": _refused("127.255.255.254"),
    "0.0.0.0": _refused("0.0.0.0"),
    "metadata service": _refused(METADATA),
    "carrier-grade NAT": _refused("100.64.0.1"),
    "benchmark network": _refused("198.18.0.1"),
    "multicast": _refused("224.0.0.1"),
    "broadcast": _refused("255.255.255.255"),
    "IPv6 loopback": _refused("::1"),
    "IPv6 unspecified": _refused("::"),
    "IPv4-mapped loopback": _refused("::ffff:127.0.0.1"),
    "IPv4-mapped metadata service": _refused("::ffff:169.254.169.254"),
    "IPv4-mapped public address": _refused("::ffff:93.184.215.14"),
    "IPv4-compatible loopback": _refused("::7f00:1"),
    "NAT64 of the metadata service": _refused("64:ff9b::a9fe:a9fe"),
    "local NAT64 of loopback": _refused("64:ff9b:1::7f00:1"),
    "6to4 of loopback": _refused("2002:7f00:1::1"),
    "Teredo": _refused("2001::1"),
    "unique local IPv6": _refused("fd00:ec2::254"),
    "link-local IPv6": _refused("fe80::1"),
    "site-local IPv6": _refused("fec0::1"),
    # CNAMEs
    "CNAME to a public address": Case(_chain(PUBLIC, 1), (HERE,), asked=ONCE),
    "chain of eight CNAMEs": Case(_chain(PUBLIC, 8), (HERE,), asked=ONCE),
    "chain of eight CNAMEs to loopback": Case(_chain(LOOPBACK, 8), (BLOCKED,), asked=ONCE),
    "CNAME to a name inside": Case(
        zone(f"hook.example.com. 60 IN CNAME db.internal.\ndb.internal. 60 IN A {PRIVATE}"), (BLOCKED,)
    ),
    "CNAME to localhost": Case(
        zone(f"hook.example.com. 60 IN CNAME localhost.\nlocalhost. 60 IN A {LOOPBACK}"), (BLOCKED,)
    ),
    "CNAME to nothing": _fails(zone("hook.example.com. 60 IN CNAME gone.example.net."), MISSING),
    "CNAME to itself": _fails(zone("hook.example.com. 60 IN CNAME hook.example.com."), MISSING),
    # No address
    "no such name": _fails(failing("NXDOMAIN"), MISSING),
    "a name without addresses": _fails(zone("hook.example.com. 60 IN MX 10 mail.example.com."), MISSING),
    "SERVFAIL": _fails(failing("SERVFAIL"), TROUBLE),
    "REFUSED": _fails(failing("REFUSED"), TROUBLE),
    "NOTIMP": _fails(failing("NOTIMP"), TROUBLE),
    "FORMERR": _fails(failing("FORMERR"), MISSING),  # glibc makes no difference
    "SERVFAIL for IPv6 only": _fails(only("AAAA", failing("SERVFAIL"), addresses(PUBLIC)), HERE),
    "NXDOMAIN for IPv6 only": _fails(only("AAAA", failing("NXDOMAIN"), addresses(PUBLIC)), HERE),
    # Silence
    "silent server": _fails(silent, TROUBLE, connect=0.5),
    "silent server, deadline before the time to connect": _fails(
        silent, ("timeout_total", None), deadline=0.5
    ),
    "silent for IPv6 only": _fails(only("AAAA", silent, addresses(PUBLIC)), TROUBLE, connect=0.5),
    "truncated over UDP, whole over TCP": _fails(truncated(addresses(PUBLIC)), HERE),
    "truncated over UDP, loopback over TCP": _fails(truncated(addresses(LOOPBACK)), BLOCKED),
    "truncated over UDP, silent over TCP": _fails(truncated(silent), TROUBLE, connect=0.5),
    # Answers to something else
    "names in another case (0x20)": _fails(changed(addresses(PUBLIC), _in_capitals), HERE),
    "an address of another name": _fails(changed(addresses(LOOPBACK), _for_another_name), MISSING),
    "a stray address of another name": _fails(changed(addresses(PUBLIC), _with_a_stray_address), HERE),
    "the reply to another question": _fails(
        changed(addresses(LOOPBACK), _to_another_question), TROUBLE, connect=0.5
    ),
    "the reply with another id": _fails(changed(addresses(LOOPBACK), _with_another_id), TROUBLE, connect=0.5),
    # Names that a search list would turn into others
    "a search list that knows every name": Case(
        zone(f"hook.example.com. 60 IN A {PUBLIC}\n{_WILD}"), (HERE,), asked=ONCE, resolver=_SEARCH
    ),
    "a search list and a name that does not exist": Case(
        zone(_WILD),
        (MISSING,),
        "https://gone.example.com/hook",
        asked=("A gone.example.com. udp", "AAAA gone.example.com. udp"),
        resolver=_SEARCH,
    ),
    "a search list and a short name": Case(
        zone(_WILD), (MISSING,), "https://internal.example.com/hook", resolver=_SEARCH
    ),
    "a search list and a bare name": Case(
        zone(_WILD), (("invalid_url", None),), "https://metadata/hook", asked=(), resolver=_SEARCH
    ),
    "localhost": Case(
        addresses(PUBLIC, name="localhost."), (("invalid_url", None),), "https://localhost/hook", asked=()
    ),
}


def table_rows() -> dict[str, dict[str, Any]]:
    """The rows of the table of callback URLs whose text says nothing against them."""
    rows = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]
    return {row["url"]: row for row in rows if row["want"] == "accept" or row["when"] != "text"}


def table_case(row: dict[str, Any]) -> Case:
    """One attempt for each answer that the row gives the name server; a later one is `then <address>`.

    A refused row is refused at its last answer; the one with a redirect gets its answer and follows nothing.
    """
    host = parse_callback_url(row["url"], AddressPolicy()).host
    turns = [turn.removeprefix("then ") for turn in row["dns"]]
    peers = [host if host.replace(".", "").isdigit() else turn for turn in turns]
    want: list[tuple[str, str | None]] = [("http_200", peer) for peer in peers]
    if row["want"] == "refuse":
        want[-1] = ("http_302", peers[-1]) if "redirect" in row["url"] else BLOCKED
    return Case(in_turn(*(addresses(turn, name=f"{host}.") for turn in turns)), tuple(want), row["url"])


REAL_BUT_REFUSED = (
    *("0.0.0.0", LOOPBACK, "127.255.255.254", METADATA, PRIVATE, "100.64.0.1", "192.168.1.10", "198.18.0.1"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1"),
    *("2002:7f00:1::1", "2001::1", "fd00:ec2::254", "fec0::1"),
)
"""What the cases refuse and the network has; multicast, broadcast and the like cannot be given to a machine."""

NO_REFUSAL = "allowed: "
"""Cases that are named by it and an address do the same with every address allowed."""


def case_of(name: str) -> Case:
    """One of CASES, or a name server that answers the address behind NO_REFUSAL."""
    if not name.startswith(NO_REFUSAL):
        return CASES[name]
    address = name.removeprefix(NO_REFUSAL)
    peer = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(address, address)  # what the kernel makes of it
    return Case(addresses(address), (("http_200", peer),), allow="0.0.0.0/0,::/0")


def every_address() -> set[str]:
    """All that the network has to have."""
    of_the_table = {answer.removeprefix("then ") for row in table_rows().values() for answer in row["dns"]}
    return of_the_table | set(REAL_BUT_REFUSED) | {PUBLIC, PUBLIC_6, "8.8.8.8"}
