"""Texts that could become others on their way, in polling mode: tests/sqs/test_odd_inputs.py has the same ones."""

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.odd_inputs import ODD_INPUTS, OddInput
from tests.api.running_system import RunningSystem


@pytest.mark.hostile("Clients")
@pytest.mark.parametrize("odd", ODD_INPUTS.values(), ids=ODD_INPUTS)
def test_no_text_becomes_another(running: RunningSystem, api: Api, odd: OddInput) -> None:
    if odd.headers and odd.headers[0][0] == "authorization":
        api = api.with_key(None)
    with running.nothing_stored():
        answer = odd.sent_to(api)
    if not odd.code:
        assert answer.status == odd.status, answer
        return
    assert_problem(answer, odd.status, odd.code, answer.json().get("field"))
    assert ("allow" in answer.headers) == (odd.status == 405)
