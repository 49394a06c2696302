"""Queue messages carry ids and nothing else; whatever else comes is refused, never guessed at."""

import pytest
from pydantic import ValidationError

from hooksaga.core.messages import (
    CancelMessage,
    DeliveryMessage,
    OrchestrationMessage,
    ResultMessage,
    SubscriptionMessage,
)
from hooksaga.core.outcomes import http_error, is_success

LAST_ID = 2**63 - 1


@pytest.mark.parametrize(
    "sent", [SubscriptionMessage(subscription_id=1), ResultMessage(job_id=2), CancelMessage(cancel_saga_id=3)]
)
def test_the_orchestrator_reads_what_the_others_send(
    sent: SubscriptionMessage | ResultMessage | CancelMessage,
) -> None:
    read = OrchestrationMessage.model_validate_json(sent.model_dump_json())
    assert read.model_dump(exclude_none=True) == sent.model_dump()


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"subscription_id": 1, "job_id": 1}',
        '{"subscription_id": 1, "cancel_saga_id": 1}',
        '{"job_id": 1, "cancel_saga_id": 1}',
        '{"subscription_id": 1, "job_id": 1, "cancel_saga_id": 1}',
        '{"subscription_id": null}',
    ],
)
def test_the_orchestrator_takes_exactly_one_id(body: str) -> None:
    needed = r"error, exactly one of subscription_id, job_id and cancel_saga_id is needed \["
    with pytest.raises(ValidationError, match=needed):
        OrchestrationMessage.model_validate_json(body)


@pytest.mark.parametrize("job_id", ["0", "-1", str(LAST_ID + 1), '"1"', "1.0", "true", "null"])
def test_an_id_is_a_row_that_can_be(job_id: str) -> None:
    with pytest.raises(ValidationError):
        DeliveryMessage.model_validate_json(f'{{"job_id": {job_id}, "saga_id": 1}}')


def test_ids_have_64_bits() -> None:
    body = f'{{"job_id": {LAST_ID}, "saga_id": 1}}'
    assert DeliveryMessage.model_validate_json(body).job_id == LAST_ID


@pytest.mark.parametrize("status", [200, 201, 202, 204, 205, 206, 207, 226, 299])
def test_2xx_is_success(status: int) -> None:
    assert is_success(status)


@pytest.mark.parametrize("status", [100, 199, 300, 304, 399, 400, 410, 429, 500, 599])
def test_nothing_else_is(status: int) -> None:
    assert not is_success(status)
    assert http_error(status) == f"http_{status}"
