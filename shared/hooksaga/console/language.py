"""Languages of the console: English sentences are the keys, and every other language has one catalogue."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from hooksaga.api.sealed_sessions import Theme
from hooksaga.console.errors_zh_hant import ERRORS as CHINESE_ERRORS
from hooksaga.console.portal_errors_zh_hant import PORTAL_ERROR_WORDS
from hooksaga.console.portal_words_zh_hant import PORTAL_WORDS
from hooksaga.console.words_zh_hant import WORDS as CHINESE_WORDS

COOKIE = "hooksaga_language"


class Language(StrEnum):
    ENGLISH = "en"
    CHINESE = "zh-Hant"


NAMES = {Language.ENGLISH: "English", Language.CHINESE: "繁體中文"}
ENGLISH_WORDS = {
    "created_later": "created later",
    "other_event_type": "took other event types",
    "test_of_another": "test event of another subscription",
    "eligible_later": "active only later",
    "filtered": "filter did not match",
    "unverified": "not verified",
    "gone": "the endpoint is gone (410)",
}
"""English texts of database values."""

_CATALOGUES: dict[Language, Mapping[str, str]] = {
    Language.ENGLISH: ENGLISH_WORDS,
    Language.CHINESE: {**CHINESE_WORDS, **PORTAL_WORDS, **PORTAL_ERROR_WORDS},
}


_ERRORS: dict[Language, Mapping[str, str]] = {Language.ENGLISH: {}, Language.CHINESE: CHINESE_ERRORS}


class Translator:
    """Translation into one language. Values replace their names in the sentence: {count}."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._words = _CATALOGUES[language]

    def __call__(self, sentence: str, **values: Any) -> str:
        said = self._words.get(sentence, sentence)
        return said.format(**values) if values else said

    def error(self, code: str) -> str:
        """Text of an error code; empty in English, where the error's own detail is shown alone."""
        return _ERRORS[self.language].get(code, "")


def console_texts(words: Translator) -> dict[str, Any]:
    """Return `said`, the message of a form error, and `cause`, that of an error code, for the console's templates."""

    def said(wrong: Mapping[str, Any]) -> str:
        if "sentence" in wrong:
            return words(wrong["sentence"], **wrong["values"])
        return Markup('{} <span lang="en">{}</span>').format(words.error(wrong["code"]), wrong["message"])

    return {"said": said, "cause": str}


def language_of(request: Request, theme: Theme) -> Language:
    """Language that a portal's link states, that was chosen on a page, or the browser's first supported language."""
    if theme.language in tuple(Language):
        return Language(theme.language)
    chosen = request.cookies.get(COOKIE, "")
    if chosen in tuple(Language):
        return Language(chosen)
    for part in request.headers.get("accept-language", "").split(","):
        name = part.partition(";")[0].strip().lower()
        if name == "en" or name.startswith("en-"):
            return Language.ENGLISH
        if name == "zh" or name.startswith("zh-"):
            return Language.CHINESE
    return Language.ENGLISH
