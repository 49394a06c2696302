"""Both languages say everything: what a page can say is in the catalogue, and nothing else is."""

import re

import pytest

from hooksaga.console.dead_letters import DeadLetterChoice
from hooksaga.console.errors_zh_hant import ERRORS
from hooksaga.console.forms import RULES
from hooksaga.console.pages import TEMPLATES
from hooksaga.console.portal_errors_zh_hant import PORTAL_ERROR_WORDS
from hooksaga.console.portal_words_zh_hant import PORTAL_WORDS
from hooksaga.console.words_zh_hant import WORDS
from hooksaga.core.attempts import AttemptTrigger, Outcome, StatusClass
from hooksaga.core.bulk import BulkKind, BulkStatus
from hooksaga.core.endpoint_health import DisabledReason
from hooksaga.core.event_status import EventStatus
from hooksaga.core.problems import BY_CODE
from hooksaga.core.routing import Reason
from hooksaga.core.saga import JobStatus, SagaStatus
from hooksaga.core.time_ranges import TimeRange
from hooksaga.operations.open_work import OpenState
from tests.api.running_system import RunningSystem
from tests.console.pages import Pages

SAID = re.compile(r"""_\((?:"([^"]+)"|'([^']+)')""")
VALUES = re.compile(r"{(\w+)}")
SHOWN_WORDS = (
    AttemptTrigger,
    Outcome,
    StatusClass,
    BulkKind,
    BulkStatus,
    DisabledReason,
    EventStatus,
    DeadLetterChoice,
    OpenState,
    TimeRange,
    Reason,
    JobStatus,
    SagaStatus,
)
"""What the database says, and a page shows in words."""


def said() -> set[str]:
    found = [match for path in TEMPLATES.rglob("*.html") for match in SAID.findall(path.read_text("utf-8"))]
    return (
        {double or single for double, single in found}
        | set(RULES.values())
        | {str(one) for kind in SHOWN_WORDS for one in kind}
    )


def test_the_catalogue_says_what_pages_say_and_no_more() -> None:
    assert not set(WORDS) & set(PORTAL_WORDS)
    assert {*WORDS, *PORTAL_WORDS} == said()


def test_every_error_code_has_a_text() -> None:
    assert set(ERRORS) == set(BY_CODE)


def test_a_refused_form_shows_the_error_in_chinese(running: RunningSystem) -> None:
    pages = Pages(running.port).signed_in(running.key)
    pages.headers["accept-language"] = "zh-TW"
    refused = pages.post("/console/subscriptions", event_types="a.b", callback_url="http://x.example/")
    assert refused.status == 422
    assert ERRORS["invalid_callback_url"] in refused.text
    missing = pages.get("/console/subscriptions/999999")
    assert (missing.status, ERRORS["subscription_not_found"] in missing.text) == (404, True)


@pytest.mark.parametrize("words", [WORDS, PORTAL_WORDS, PORTAL_ERROR_WORDS])
def test_a_translation_names_the_same_values(words: dict[str, str]) -> None:
    assert words
    for sentence, translation in words.items():
        assert set(VALUES.findall(translation)) == set(VALUES.findall(sentence)), sentence


def test_no_sentence_stands_outside_of_the_catalogue() -> None:
    """Text between tags is a value or a catalogue entry, except names without a translation."""
    headers = {"webhook-id", "webhook-timestamp", "webhook-signature", "retry-after"}
    names = {"p50", "p95", "UTC", "HTTP", "hooksaga", "s", "CSV", "NDJSON", "Enter", *headers}
    templates = list(TEMPLATES.rglob("*.html"))
    assert len(templates) > 20
    for path in templates:
        text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", "\n", path.read_text("utf-8"), flags=re.DOTALL)
        words = set(re.findall(r"[A-Za-z][\w-]+", re.sub(r"<[^>]*>", "\n", text)))
        assert words <= names, (path.name, words - names)


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("zh-TW,zh;q=0.9,en;q=0.5", "zh-Hant"),
        ("fr, zh-Hant", "zh-Hant"),
        ("en-GB,zh-TW", "en"),
        ("fr", "en"),
        ("", "en"),
    ],
)
def test_the_browsers_language_is_spoken(running: RunningSystem, accepted: str, language: str) -> None:
    shown = Pages(running.port).get("/console/sign-in", accept_language=accepted)
    assert f'<html lang="{language}">' in shown.body
    assert (WORDS["Sign in"] in shown.text) == (language == "zh-Hant")


def test_a_language_is_chosen_and_kept(running: RunningSystem) -> None:
    pages = Pages(running.port).signed_in(running.key)
    link = next(href for href in pages.page("/console/events?type=a.b").links() if "/language" in href)
    answer = pages.get(link)
    assert (answer.status, answer.headers["location"]) == (303, "/console/events?type=a.b")
    assert WORDS["Events"] in pages.page("/console/events").text
    away = pages.get("/console/language?to=zh-Hant&back=https://evil.example")
    assert away.headers["location"] == "/console"


def test_every_page_is_there_in_chinese(running: RunningSystem) -> None:
    pages = Pages(running.port).signed_in(running.key)
    pages.headers["accept-language"] = "zh-TW"
    for name in ("", "/events", "/deliveries", "/subscriptions", "/subscriptions/new", "/dead-letters"):
        assert WORDS["Sign out"] in pages.page(f"/console{name}").text
    for name in ("/bulk-operations", "/bulk-operations/new", "/keys", "/portal-links"):
        assert WORDS["Sign out"] in pages.page(f"/console{name}").text
