"""A problem leads to its explanation behind the gateway too: with a stage in the URL, and without."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio

from hooksaga.local.sqs.front import MAX_BODY_BYTES
from hooksaga.local.sqs.functions import LambdaFunction
from tests.api.explained import assert_explained
from tests.sqs.conftest import API_KEY

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.asyncio(loop_scope="module"),
]

SAMPLES = Path(__file__).parents[2] / "events-samples"
REFUSED = sorted(SAMPLES.glob("*/api_gateway_refused.*.json"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def front(front_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP as SQS mode serves it on one machine."""
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    async with httpx.AsyncClient(base_url=front_url, headers=headers, trust_env=False, timeout=60) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/nowhere", b""),
        ("PUT", "/v1/events", b"{}"),
        ("POST", "/v1/events", b"{"),
        ("POST", "/v1/events", b" " * (MAX_BODY_BYTES + 1)),
        ("GET", "/v1/subscriptions/1", b""),
        ("POST", "/v1/dead-letters/1/requeue", b""),
    ],
    ids=["no route", "no method", "ingest", "too large for the gateway", "subscriptions", "admin"],
)
async def test_through_the_front(front: httpx.AsyncClient, method: str, path: str, body: bytes) -> None:
    refused = await front.request(method, path, content=body)
    assert refused.headers["content-type"] == "application/problem+json"
    await explained_by(front, refused.json(), str(refused.url))


async def test_one_item_through_the_front(front: httpx.AsyncClient) -> None:
    answer = await front.post("/v1/events/batch", json={"items": [{"event_type": ""}]})
    await explained_by(front, answer.json()["items"][0]["error"], str(answer.url))


async def explained_by(front: httpx.AsyncClient, problem: Mapping[str, Any], url: str) -> None:
    page = await front.get("/v1/docs", headers={"authorization": ""})

    def get(asked: str) -> tuple[int, Mapping[str, str], str]:
        assert asked == str(page.url)
        return page.status_code, page.headers, page.text

    assert_explained(problem, url, get)


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_with_a_stage_in_the_url(api_functions: dict[str, LambdaFunction], path: Path) -> None:
    event: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    context = event["requestContext"]
    stage = f"/{context['stage']}"
    assert context["path"] == stage + event["path"], "the URL has the stage, the function's path has not"
    answer = (await api_functions[path.parent.name].invoke(event)).payload
    assert answer["statusCode"] >= 400
    page = await get_page(api_functions["ingest"], stage)

    def get(asked: str) -> tuple[int, Mapping[str, str], str]:
        assert urlsplit(asked).path == f"{stage}/v1/docs"
        headers = {name: values[-1] for name, values in page["multiValueHeaders"].items()}
        return page["statusCode"], headers, page["body"]

    url = f"https://{context['domainName']}{context['path']}"
    assert_explained(json.loads(answer["body"]), url, get)


async def get_page(ingest: LambdaFunction, stage: str) -> dict[str, Any]:
    """Request the page as the gateway does."""
    event = {
        "httpMethod": "GET",
        "path": "/v1/docs",
        "requestContext": {"path": f"{stage}/v1/docs", "requestId": "page"},
    }
    return (await ingest.invoke(event)).payload
