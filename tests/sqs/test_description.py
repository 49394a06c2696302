"""The functions behind the gateway do what the description of the API says, as one process does: the same checks."""

import asyncio
from pathlib import Path

import pytest

from tests.api.description_run import SECONDS, check_description
from tests.api.http_client import Api
from tests.sqs.conftest import API_KEY

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.long,
    pytest.mark.timeout(SECONDS),
    pytest.mark.asyncio(loop_scope="module"),
]


async def test_the_functions_do_what_the_description_says(front_url: str, tmp_path: Path) -> None:
    gateway = Api(int(front_url.rpartition(":")[2]), API_KEY)
    await asyncio.to_thread(check_description, gateway, {}, tmp_path, "examples,coverage", examples=1)
