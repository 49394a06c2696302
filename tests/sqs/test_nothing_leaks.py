"""Planted words in SQS mode: no function logs them, no message carries them, no refusal repeats them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from hooksaga.local.sqs.event_source import Batch
from tests.e2e.test_nothing_leaks import HEADER, IDEMPOTENCY, PATH, PAYLOAD, QUERY, WRONG_KEY, spellings
from tests.sqs.running_pipeline import Pipeline, running_pipeline

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]

KINDS = ("/ok", "/status/500", "/status/302", "/reset", "/ok")


class Story:
    """Deliveries that end well and badly, and requests that are refused, all full of planted words."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.secrets: list[str] = []
        self.messages: list[str] = []
        self.refusals: list[str] = []
        pipeline.weather.change = self._note

    def _note(self, batch: Batch) -> list[Batch]:
        self.messages += [json.dumps(message) for message in batch]
        return [batch]

    async def tell(self) -> None:
        ids = [await self._subscribe(f"{kind}/{PATH}-{number}") for number, kind in enumerate(KINDS)]
        secret = "UPDATE subscription_secrets SET secret = %s WHERE subscription_id = %s"
        self.pipeline.rewrite(secret, f"{HEADER} unreadable", ids[0])
        payload, key = {"canary": PAYLOAD}, {"idempotency-key": IDEMPOTENCY}
        await self._call("POST", "/v1/events", {"event_type": "leak", "payload": payload}, key)
        await self.pipeline.until_ended("leak", len(KINDS))
        await self._refuse(ids[1])
        await self.pipeline.until_quiet()
        await self._read_dead_tasks()

    async def _subscribe(self, path: str) -> int:
        wanted = {"callback_url": f"{self.pipeline.receiver_url}{path}?token={QUERY}", "event_type": "leak"}
        headers = {"authorization": f"Bearer {HEADER}"}
        created = await self._call("POST", "/v1/subscriptions", {**wanted, "headers": headers})
        self.secrets.append(created["secret"])
        await self._call("POST", f"/v1/subscriptions/{created['id']}/verify", None)
        return created["id"]

    async def _refuse(self, subscription_id: int) -> None:
        changed = {"event_type": "leak", "payload": PAYLOAD}
        await self._call("POST", "/v1/events", changed, {"idempotency-key": IDEMPOTENCY}, wanted=409)
        await self._call("POST", "/v1/events", {"event_type": f"{PAYLOAD} ", "payload": PAYLOAD}, wanted=422)
        await self._call(
            "POST", "/v1/events", changed, {"authorization": f"Bearer hs_{WRONG_KEY}"}, wanted=401
        )
        inside = {"callback_url": f"https://10.0.0.1/{PATH}?{QUERY}"}
        await self._call("PATCH", f"/v1/subscriptions/{subscription_id}", inside, wanted=422)
        header = {"headers": {"host": HEADER}}
        await self._call("PATCH", f"/v1/subscriptions/{subscription_id}", header, wanted=422)

    async def _call(
        self, method: str, path: str, content: Any, headers: dict[str, str] | None = None, wanted: int = 0
    ) -> Any:
        own = {"authorization": f"Bearer {self.pipeline.system.api_key}", **(headers or {})}
        async with (
            aiohttp.ClientSession(self.pipeline.url) as session,
            session.request(method, path, json=content, headers=own) as answer,
        ):
            text = await answer.text()
            if wanted:
                assert answer.status == wanted, text
                self.refusals.append(text)
            else:
                assert answer.status < 300, text
            return json.loads(text)

    async def _read_dead_tasks(self) -> None:
        queues, sqs = self.pipeline.system.queues, self.pipeline.system.sqs
        for message in await sqs.receive(queues.dead_tasks, 10, 1):
            self.messages.append(json.dumps(message))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def story(
    module_database: str, sqs_endpoint: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Story]:
    folder: Path = tmp_path_factory.mktemp("leaks")
    environment = pytest.MonkeyPatch()
    environment.setenv("HOOKSAGA_LOG_LEVEL", "DEBUG")
    async with running_pipeline(folder, module_database, sqs_endpoint) as pipeline:
        story = Story(pipeline)
        await story.tell()
        yield story
    environment.undo()


def planted(story: Story) -> set[str]:
    words = [PAYLOAD, QUERY, PATH, HEADER, IDEMPOTENCY, WRONG_KEY, story.pipeline.system.api_key]
    words += [secret.removeprefix("whsec_") for secret in story.secrets]
    return {spelling for word in words for spelling in spellings(word)}


async def test_the_planted_words_did_arrive(story: Story) -> None:
    """Otherwise their absence would prove nothing."""
    arrived = story.pipeline.received(f"/ok/{PATH}-{len(KINDS) - 1}")
    assert PAYLOAD in str(arrived[0].body)


async def test_no_function_logs_them(story: Story) -> None:
    logs = await asyncio.to_thread(
        lambda: {name: function.log() for name, function in story.pipeline.system.functions.items()}
    )
    written = "".join(logs.values())
    assert '"saga moved"' in written
    assert '"_aws"' in written, "the metrics are among the lines"
    assert '"internal_error"' in logs["delivery"]
    found = {(name, word) for name, text in logs.items() for word in planted(story) if word in text}
    assert found == set()


async def test_no_message_carries_them(story: Story) -> None:
    text = "\n".join(story.messages)
    assert "saga_id" in text
    assert "deadLetterId" in text
    assert [word for word in planted(story) if word in text] == []


async def test_no_refusal_repeats_them(story: Story) -> None:
    text = "\n".join(story.refusals)
    assert len(story.refusals) == 5
    assert [word for word in planted(story) if word in text] == []
