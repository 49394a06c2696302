"""The languages of the pages: English sentences are the keys, and each other language is one dict of all of them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from starlette.requests import Request

from hooksaga.console.words_zh_hant import WORDS as CHINESE_WORDS

COOKIE = "hooksaga_language"


class Language(StrEnum):
    """As in the `lang` of a page."""

    ENGLISH = "en"
    CHINESE = "zh-Hant"


NAMES = {Language.ENGLISH: "English", Language.CHINESE: "繁體中文"}
ENGLISH_WORDS = {
    "created_later": "created later",
    "other_event_type": "took another event type",
    "eligible_later": "active only later",
    "unverified": "not verified",
    "gone": "the endpoint is gone (410)",
}
"""What the database says, where people say it otherwise."""

_CATALOGUES: dict[Language, Mapping[str, str]] = {
    Language.ENGLISH: ENGLISH_WORDS,
    Language.CHINESE: CHINESE_WORDS,
}


class Translator:
    """Says a sentence in one language. Values are put in where the sentence names them: {count}."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._words = _CATALOGUES[language]

    def __call__(self, sentence: str, **values: Any) -> str:
        said = self._words.get(sentence, sentence)
        return said.format(**values) if values else said


def language_of(request: Request) -> Language:
    """What was chosen on a page; else the browser's first language that we have."""
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
