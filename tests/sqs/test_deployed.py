"""The functions deployed into an emulator: its own Lambda, event source mappings and REST API instead of ours."""

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import psycopg
import pytest

from hooksaga.aws.deployment_order import API_FUNCTIONS
from hooksaga.local import receiver as receivers
from hooksaga.local.sqs.function_table import FUNCTIONS
from hooksaga.local.sqs.ministack import given_endpoint
from hooksaga.local.sqs.queue_set import create_queues
from hooksaga.local.sqs.sqs_api import SqsApi
from hooksaga.local.tls import ensure_certificates
from hooksaga.operations.api_keys import create_api_key, generate_api_key
from tests.database.seed import Seed
from tests.sqs.conftest import new_name, until

pytestmark = [pytest.mark.sqs, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
ROLE = "arn:aws:iam::000000000000:role/hooksaga"
RESOURCES = {
    "ingest": ("POST", "events"),
    "admin": ("GET", "stats"),
    "subscriptions": ("GET", "subscriptions"),
    "console": ("GET", "console"),
}


def bundle() -> bytes:
    """The code of the functions as a zip; libraries are those of the emulator's environment."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in ("functions", "shared", "sql"):
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix in (".py", ".sql"):
                    archive.write(path, path.relative_to(ROOT))
    return content.getvalue()


class Deployment:
    """Everything through the AWS APIs, as a stack would do it."""

    def __init__(self, endpoint: str, environment: dict[str, str]) -> None:
        self._endpoint = endpoint
        self._name = new_name("deployed")
        self._environment = environment
        self._lambda: Any = self._client("lambda")
        self._gateway: Any = self._client("apigateway")
        self._mappings: list[str] = []

    def _client(self, service: str) -> Any:
        make: Any = boto3.client
        return make(service, endpoint_url=self._endpoint)

    def deploy(self, queues: dict[str, str]) -> str:
        """The address of the REST API."""
        code = bundle()
        arns = {name: self._create_function(name, code) for name in FUNCTIONS}
        for name, kind in FUNCTIONS.items():
            for queue in kind.queues:
                self._map(queues[queue], arns[name])
        return self._create_api({name: arns[name] for name in API_FUNCTIONS})

    def remove(self) -> None:
        for mapping in self._mappings:
            self._lambda.delete_event_source_mapping(UUID=mapping)
        for name in FUNCTIONS:
            self._lambda.delete_function(FunctionName=f"{self._name}-{name}")

    def _create_function(self, name: str, code: bytes) -> str:
        answer = self._lambda.create_function(
            FunctionName=f"{self._name}-{name}",
            Runtime="python3.11",
            Role=ROLE,
            Handler=f"functions.{name}.handler.handler",
            Code={"ZipFile": code},
            Timeout=FUNCTIONS[name].timeout_seconds,
            Environment={"Variables": self._environment},
        )
        return answer["FunctionArn"]

    def _map(self, queue_arn: str, function: str) -> None:
        answer = self._lambda.create_event_source_mapping(
            EventSourceArn=queue_arn,
            FunctionName=function,
            BatchSize=10,
            FunctionResponseTypes=["ReportBatchItemFailures"],
            ScalingConfig={"MaximumConcurrency": 2},
        )
        self._mappings.append(answer["UUID"])

    def _create_api(self, functions: dict[str, str]) -> str:
        api = self._gateway.create_rest_api(name=self._name, binaryMediaTypes=["*/*"])["id"]
        root = self._gateway.get_resources(restApiId=api)["items"][0]["id"]
        version = self._gateway.create_resource(restApiId=api, parentId=root, pathPart="v1")["id"]
        for name, arn in functions.items():
            method, path = RESOURCES[name]
            resource = self._gateway.create_resource(restApiId=api, parentId=version, pathPart=path)["id"]
            place = {"restApiId": api, "resourceId": resource, "httpMethod": method}
            self._gateway.put_method(**place, authorizationType="NONE")
            uri = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{arn}/invocations"
            self._gateway.put_integration(**place, type="AWS_PROXY", integrationHttpMethod="POST", uri=uri)
        self._gateway.create_deployment(restApiId=api, stageName="prod")
        return f"{self._endpoint}/restapis/{api}/prod/_user_request_"


@pytest.fixture
async def seed(module_database: str) -> AsyncIterator[Seed]:
    connection = await psycopg.AsyncConnection.connect(module_database, autocommit=True)
    async with connection:
        yield Seed(connection)


@pytest.mark.long
@pytest.mark.skipif(given_endpoint() is not None, reason="only ministack runs functions without Docker")
async def test_an_event_flows_through_the_emulators_own_lambda(
    seed: Seed, module_database: str, sqs_endpoint: str, aws_environment: str, tmp_path: Path
) -> None:
    certificates = ensure_certificates(tmp_path)
    running = await receivers.serve(certificates=certificates)
    key = generate_api_key()
    await create_api_key(seed.connection, key, name="deployed")
    good = await seed.subscription("deployed", f"{running.url}/ok")
    await seed.subscription("deployed", f"{running.url}/flaky/1", base_delay_seconds=0.2)
    async with SqsApi(sqs_endpoint) as sqs:
        visibility = {queue: kind.visibility_seconds for kind in FUNCTIONS.values() for queue in kind.queues}
        queues = await create_queues(sqs, new_name("deployed"), visibility_seconds=visibility)
        arns = {name: (await sqs.attributes(url))["QueueArn"] for name, url in queues.work.items()}
        environment = {
            "HOOKSAGA_DATABASE_URL": module_database,
            "HOOKSAGA_SECRETS_KEY": seed.secrets_key,
            "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
            "HOOKSAGA_CA_FILE": str(certificates.ca),
            **queues.settings(),
        }
        deployment = Deployment(sqs_endpoint, environment)
        url = await asyncio.to_thread(deployment.deploy, arns)
        try:
            running.receiver.add_secret("/ok", seed.secrets[good])
            await post_and_see_it_delivered(seed, url, key)
            assert [one.signature for one in running.receiver.journal.of("/ok")] == ["good"]
            assert await asyncio.to_thread(stats_status, url, key) == (200, 401)
            assert not any([await sqs.depth(one) for one in queues.redrive.values()])
        finally:
            await asyncio.to_thread(deployment.remove)
            await running.stop()


async def post_and_see_it_delivered(seed: Seed, url: str, key: str) -> None:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    body = json.dumps({"event_type": "deployed", "payload": {"total": 1.10}})
    async with httpx.AsyncClient(timeout=30) as client:
        answer = await client.post(f"{url}/v1/events", content=body, headers=headers)
    assert answer.status_code == 202, answer.text

    async def both_completed() -> bool:
        rows = await seed.rows("SELECT status::text FROM webhook_delivery_sagas")
        return [row["status"] for row in rows] == ["Completed", "Completed"]

    await until(both_completed, "both deliveries are completed", 40)


def stats_status(url: str, key: str) -> tuple[int, int]:
    """With the key, and with another."""
    with httpx.Client(timeout=30) as client:
        good = client.get(f"{url}/v1/stats", headers={"authorization": f"Bearer {key}"})
        bad = client.get(f"{url}/v1/stats", headers={"authorization": "Bearer hs_other"})
    return good.status_code, bad.status_code
