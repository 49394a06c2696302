"""Texts that could become others on their way, through the functions behind the gateway: as in polling mode."""

import asyncio

import pytest

from tests.api.http_client import Api
from tests.api.odd_inputs import ODD_INPUTS, OddInput
from tests.sqs.conftest import API_KEY

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.fixture(scope="module")
def gateway(front_url: str) -> Api:
    return Api(int(front_url.rpartition(":")[2]), API_KEY)


@pytest.mark.parametrize("odd", ODD_INPUTS.values(), ids=ODD_INPUTS)
async def test_no_text_becomes_another(gateway: Api, odd: OddInput) -> None:
    api = gateway.with_key(None) if odd.headers and odd.headers[0][0] == "authorization" else gateway
    answer = await asyncio.to_thread(odd.sent_to, api)
    assert (answer.status, answer.json().get("code", "")) == (odd.status, odd.code), answer
    assert ("allow" in answer.headers) == (odd.status == 405)
