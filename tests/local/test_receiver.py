"""The receiver as a sender meets it: over TLS, on every path, with good and bad signatures."""

import asyncio
import base64
import datetime
import hashlib
import json
import multiprocessing
import ssl
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from standardwebhooks.webhooks import Webhook

from hooksaga.local.receiver import Receiver, RunningReceiver, run_receiver, serve
from hooksaga.local.receiver_checks import BoundedCounts
from hooksaga.local.receiver_journal import Journal, Signature
from hooksaga.local.tls import Certificates, ensure_certificates

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"o" * 32).decode()
BODY = b'{"order":1}'


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return ensure_certificates(tmp_path_factory.mktemp("receiver"))


@pytest.fixture
async def running(certificates: Certificates) -> AsyncIterator[RunningReceiver]:
    receiver = await serve(certificates=certificates)
    yield receiver
    await receiver.stop()


@pytest.fixture
async def client(
    running: RunningReceiver, certificates: Certificates
) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cafile=str(certificates.ca))
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(running.url, connector=connector) as session:
        yield session


def signed(body: bytes, secret: str = SECRET, webhook_id: str = "evt_1") -> dict[str, str]:
    now = datetime.datetime.now(datetime.UTC)
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(webhook_id, now, body.decode()),
        "hooksaga-attempt": "2",
        "hooksaga-event-type": "order.paid",
    }


async def post(client: aiohttp.ClientSession, path: str, webhook_id: str = "evt_1") -> int:
    async with client.post(
        path, data=BODY, headers={"webhook-id": webhook_id}, allow_redirects=False
    ) as response:
        return response.status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ok", 200),
        ("/ok/second", 200),
        ("/status/204", 204),
        ("/status/302", 302),
        ("/status/418", 418),
        ("/status/500", 500),
        ("/down", 503),
        ("/slow/1", 200),
        ("/flaky/0", 200),
        ("/nothing", 404),
        ("/status/99", 400),
        ("/status/x", 400),
        ("/slow/-1", 400),
    ],
)
async def test_a_path_names_its_answer(client: aiohttp.ClientSession, path: str, status: int) -> None:
    assert await post(client, path) == status


async def test_a_get_is_told_what_the_paths_are(client: aiohttp.ClientSession) -> None:
    async with client.get("/ok") as response:
        assert response.status == 405
        assert "/flaky/N" in await response.text()


async def test_retry_after_and_location_are_sent_where_asked_for(client: aiohttp.ClientSession) -> None:
    async with client.post("/status/429?retry_after=7") as response:
        assert response.headers["Retry-After"] == "7"
    async with client.post("/status/307", allow_redirects=False) as response:
        assert response.headers["Location"] == "/ok"


async def test_flaky_counts_for_each_delivery(client: aiohttp.ClientSession) -> None:
    assert [await post(client, "/flaky/2") for _ in range(4)] == [503, 503, 200, 200]
    assert await post(client, "/flaky/2", "evt_2") == 503


async def test_down_until_mended(client: aiohttp.ClientSession, running: RunningReceiver) -> None:
    assert await post(client, "/down/one") == 503
    async with client.post("/_fix", json={"path": "/down/one"}) as response:
        assert response.status == 204
    assert [await post(client, path) for path in ("/down/one", "/down/two")] == [200, 503]
    running.receiver.fix()
    assert await post(client, "/down/two") == 200


async def test_slow_waits(client: aiohttp.ClientSession) -> None:
    begin = time.monotonic()
    await post(client, "/slow/200")
    assert time.monotonic() - begin >= 0.2


async def test_reset_is_a_reset(running: RunningReceiver, certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(certificates.ca))
    port = int(running.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"POST /reset HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_hang_ends_with_its_client_and_with_the_server(certificates: Certificates) -> None:
    running = await serve(certificates=certificates)
    context = ssl.create_default_context(cafile=str(certificates.ca))
    async with aiohttp.ClientSession(running.url) as client:
        with pytest.raises(TimeoutError):
            await client.post("/hang", ssl=context, timeout=aiohttp.ClientTimeout(total=0.2))
        hanging = asyncio.create_task(post_with(client, "/hang", context))
        while running.receiver.journal.requests["/hang"] < 2:
            await asyncio.sleep(0.01)
        await asyncio.wait_for(running.stop(), 10)
        with pytest.raises(aiohttp.ClientError):
            await hanging


async def post_with(client: aiohttp.ClientSession, path: str, context: ssl.SSLContext) -> int:
    async with client.post(path, ssl=context) as response:
        return response.status


async def test_huge_is_as_long_as_asked_for_and_survives_a_client_that_leaves(
    client: aiohttp.ClientSession,
) -> None:
    async with client.post("/huge/200000") as response:
        assert len(await response.read()) == 200_000
    async with client.post("/huge/9999999999") as response:
        assert len(await response.content.readexactly(16384)) == 16384
        response.close()
    assert await post(client, "/ok") == 200


async def test_drip_sends_a_byte_at_a_time(client: aiohttp.ClientSession) -> None:
    async with client.post("/drip") as response:
        assert await response.content.read(100) == b"."
        response.close()


@pytest.mark.parametrize("path", ["/ok", "/down", "/status/500", "/hang", "/reset", "/drip"])
async def test_every_path_answers_the_challenge(client: aiohttp.ClientSession, path: str) -> None:
    question = {"type": "subscription.verification", "challenge": "abc"}
    async with client.post(path, json=question) as response:
        assert response.status == 200
        assert await response.json() == {"challenge": "abc"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"note": "subscription.verification"}',
        b'{"type": "subscription.verification", "challenge": 5}',
        b'["subscription.verification"]',
        b"subscription.verification",
    ],
)
async def test_an_event_is_not_taken_for_a_challenge(client: aiohttp.ClientSession, body: bytes) -> None:
    async with client.post("/down", data=body) as response:
        assert response.status == 503


async def test_signatures_are_checked_and_counted(
    client: aiohttp.ClientSession, running: RunningReceiver
) -> None:
    running.receiver.add_secret("/ok", SECRET)
    cases = {200: signed(BODY), 401: signed(BODY, OTHER_SECRET)}
    for status, headers in cases.items():
        async with client.post("/ok", data=BODY, headers=headers) as response:
            assert response.status == status
    assert await post(client, "/ok/unknown") == 200
    counts = running.receiver.journal.signatures
    assert counts == {Signature.GOOD: 1, Signature.BAD: 1, Signature.UNCHECKED: 1}


@pytest.mark.parametrize("change", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", [None, "", "nonsense", "v1,====x"])
async def test_a_request_that_is_not_signed_right_is_refused(
    client: aiohttp.ClientSession, running: RunningReceiver, change: str, value: str | None
) -> None:
    running.receiver.add_secret("/ok", SECRET)
    headers = signed(BODY)
    if value is None:
        del headers[change]
    else:
        headers[change] = value
    async with client.post("/ok", data=BODY, headers=headers) as response:
        assert response.status == 401


async def test_while_a_secret_rotates_both_are_good(
    client: aiohttp.ClientSession, running: RunningReceiver
) -> None:
    running.receiver.add_secret("/ok", OTHER_SECRET)
    async with client.post("/_secret", json={"path": "/ok", "secret": SECRET}) as response:
        assert response.status == 204
    both = signed(BODY)
    both["webhook-signature"] += " " + signed(BODY, OTHER_SECRET)["webhook-signature"]
    for headers in (signed(BODY), signed(BODY, OTHER_SECRET), both):
        async with client.post("/ok", data=BODY, headers=headers) as response:
            assert response.status == 200


@pytest.mark.parametrize("body", [{}, {"path": "/ok"}, {"path": "/ok", "secret": ""}, {"secret": SECRET}, []])
async def test_a_secret_that_is_none_is_refused(client: aiohttp.ClientSession, body: object) -> None:
    async with client.post("/_secret", json=body) as response:
        assert response.status == 422


async def test_what_came_in_can_be_read_back(client: aiohttp.ClientSession) -> None:
    async with client.post("/ok", data=BODY, headers={**signed(BODY), "traceparent": "00-a"}) as response:
        assert response.status == 200
    await post(client, "/down")
    async with client.get("/_received?path=/ok") as response:
        answer = json.loads(await response.read())
    assert answer["requests"] == {"/ok": 1, "/down": 1}
    [one] = answer["received"]
    assert one.pop("arrived_at") == pytest.approx(time.time(), abs=10)
    assert one == {
        "path": "/ok",
        "traceparent": "00-a",
        "webhook_id": "evt_1",
        "event_type": "order.paid",
        "attempt": "2",
        "signature": "unchecked",
        "sha256": hashlib.sha256(BODY).hexdigest(),
        "body": BODY.decode(),
    }


async def test_quiet_counts_and_keeps_nothing(certificates: Certificates) -> None:
    running = await serve(certificates=certificates, receiver=Receiver(quiet=True))
    context = ssl.create_default_context(cafile=str(certificates.ca))
    async with aiohttp.ClientSession(running.url) as client:
        assert await post_with(client, "/ok", context) == 200
    await running.stop()
    assert running.receiver.journal.requests == {"/ok": 1}
    assert not running.receiver.journal.received


def test_the_journal_keeps_the_latest_within_its_bounds() -> None:
    journal = Journal(most=3, most_bytes=10)
    for body in (b"1234", b"1234", b"1", b"2", b"3"):
        journal.write("/ok", {}, body, Signature.UNCHECKED)
    assert [one.body for one in journal.received] == ["1", "2", "3"]
    journal.write("/ok", {}, b"12345678", Signature.UNCHECKED)
    assert [one.body for one in journal.received] == ["2", "3", "12345678"]
    assert journal.requests["/ok"] == 6


def test_counts_forget_the_key_least_recently_counted() -> None:
    counts = BoundedCounts(size=2)
    assert [counts.count(key) for key in ("a", "b", "a", "c", "a", "b")] == [1, 1, 2, 1, 3, 1]


async def test_a_taken_port_is_an_error(running: RunningReceiver, certificates: Certificates) -> None:
    with pytest.raises(OSError, match="address"):
        await serve(port=int(running.url.rpartition(":")[2]), certificates=certificates)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process at once")
async def test_it_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    options = {"data_dir": tmp_path, "announce": theirs.send, "secret": SECRET, "quiet": True}
    process = context.Process(target=run_receiver, args=("127.0.0.1", 0), kwargs=options)
    process.start()
    try:
        url = await asyncio.to_thread(ours.recv)
        trust = ssl.create_default_context(cafile=str(tmp_path / "tls" / "ca.pem"))
        async with (
            aiohttp.ClientSession(url) as client,
            client.post("/ok", data=BODY, headers=signed(BODY), ssl=trust) as response,
        ):
            assert response.status == 200
        assert process.pid is not None
        process.terminate()
        await asyncio.to_thread(process.join, 20)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()
        process.close()
