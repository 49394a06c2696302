"""The receiver's answer to a challenge, and the challenge that our own receiver finds in a request."""

import pytest

from hooksaga.adapters.http_sender import SendOutcome
from hooksaga.local.receiver_checks import challenge_in, json_object
from hooksaga.operations.verify_subscription import answers_challenge

TOKEN = "Ab-c_1"
LONG = "9" * 5000
DEEP = "[" * 5000 + "]" * 5000


def answered(body: str) -> SendOutcome:
    return SendOutcome(200, None, body, False, None, "127.0.0.1", 1)


@pytest.mark.parametrize(
    ("body", "answers"),
    [
        (TOKEN, True),
        (f" {TOKEN}\r\n", True),
        (f'"{TOKEN}"', True),
        (f'{{"challenge": "{TOKEN}"}}', True),
        (f'{{"challenge": "{TOKEN}", "n": 1}}', False),
        (f'{{"challenge": "{TOKEN}", "n": {LONG}, "x": 1e999, "x": []}}', False),
        (f'{{"n": {LONG}}}', False),
        (LONG, False),
        (DEEP, False),
        (f'{{"challenge": {DEEP}}}', False),
        (f'{{"challenge": ["{TOKEN}"]}}', False),
        ('{"challenge": null}', False),
        (r'"\ud83d"', False),
        ("", False),
        (f"{TOKEN}x", False),
    ],
)
def test_an_answer_is_the_challenge_and_nothing_else(body: str, answers: bool) -> None:
    assert answers_challenge(answered(body), TOKEN) is answers


@pytest.mark.parametrize(
    ("body", "challenge"),
    [
        (b'{"type": "subscription.verification", "challenge": "c"}', "c"),
        (b'{"type": "subscription.verification", "challenge": "c", "n": %b}' % LONG.encode(), "c"),
        (b'{"type": "subscription.verification", "challenge": 1}', None),
        (b'{"type": "subscription.verification"}', None),
        (b'{"type": "other", "challenge": "subscription.verification"}', None),
        (b'["subscription.verification"]', None),
        (b'"subscription.verification" ' + DEEP.encode(), None),
        (DEEP.encode() + b'"subscription.verification"', None),
        (b'{"type": "subscription.verification", "challenge": "\xff"}', None),
        (b'{"n": %b}' % LONG.encode(), None),
    ],
)
def test_our_receiver_finds_a_challenge_or_none(body: bytes, challenge: str | None) -> None:
    assert challenge_in(body) == challenge


@pytest.mark.parametrize("body", [b"", b"[]", b"{", LONG.encode(), DEEP.encode(), b"\xff"])
def test_what_our_receiver_is_told_and_is_no_object_is_empty(body: bytes) -> None:
    assert json_object(body) == {}
