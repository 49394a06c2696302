"""A proxy before an SQS API that lies: it delays, drops, refuses and exaggerates, with the service's own words.

What a caller reads are real answers of the service with a few words changed, and what the service never got it never
heard of.
"""

import json
import random
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

Json = dict[str, Any]

SEND = "SendMessageBatch"
RECEIVE = "ReceiveMessage"
_HOP_BY_HOP = {
    "content-length",
    "transfer-encoding",
    "connection",
    "host",
    "date",
    "server",
    "content-encoding",
}


class Lies:
    """Faults of the queue. Shares from 0 to 1 of all entries or calls; `told` counts them by name."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.be_honest()

    def be_honest(self) -> None:
        self.refused = 0.0
        self.failed = 0.0
        self.falsely_failed = 0.0
        self.whole_batches_failed = 0.0
        self.delayed = 0.0
        self.longest_delay = 0
        self.receive_count: int | None = None


class LyingQueue:
    """Listens on a port of its own; `url` takes the place of the service's."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._chance = random.Random(20_261_129)
        self.lies = Lies()

    async def start(self) -> str:
        self._client = aiohttp.ClientSession(auto_decompress=False)
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self.url

    async def stop(self) -> None:
        await self._runner.cleanup()
        await self._client.close()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        action = request.headers.get("x-amz-target", "").rpartition(".")[2]
        body = await request.read()
        if self._chance.random() < self.lies.refused:
            return self._refuse(request)
        if action == SEND:
            return await self._send(request, json.loads(body))
        status, headers, answer = await self._pass_on(request, body)
        if action == RECEIVE and self.lies.receive_count is not None and status == 200:
            answer = self._exaggerate(json.loads(answer))
        return web.Response(status=status, headers=headers, body=self._own_address(answer))

    def _refuse(self, request: web.BaseRequest) -> web.Response:
        self.lies.told["a call refused"] += 1
        if self._chance.random() < 0.5 and request.transport is not None:
            request.transport.abort()
        error = {"__type": "com.amazonaws.sqs#ServiceUnavailable", "message": "the service is unavailable"}
        return web.json_response(error, status=503, content_type="application/x-amz-json-1.0")

    async def _pass_on(self, request: web.BaseRequest, body: bytes) -> tuple[int, dict[str, str], bytes]:
        kept = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        async with self._client.request(
            request.method, self._service + request.path_qs, headers=kept, data=body
        ) as answer:
            headers = {
                name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP
            }
            return answer.status, headers, await answer.read()

    def _own_address(self, answer: bytes) -> bytes:
        """Queue URLs name this proxy."""
        return answer.replace(urlsplit(self._service).netloc.encode(), urlsplit(self.url).netloc.encode())

    async def _send(self, request: web.BaseRequest, asked: Json) -> web.Response:
        """A part of the entries gets lost and is reported as failed; a part is sent and reported all the same."""
        entries: list[Json] = asked["Entries"]
        share = 1.0 if self._chance.random() < self.lies.whole_batches_failed else self.lies.failed
        lost = self._pick(entries, share, "an entry failed in an answer of 200")
        slandered = self._pick(
            [entry for entry in entries if entry not in lost],
            self.lies.falsely_failed,
            "an entry sent, and called failed",
        )
        for entry in self._pick(entries, self.lies.delayed, "a message delayed"):
            entry["DelaySeconds"] = self._chance.randint(1, self.lies.longest_delay)
        kept = [entry for entry in entries if entry not in lost]
        answer: Json = {"Successful": [], "Failed": []}
        if kept:
            _, _, said = await self._pass_on(request, json.dumps({**asked, "Entries": kept}).encode())
            answer = {"Successful": [], "Failed": [], **json.loads(said)}
        bad = {entry["Id"] for entry in [*lost, *slandered]}
        answer["Successful"] = [one for one in answer["Successful"] if one["Id"] not in bad]
        answer["Failed"] += [
            {"Id": one, "SenderFault": False, "Code": "InternalError", "Message": "try again"} for one in bad
        ]
        return web.json_response(answer, content_type="application/x-amz-json-1.0")

    def _pick(self, entries: list[Json], share: float, what: str) -> list[Json]:
        picked = [entry for entry in entries if self._chance.random() < share]
        self.lies.told[what] += len(picked)
        return picked

    def _exaggerate(self, answer: Json) -> bytes:
        for message in answer.get("Messages", []):
            message.setdefault("Attributes", {})["ApproximateReceiveCount"] = str(self.lies.receive_count)
            self.lies.told["a message said to have come before"] += 1
        return json.dumps(answer).encode()
