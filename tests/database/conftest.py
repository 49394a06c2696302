"""Connections by role, endpoints whose flow is controlled, and the audit after a test."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.operations.audit import audit
from tests.conftest import Connect
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import Seed


@pytest.fixture
async def operator(connect: Connect) -> Connection:
    return await connect(Role.ADMIN)


@pytest.fixture
async def router(connect: Connect) -> Connection:
    return await connect(Role.ROUTER)


@pytest.fixture
async def ingest(connect: Connect) -> Connection:
    return await connect(Role.INGEST)


@pytest.fixture
async def monitor(connect: Connect) -> Connection:
    return await connect(Role.HEALTH_MONITOR)


@pytest.fixture
async def admin(connect: Connect) -> Connection:
    return await connect(Role.SUBSCRIPTIONS)


@pytest.fixture
async def orchestrator(connect: Connect) -> Connection:
    return await connect(Role.ORCHESTRATOR)


@pytest.fixture
async def audited(seed: Seed) -> AsyncIterator[None]:
    """After the test what must always hold does."""
    yield
    assert [finding for finding in await audit(seed.connection) if finding.rows] == []


@pytest.fixture
async def endpoint(seed: Seed, orchestrator: Connection) -> EndpointOf:
    """Makes endpoints, whose concurrency limit is `limit`."""

    async def endpoint(limit: float = 10, **fields: Any) -> Endpoint:
        made = Endpoint(seed, orchestrator, await seed.subscription(**fields))
        await seed.grow(made.id, limit)
        return made

    return endpoint
