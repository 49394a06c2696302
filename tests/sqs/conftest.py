"""An SQS API per test process, and functions under AWS's own runtime client.

Without ministack or awslambdaric in the environment these tests are skipped, and say what is missing.
"""

import asyncio
import importlib.util
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
import pytest_asyncio

from hooksaga.adapters.secret_box import generate_key
from hooksaga.aws.deployment_order import API_FUNCTIONS
from hooksaga.aws.function_files import routes_of_function
from hooksaga.local.sqs.front import Front
from hooksaga.local.sqs.function_table import FUNCTIONS, function_spec
from hooksaga.local.sqs.functions import LambdaFunction
from hooksaga.local.sqs.ministack import Ministack, given_endpoint, is_installed
from hooksaga.local.sqs.runtime_api import FunctionSpec
from hooksaga.local.sqs.sqs_api import SqsApi
from hooksaga.operations.api_keys import create_api_key

T = TypeVar("T")
NewFunction = Callable[..., LambdaFunction]
NewQueue = Callable[..., Any]

API_KEY = "hs_behind_the_gateway"
"""The one key that the functions of `api_functions` know."""

_numbers = itertools.count(1)


def new_name(stem: str) -> str:
    """A name that no other test uses, in whatever process it runs."""
    return f"{stem}-{os.getpid()}-{next(_numbers)}"


async def until(condition: Callable[[], Any], what: str, seconds: float = 45) -> Any:
    """The condition's first true answer; it may be a coroutine function. Fails at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.05)


def busy_pids(function: LambdaFunction) -> list[int]:
    """Return the process ids of the environments that are at an invocation."""
    return [environment.pid for environment in function._all if environment.busy]


def kill_busy(function: LambdaFunction) -> None:
    """Kill the environments that are at an invocation, of which there has to be one."""
    busy = busy_pids(function)
    assert busy
    for pid in busy:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def runtime_client() -> None:
    """Functions can run here."""
    if importlib.util.find_spec("awslambdaric") is None:
        pytest.skip("awslambdaric is not installed")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sqs_endpoint(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The URL of an SQS API: one that listens already, or a ministack of this process's own."""
    given = given_endpoint()
    if given is not None:
        yield given
        return
    if not is_installed():
        pytest.skip("ministack is not installed, and neither LOCALSTACK_HOST nor AWS_ENDPOINT_URL is set")
    ministack = Ministack(tmp_path_factory.mktemp("ministack") / "ministack.log")
    yield await ministack.start()
    await ministack.stop()


@pytest.fixture
async def sqs(sqs_endpoint: str) -> AsyncIterator[SqsApi]:
    """The service, as the event source reads it."""
    async with SqsApi(sqs_endpoint) as api:
        yield api


@pytest.fixture
def aws_environment(sqs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """This process's boto3 talks to the emulator."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", sqs_endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return sqs_endpoint


@pytest.fixture
async def new_function(runtime_client: None, tmp_path: Path) -> AsyncIterator[NewFunction]:
    """Makes a function of tests/sqs/probes.py."""
    made: list[LambdaFunction] = []

    def make(handler: str = "handler", **options: Any) -> LambdaFunction:
        options = {"timeout_seconds": 5, "environment": {}, **options}
        made.append(
            LambdaFunction(
                FunctionSpec(new_name("probe"), f"tests.sqs.probes.{handler}", **options), tmp_path
            )
        )
        return made[-1]

    yield make
    for function in made:
        await function.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api_functions(
    module_database: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, LambdaFunction]]:
    """The functions with routes, with a database that contains only API_KEY."""
    async with await psycopg.AsyncConnection.connect(module_database, autocommit=True) as connection:
        await create_api_key(connection, API_KEY, name="tests")
    environment = {
        "HOOKSAGA_DATABASE_URL": module_database,
        "HOOKSAGA_SECRETS_KEY": generate_key(),
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
    }
    folder = tmp_path_factory.mktemp("api_functions")
    made = {
        name: LambdaFunction(function_spec(name, FUNCTIONS[name], environment), folder)
        for name in API_FUNCTIONS
    }
    yield made
    await asyncio.gather(*(function.stop() for function in made.values()))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def front_url(api_functions: dict[str, LambdaFunction]) -> AsyncIterator[str]:
    """The URL at which these functions are served, as the gateway serves them on AWS."""
    served = Front([(function, routes_of_function(name)) for name, function in api_functions.items()])
    yield await served.start(0)
    await served.stop()
