"""Connections that break before a request is out, certificates that nobody vouches for, and memory."""

import asyncio
import tracemalloc

import pytest

from hooksaga.adapters.http_sender import HttpSender
from tests.delivery.attempts import post
from tests.delivery.breaking_listener import (
    Stage,
    plain_http_listener,
    resetting_listener,
    self_signed_tls,
)
from tests.delivery.hostile_receiver import Authority, receiver, well
from tests.delivery.test_hostile_answers import ENDLESS_BODIES, NOT_HTTP

pytestmark = [pytest.mark.timeout(60), pytest.mark.hostile("Receivers")]

BUSY = 20
"""Attempts at once."""

BYTES_EACH = 3_000_000
"""What one attempt may hold at its worst, together with this test's receiver, which lives in the same process."""


@pytest.mark.parametrize("stage", Stage)
async def test_a_reset_before_the_request(sender: HttpSender, authority: Authority, stage: Stage) -> None:
    async with resetting_listener(stage, authority.tls()) as port:
        outcome = await post(sender, f"https://127.0.0.1:{port}/")
    assert (outcome.error_code, outcome.resolved_ip) == ("connection_reset", "127.0.0.1")


async def test_a_self_signed_certificate_is_refused(sender: HttpSender) -> None:
    async with receiver(well, self_signed_tls()) as receiving:
        outcome = await post(sender, receiving.url())
        assert (outcome.error_code, outcome.resolved_ip) == ("tls_error", "127.0.0.1")
        assert receiving.requests == []


async def test_clear_text_instead_of_tls(sender: HttpSender) -> None:
    async with plain_http_listener() as port:
        outcome = await post(sender, f"https://127.0.0.1:{port}/")
    assert (outcome.error_code, outcome.response_status, outcome.response_body) == ("tls_error", None, None)


FLOODS = {
    **{f"body: {name}": behave for name, behave in ENDLESS_BODIES.items()},
    **{f"head: {name}": behave for name, behave in NOT_HTTP.items() if "endless" in name or "MB" in name},
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_does_not_cost_memory(sender: HttpSender, authority: Authority, name: str) -> None:
    async with receiver(FLOODS[name], authority.tls()) as receiving:
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            await asyncio.gather(*(post(sender, receiving.url(), seconds=20) for _ in range(BUSY)))
            peak = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
    assert peak < BUSY * BYTES_EACH
