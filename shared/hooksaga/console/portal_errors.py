"""Functions of the portal's templates that put errors into words of its pages, in the visitor's language."""

import re
from collections.abc import Mapping
from typing import Any

from hooksaga.console.language import Translator
from hooksaga.console.portal_rules import CAUSES, ERRORS, FIELDS, OTHER, RULES

NOT_TO_CHOOSE = frozenset({"no_public_address", "lease_expired"})
"""Causes that the filters do not offer: the first stands for several codes, and the second never ends a delivery."""

_DETAILED = frozenset({"invalid_field", "invalid_parameter", "invalid_callback_url", "verification_failed"})
_RULES = [(re.compile(pattern), said) for pattern, said in RULES]


def portal_texts(words: Translator) -> dict[str, Any]:
    """Return `cause` of an error code, all `causes` that can be chosen, and what is `said` about an error."""

    def cause(code: str | None) -> str:
        return words(cause_of(code)) if code is not None else words("none")

    def said(wrong: Mapping[str, str]) -> str:
        rule = rule_of(wrong["code"], wrong["field"], wrong["message"])
        if rule is None:
            return words(ERRORS.get(wrong["code"], OTHER))
        sentence, values = rule
        shown = {name: cause(value) if name == "cause" else value for name, value in values.items()}
        label = FIELDS.get(wrong["field"].partition(".")[0])
        text = words(sentence, **shown) if shown else words(sentence)
        return text if label is None else f"{words(label)}: {text}"

    causes = {code: words(text) for code, text in CAUSES.items() if code not in NOT_TO_CHOOSE}
    return {"cause": cause, "causes": causes, "said": said}


def cause_of(code: str) -> str:
    """Return an error code in English words."""
    return f"HTTP {code.removeprefix('http_')}" if code.startswith("http_") else CAUSES.get(code, code)


def rule_of(code: str, field: str, detail: str) -> tuple[str, dict[str, str]] | None:
    """Return what is said for the detail of an error, with its values; None if the text of the code is all."""
    if code not in _DETAILED:
        return None
    rule = detail.removeprefix(field).removeprefix(":").lstrip()
    for pattern, said in _RULES:
        if found := pattern.fullmatch(rule):
            return said, {name: value for name, value in found.groupdict().items() if value is not None}
    return None
