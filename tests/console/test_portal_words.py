"""What the portal says is in both languages and in its own words: every sentence, cause, code and rule of a form."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from hooksaga.console.forms import checked
from hooksaga.console.language import Language, Translator
from hooksaga.console.pages import TEMPLATES
from hooksaga.console.portal_errors import NOT_TO_CHOOSE, cause_of, portal_texts, rule_of
from hooksaga.console.portal_errors_zh_hant import PORTAL_ERROR_WORDS
from hooksaga.console.portal_rules import CAUSES, ERRORS, FIELDS, OTHER, RULES
from hooksaga.console.portal_words_zh_hant import PORTAL_WORDS
from hooksaga.console.routes import PORTAL_ROUTES
from hooksaga.console.words_zh_hant import WORDS
from hooksaga.core.errors import InvalidInput
from hooksaga.core.models import NewSubscription, Resumption, SecretRotation
from hooksaga.core.outcomes import INSIDE_CODES, ErrorCode, subscriber_error_code
from tests.console.test_language import SAID
from tests.console.test_portal_browser import OUR_WORDS

PACKAGE = Path(__file__).resolve().parents[2] / "shared" / "hooksaga"
CHINESE = {**WORDS, **PORTAL_WORDS, **PORTAL_ERROR_WORDS}

NOT_IN_THE_PORTAL = {
    *("api_key_not_found", "bulk_operation_ended", "bulk_operation_not_found", "before_retention_horizon"),
    *("catalogue_full", "erasure_not_found", "event_type_archived", "invalid_batch", "invalid_cloud_event"),
    *(
        "idempotency_conflict",
        "invalid_event",
        "invalid_event_type",
        "invalid_host",
        "invalid_idempotency_key",
    ),
    *("invalid_ordering_key", "invalid_sample", "invalid_schema", "invalid_tenant_id", "method_not_allowed"),
    *(
        "body_not_base64",
        "function_unavailable",
        "head_too_large",
        "head_too_slow",
        "request_blocked",
        "timeout",
    ),
    *("public_url_missing", "reserved_event_type", "tenant_not_allowed", "tenant_not_found"),
    *("too_many_connections", "unknown_event_type", "unknown_parameter"),
}
"""Codes of things that subscribers cannot do, and of answers that no page renders."""


def portal_sentences() -> set[str]:
    templates = [TEMPLATES / "parts_of_both.html", *(TEMPLATES / "portal").glob("*.html")]
    found = [one for path in templates for one in SAID.findall(path.read_text("utf-8"))]
    rules = {said for _, said in RULES}
    return (
        {double or single for double, single in found}
        | rules
        | {OTHER, *ERRORS.values(), *CAUSES.values(), *FIELDS.values()}
    )


def test_every_sentence_of_the_portal_has_a_translation() -> None:
    assert {sentence for sentence in portal_sentences() if sentence not in CHINESE} == set()
    assert set(PORTAL_ERROR_WORDS) <= portal_sentences()


def test_the_portal_has_its_own_words() -> None:
    said = portal_sentences()
    assert [one for one in said if OUR_WORDS.search(one)] == []
    assert [CHINESE[one] for one in said if OUR_WORDS.search(CHINESE[one])] == []


def test_every_code_that_a_page_can_answer_has_a_text() -> None:
    from hooksaga.core.problems import BY_CODE

    assert not set(ERRORS) & NOT_IN_THE_PORTAL
    assert {*ERRORS, *NOT_IN_THE_PORTAL} == set(BY_CODE)


def test_every_cause_of_a_failed_attempt_has_words() -> None:
    shown = {str(subscriber_error_code(code)) for code in ErrorCode}
    assert shown == set(CAUSES)
    assert set(CAUSES) >= NOT_TO_CHOOSE
    assert not INSIDE_CODES & set(CAUSES)
    assert cause_of("http_503") == "HTTP 503"


RAISING = {
    "core/callback_url.py": "callback_url",
    "core/filters.py": "filter",
    "core/event_patterns.py": "event_types",
    "core/signing.py": "secret",
    "console/forms.py": "field",
    "console/lists.py": "tick",
    "operations/verify_subscription.py": "callback_url",
}
"""Modules that state rules of the portal's fields, and a field of each."""

NOT_OF_A_FIELD = ("1 1", "a delivery needs at least one signing key", "a webhook id cannot contain")
MAKERS = {
    "InvalidPart",
    "ValueError",
    "InvalidSecret",
    "_require",
    "InvalidInput",
    "_invalid",
    "VerificationFailed",
}


def stated(source: str) -> list[str]:
    """The texts that a module raises, or returns as a reason, with 1 for each value and constants for names."""
    tree = ast.parse(source)
    constants = {
        target.id: text(node.value, {})
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            found += [text(one, constants) for one in node.args]
        if isinstance(node, ast.Return) and isinstance(node.value, ast.JoinedStr):
            found.append(text(node.value, constants))
    return [one for one in found if " " in one and not one.startswith(NOT_OF_A_FIELD)]


def text(node: ast.expr, constants: dict[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else value(one) for one in node.values)
    return constants.get(node.id, "") if isinstance(node, ast.Name) else ""


def value(node: ast.expr) -> str:
    name = ast.unparse(node)
    if "EVENT_TYPES_RULE" in name:
        return "1 to 100 event types, each 1 to 100 characters"
    if "COMPARISONS" in name:
        return "=, <"
    if "SECRET_PREFIX" in name:
        return "whsec_"
    return "'a b'" if "!r" in name else "1"


@pytest.mark.parametrize("module", RAISING)
def test_every_rule_of_a_field_is_known(module: str) -> None:
    found = stated((PACKAGE / module).read_text("utf-8"))
    assert found, module
    field = RAISING[module]
    unknown = [one for one in found if rule_of("invalid_field", field, one) is None]
    assert unknown == []


USUAL: dict[str, Any] = {"event_types": ["a"], "callback_url": "https://example.com/"}
NAN = float("nan")
WRONG = {
    NewSubscription: [
        *({"event_types": one} for one in ([], ["a b"], ["a"] * 101)),
        *({"callback_url": one} for one in ("", "x" * 2001)),
        *({"description": one} for one in ("x" * 501, "\n")),
        *({"max_retry_limit": one} for one in (0, 51)),
        *({"base_delay_seconds": one} for one in (0, 4000, NAN)),
        *({"timeout_seconds": one} for one in (0.5, 31, NAN)),
        *({"max_in_flight": one} for one in (0, 1001)),
        *({"rate_limit": {"count": one, "per_seconds": 1}} for one in (None, 0, 100_001)),
        *({"rate_limit": {"count": 1, "per_seconds": one}} for one in (0.1, 1e9, NAN)),
        *({"max_wait_seconds": one} for one in (1, 1e9, NAN)),
        *({"filter": one} for one in ([1], {}, {"a": 1}, {"a": [{"x": 1}]}, {"$or": [1]})),
        *({"secret": one} for one in ("x", "whsec_", "whsec_!")),
        {"format": "xml"},
    ],
    SecretRotation: [
        {"overlap_seconds": 1e9},
        {"overlap_seconds": -1},
        {"overlap_seconds": NAN},
        {"secret": "x"},
    ],
    Resumption: [{"backlog": "drop"}],
}


@pytest.mark.parametrize(
    ("model", "wrong"), [(model, one) for model, many in WRONG.items() for one in many], ids=str
)
@pytest.mark.parametrize("language", Language)
def test_a_wrong_field_is_explained(model: Any, wrong: dict[str, Any], language: Language) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(model, {**(USUAL if model is NewSubscription else {}), **wrong})
    error = refused.value
    said = portal_texts(Translator(language))["said"]
    shown = said({"code": error.code, "field": error.field, "message": str(error)})
    assert rule_of(error.code, error.field, str(error)) is not None, str(error)
    assert OUR_WORDS.search(shown) is None
    assert "{" not in shown.replace('{"', "")
    assert (re.search("[一-鿿]", shown) is not None) == (language is Language.CHINESE)


def test_an_unknown_detail_is_never_shown() -> None:
    said = portal_texts(Translator(Language.ENGLISH))["said"]
    unknown = {"code": "invalid_field", "field": "x", "message": "x: the saga broke its lease"}
    assert said(unknown) == ERRORS["invalid_field"]
    assert said({**unknown, "code": "new_code"}) == OTHER


def test_every_page_of_the_portal_is_the_portals_own() -> None:
    """A page without a template of the portal would show that of operators."""
    names = {path.name for path in (TEMPLATES / "portal").glob("*.html")}
    modules = {str(route.endpoint.__module__) for route in PORTAL_ROUTES}
    assert modules
    rendered = {
        found
        for module in (
            "portal",
            "subscriptions",
            "subscription_list",
            "deliveries",
            "dead_letters",
            "events",
            "event_types",
            "search",
            "pages",
        )
        for found in re.findall(r'"(\w+\.html)"', (PACKAGE / "console" / f"{module}.py").read_text("utf-8"))
    }
    assert rendered - names == {"events.html", "portal_link.html"}
