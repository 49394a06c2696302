"""A name server of the tests' own: real messages over UDP and TCP, and whatever a bad server might say.

What it answers is a function of the question and of how often that question was asked before. The functions
below make the usual ones; None means silence.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from dnslib import QTYPE, RCODE, RR, DNSHeader, DNSLabel, DNSRecord

from tests.streams import closing

# The reply to a question, its number among equal questions (the first is 0), and whether it came over TCP.
Answers = Callable[[DNSRecord, int, bool], DNSRecord | None]


def zone(text: str) -> Answers:
    """Answers as a resolver that knows this zone file and nothing else, with up to sixteen CNAMEs followed."""
    records = RR.fromZone(text)

    def answer(query: DNSRecord, _times: int, _tcp: bool) -> DNSRecord:
        reply = query.reply()
        name = query.q.qname
        for _ in range(16):
            found = [record for record in records if _owns(record, name, query.q.qtype)]
            reply.add_answer(*found)
            if not found or found[0].rtype != QTYPE.CNAME:
                break
            name = DNSLabel(str(found[0].rdata))
        if not any(record.rname == name for record in records):
            reply.header.rcode = RCODE.NXDOMAIN
        return reply

    return answer


def _owns(record: RR, name: DNSLabel, wanted: int) -> bool:
    return record.rname == name and record.rtype in (wanted, QTYPE.CNAME)


def addresses(*found: str, name: str = "hook.example.com.", lifetime: int = 60) -> Answers:
    """The addresses of one name, of both families."""
    return zone("\n".join(f"{name} {lifetime} IN {_typed(address)}" for address in found))


def _typed(address: str) -> str:
    """Type and value as a zone file has them; dnslib reads IPv6 addresses in their long form only."""
    parsed = ip_address(address)
    return f"AAAA {parsed.exploded}" if parsed.version == 6 else f"A {parsed}"


def in_turn(*each: Answers) -> Answers:
    """The first time the first, and from the last on always the last."""
    return lambda query, times, tcp: each[min(times, len(each) - 1)](query, times, tcp)


def only(kind: str, answers: Answers, otherwise: Answers) -> Answers:
    """Questions for one type (A or AAAA) are answered by the one, all the others by the other."""

    def answer(query: DNSRecord, times: int, tcp: bool) -> DNSRecord | None:
        chosen = answers if QTYPE[query.q.qtype] == kind else otherwise
        return chosen(query, times, tcp)

    return answer


def failing(code: str) -> Answers:
    """An error and nothing else: SERVFAIL, REFUSED, NXDOMAIN, FORMERR, NOTIMP."""

    def answer(query: DNSRecord, _times: int, _tcp: bool) -> DNSRecord:
        reply = query.reply()
        reply.header.rcode = getattr(RCODE, code)
        return reply

    return answer


def silent(_query: DNSRecord, _times: int, _tcp: bool) -> None:
    """No answer at all."""


def truncated(over_tcp: Answers) -> Answers:
    """UDP answers say only that there is more than fits."""

    def answer(query: DNSRecord, times: int, tcp: bool) -> DNSRecord | None:
        if tcp:
            return over_tcp(query, times, tcp)
        header = DNSHeader(id=query.header.id, qr=1, aa=1, ra=1, tc=1)
        return DNSRecord(header, q=query.q)

    return answer


def changed(answers: Answers, change: Callable[[DNSRecord], Any]) -> Answers:
    """The same with every reply changed in place before it is sent."""

    def answer(query: DNSRecord, times: int, tcp: bool) -> DNSRecord | None:
        reply = answers(query, times, tcp)
        if reply is not None:
            change(reply)
        return reply

    return answer


class NameServer:
    """Port 53 of 127.0.0.1. `answers` may be exchanged at any time; `asked` holds each question that came."""

    def __init__(self) -> None:
        self.answers: Answers = silent
        self.asked: list[str] = []
        self._times: Counter[str] = Counter()

    def forget(self, answers: Answers) -> None:
        """Begins anew with other answers."""
        self.answers = answers
        self.asked = []
        self._times.clear()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: _Datagrams(self), local_addr=("127.0.0.1", 53))
        await asyncio.start_server(closing(self._stream), "127.0.0.1", 53)

    def reply_to(self, message: bytes, tcp: bool) -> bytes | None:
        query = DNSRecord.parse(message)
        question = f"{QTYPE[query.q.qtype]} {str(query.q.qname).lower()}"
        # A question that is repeated over TCP because UDP was too small is the same question.
        times = self._times[question] - tcp
        self._times[question] += not tcp
        self.asked.append(f"{question} {'tcp' if tcp else 'udp'}")
        reply = self.answers(query, times, tcp)
        return None if reply is None else bytes(reply.pack())

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while length := await reader.read(2):
            reply = self.reply_to(await reader.readexactly(int.from_bytes(length, "big")), tcp=True)
            if reply is None:
                continue
            writer.write(len(reply).to_bytes(2, "big") + reply)
            await writer.drain()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._server = server

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        reply = self._server.reply_to(data, tcp=False)
        if reply is not None:
            self._transport.sendto(reply, addr)
