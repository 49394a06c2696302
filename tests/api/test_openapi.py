"""Requests made up from the API's own description, valid and not: every answer is one that the description names."""

import json
import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from shared.runtime.openapi import openapi_document
from tests.api.http_client import Api
from tests.api.running_system import RunningSystem
from tests.hostile_cases import note_answer

Json = dict[str, Any]

EXAMPLES = 40
"""For each operation and each kind of request: more than a thousand in all."""

DESCRIPTION = schemathesis.openapi.from_dict(openapi_document())
OPERATIONS = {
    found.ok().label: found.ok() for found in DESCRIPTION.get_all_operations() if isinstance(found, Ok)
}


WITHOUT_INPUT = ("GET /healthz", "GET /v1/openapi.json", "GET /v1/docs", "GET /v1/stats")
"""Nothing about a request to these can be wrong."""

KINDS = [
    pytest.param(label, mode, id=f"{label} {mode.value}")
    for label in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or label not in WITHOUT_INPUT
]


@pytest.mark.hostile("Clients")
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")  # the generator's own
@pytest.mark.parametrize(("label", "mode"), KINDS)
def test_every_answer_is_one_that_the_description_names(
    api: Api, running: RunningSystem, label: str, mode: GenerationMode
) -> None:
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    def ask(case: schemathesis.Case) -> None:
        case.headers["Authorization"] = f"Bearer {api.key}"
        response = case.call(base_url=f"http://127.0.0.1:{running.port}")
        note_answer(response.status_code)
        assert response.status_code < 500, response.text
        check_is_described(label, response.status_code, response.content)

    ask()
    assert api.get("/healthz").status == 200


def check_is_described(label: str, status: int, body: bytes) -> None:
    """A status that the operation names, with a body of its schema. A path that is no route may be no route."""
    method, path = label.split(" ")
    document = openapi_document()
    answers = document["paths"][path][method.lower()]["responses"]
    if str(status) not in answers:
        assert status in (400, 404, 405, 415), f"{label} does not describe {status}: {body!r}"
        return
    media_type, schema = _schema_of(document, answers[str(status)])
    if schema is None:
        assert body == b""
        return
    content = body.decode() if media_type.startswith("text/") else _read(body)
    Draft202012Validator({**schema, "components": document["components"]}).validate(content)


def _schema_of(document: Json, answer: Json) -> tuple[str, Json | None]:
    if "$ref" in answer:
        answer = document["components"]["responses"]["Problem"]
    for media_type, media in answer.get("content", {}).items():
        return media_type, media["schema"]
    return "", None


def _read(body: bytes) -> object:
    """Numbers that Python cannot hold stand for any number."""
    return json.loads(re.sub(rb"-?\d{4000,}", b"0", body))
