"""POSTs per second of three HTTP clients in one process, over kept TLS connections to a receiver on this machine.

    .venv/bin/pip install httpx-aiohttp && .venv/bin/python bench/http_clients.py [POSTS]

The receiver is that of `hooksaga bench`, a process of its own. Each client sends the same 600-byte body with
50 POSTs in flight. The runs follow each other and are repeated, so that a machine that drifts shows it.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import httpx

from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.local.bench_processes import child, receive
from hooksaga.local.tls import ensure_certificates

BODY = b'{"payload":"' + b"x" * 586 + b'"}'
IN_FLIGHT = 50
ROUNDS = 3
HEADERS = {"content-type": "application/json"}

Post = Callable[[], Awaitable[object]]


async def _rate(post: Post, posts: int) -> float:
    async def worker() -> None:
        for _ in range(posts // IN_FLIGHT):
            await post()

    await post()
    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return posts / (time.perf_counter() - started)


async def _measure(url: str, ca_file: str, posts: int) -> None:
    from ssl import create_default_context

    from httpx_aiohttp import HttpxAiohttpClient

    tls = create_default_context(cafile=ca_file)
    limits = httpx.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT)
    sender = HttpSender(AddressPolicy.parse("127.0.0.0/8"), ca_file=ca_file)
    request = OutgoingRequest(url, HEADERS, BODY, 15)
    async with (
        httpx.AsyncClient(verify=tls, limits=limits) as plain,
        HttpxAiohttpClient(verify=tls, limits=limits) as over_aiohttp,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=IN_FLIGHT)) as direct,
    ):

        async def by_aiohttp() -> None:
            async with direct.post(url, data=BODY, headers=HEADERS) as response:
                await response.read()

        clients: dict[str, tuple[Post, int]] = {
            "httpx": (lambda: plain.post(url, content=BODY, headers=HEADERS), posts // 10),
            "httpx over aiohttp": (lambda: over_aiohttp.post(url, content=BODY, headers=HEADERS), posts),
            "aiohttp": (by_aiohttp, posts),
            "hooksaga's sender": (lambda: sender.send(request), posts),
        }
        for round_number in range(1, ROUNDS + 1):
            for name, (post, count) in clients.items():
                print(f"{round_number}  {name:20} {await _rate(post, count):10,.0f} POSTs/s", flush=True)
    await sender.close()


def main() -> None:
    posts = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as name, child(receive, Path(name)) as receiver:
        asyncio.run(_measure(receiver.recv() + "/ok", str(ensure_certificates(Path(name)).ca), posts))


if __name__ == "__main__":
    main()
