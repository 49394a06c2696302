"""Client for producers: sends events to hooksaga.

    from hooksaga.client import HooksagaClient

    with HooksagaClient("https://hooks.example.com", "hs_…") as client:
        sent = client.send("order.created", {"total": 110})

`AsyncHooksagaClient` is the same for asyncio. Requires httpx and no other part of hooksaga.
"""

from importlib.util import find_spec

if find_spec("httpx") is None:
    raise ModuleNotFoundError("hooksaga.client needs httpx: pip install 'hooksaga[client]'", name="httpx")

from hooksaga.client.async_client import AsyncHooksagaClient
from hooksaga.client.errors import EventRefused, HooksagaClientError, Unavailable, UnexpectedAnswer
from hooksaga.client.events import Event, Payload, SentEvent
from hooksaga.client.exchange import BatchResult
from hooksaga.client.retries import RetryPolicy
from hooksaga.client.sync_client import HooksagaClient

__all__ = [
    "AsyncHooksagaClient",
    "BatchResult",
    "Event",
    "EventRefused",
    "HooksagaClient",
    "HooksagaClientError",
    "Payload",
    "RetryPolicy",
    "SentEvent",
    "Unavailable",
    "UnexpectedAnswer",
]
