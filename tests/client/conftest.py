"""One system for each module, and each client in turn."""

from collections.abc import Callable, Iterator

import pytest

from tests.api.conftest import folder, running
from tests.client.both_clients import BlockingAsyncClient, Client, SyncClient

__all__ = ["folder", "running"]

MakeClient = Callable[..., Client]


@pytest.fixture(params=[SyncClient, BlockingAsyncClient], ids=["sync", "async"])
def make_client(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """Either client, with the arguments given; closed after the test."""
    made: list[Client] = []

    def make(*args: object, **more: object) -> Client:
        made.append(request.param(*args, **more))
        return made[-1]

    yield make
    for client in made:
        client.close()
