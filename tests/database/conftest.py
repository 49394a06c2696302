"""Endpoints whose flow is controlled."""

from typing import Any

import pytest

from hooksaga.adapters.database import Connection, Role
from tests.conftest import Connect
from tests.database.flowing import Endpoint, EndpointOf
from tests.database.seed import Seed


@pytest.fixture
async def orchestrator(connect: Connect) -> Connection:
    return await connect(Role.ORCHESTRATOR)


@pytest.fixture
async def endpoint(seed: Seed, orchestrator: Connection) -> EndpointOf:
    """Makes endpoints, whose concurrency limit is `limit`."""

    async def endpoint(limit: float = 10, **fields: Any) -> Endpoint:
        made = Endpoint(seed, orchestrator, await seed.subscription(**fields))
        await seed.grow(made.id, limit)
        return made

    return endpoint
