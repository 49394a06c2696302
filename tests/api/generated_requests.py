"""Extensions of schemathesis: generators for custom formats, and the rule between a header and a content type that
OpenAPI cannot express. Loaded by the process that tests/api/test_openapi.py starts."""

import base64
import json
import os
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import CaseMetadata, TestPhase

from hooksaga.core.cloud_event_attributes import STRUCTURED_TYPE
from hooksaga.core.described_input import BASE64_JSON_FORMAT, CALLBACK_URL_FORMAT

_HOSTS = st.sampled_from(["127.0.0.1:9", "LOCALHOST:9", "localhost.:9"])
"""Where nobody listens: a verification ends at once."""

_TARGETS = st.sampled_from(["", "/", "/a.b/~c?d=%20&e", "?f", "/%C3%BC/*;+'!"])
_VALUES = st.sampled_from([None, 1.5, "\u00fc", {"a": []}])
_ENCODED = _VALUES.map(lambda value: base64.b64encode(json.dumps(value).encode()).decode())

schemathesis.openapi.format(
    CALLBACK_URL_FORMAT, st.builds(lambda host, target: f"https://{host}{target}", _HOSTS, _TARGETS)
)
schemathesis.openapi.format(BASE64_JSON_FORMAT, _ENCODED)

IDS: dict[str, int] = json.loads(os.environ.get("HOOKSAGA_TEST_IDS", "{}"))
"""By the path of an operation: the id of a row that is there, because hardly any number would be one."""


@schemathesis.hook
def before_call(_context: Any, case: schemathesis.Case, _kwargs: dict[str, Any]) -> None:
    """A CloudEvent has its idempotency key in its attributes."""
    if case.media_type == STRUCTURED_TYPE:
        case.headers.pop("Idempotency-Key", None)
    if case.path in IDS and case.meta is not None and _chooses_any_row(case.meta):
        case.path_parameters["id"] = IDS[case.path]


def _chooses_any_row(meta: CaseMetadata) -> bool:
    """In the stateful phase the id is that of a row that a call before has made."""
    return meta.generation.mode is GenerationMode.POSITIVE and meta.phase.name is not TestPhase.STATEFUL
