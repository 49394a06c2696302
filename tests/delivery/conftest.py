"""A certificate authority that the senders of these tests trust, and those senders."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from hooksaga.core.address_policy import AddressPolicy
from tests.delivery.hostile_receiver import Authority
from tests.hostile_cases import note

LATE_MS = 1500
"""After its deadline."""

LOOPBACK = AddressPolicy.parse("127.0.0.0/8")


class NotingSender(HttpSender):
    """Notes what came out of each attempt."""

    async def send(self, request: OutgoingRequest) -> SendOutcome:
        outcome = await super().send(request)
        is_late = outcome.duration_ms > request.timeout_seconds * 1000 + LATE_MS
        note((outcome.error_code or str(outcome.response_status)) + (" (late)" if is_late else ""))
        return outcome


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ca.pem")


@pytest.fixture
async def make_sender(authority: Authority) -> AsyncIterator[Callable[..., HttpSender]]:
    """Takes the arguments of HttpSender; by default loopback is allowed and the authority is trusted.

    The test fails when the event loop had to report an exception that nobody handled.
    """
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, report: reports.append(report))
    made: list[HttpSender] = []

    def make(policy: AddressPolicy = LOOPBACK, **options: Any) -> HttpSender:
        made.append(NotingSender(policy, **{"ca_file": str(authority.ca_file), **options}))
        return made[-1]

    yield make
    for sender in made:
        await sender.close()
    gc.collect()  # an exception that was never retrieved is reported when its future is collected
    assert reports == []


@pytest.fixture
def sender(make_sender: Callable[..., HttpSender]) -> HttpSender:
    return make_sender()
