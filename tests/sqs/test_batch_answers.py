"""The answer to a batch, by the letter of AWS."""

from typing import Any

import pytest

from hooksaga.local.sqs.batch_answers import messages_to_keep
from hooksaga.local.sqs.runtime_api import Outcome

IDS = ["a", "b", "c"]


def keep(payload: Any, error: dict[str, Any] | None = None) -> set[str]:
    return messages_to_keep(Outcome("request", 1, False, 0, payload, error), IDS)


def failing(*entries: Any) -> dict[str, Any]:
    return {"batchItemFailures": list(entries)}


@pytest.mark.parametrize("payload", [None, {}, failing(), {"batchItemFailures": None}, {"other": 1}])
def test_all_went_well(payload: Any) -> None:
    assert keep(payload) == set()


@pytest.mark.parametrize(
    "payload",
    [
        failing({"itemIdentifier": "unknown"}),
        failing({"itemIdentifier": "a"}, {"itemIdentifier": "unknown"}),
        failing({"itemIdentifier": ""}),
        failing({"itemIdentifier": None}),
        failing({"itemIdentifier": 1}),
        failing({"messageId": "a"}),
        failing({}),
        failing("a"),
        failing(None),
        {"batchItemFailures": "a"},
        {"batchItemFailures": {"itemIdentifier": "a"}},
        "done",
        [],
        True,
        7,
    ],
)
def test_the_whole_batch_comes_back(payload: Any) -> None:
    assert keep(payload) == set(IDS)


def test_only_the_named_come_back() -> None:
    assert keep(failing({"itemIdentifier": "b"})) == {"b"}
    assert keep(failing({"itemIdentifier": "b"}, {"itemIdentifier": "b"}, {"itemIdentifier": "c"})) == {
        "b",
        "c",
    }


def test_an_error_or_a_timeout_brings_all_back() -> None:
    assert keep(failing(), {"errorType": "Sandbox.Timedout"}) == set(IDS)
