"""Receivers in several languages: programs that verify signatures and answer the verification request.

The portal shows them with the path of the subscriber's endpoint, and docs/verifying.md contains them. A test runs each.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

RECEIVERS = Path(__file__).with_name("receivers")
DEFAULT_PATH = "/hooks"
LANGUAGES = {
    "Node.js": "receiver.mjs",
    "Python": "receiver.py",
    "Go": "receiver.go",
    "PHP": "receiver.php",
    "Ruby": "receiver.ru",
    "Java": "Receiver.java",
    "C#": "Receiver.cs",
}
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9/_.~-]*")


@dataclass(frozen=True, slots=True)
class Snippet:
    language: str
    file_name: str
    text: str


def snippets_for(path: str = "") -> list[Snippet]:
    """Return all receivers, for this path of an address if it means the same in each language."""
    wanted = path if _PLAIN_PATH.fullmatch(path) else DEFAULT_PATH
    return [
        Snippet(
            language,
            name,
            _text(name).replace(f'{DEFAULT_PATH}"', f'{wanted}"').replace(f"{DEFAULT_PATH}'", f"{wanted}'"),
        )
        for language, name in LANGUAGES.items()
    ]


@cache
def _text(name: str) -> str:
    return (RECEIVERS / name).read_text(encoding="utf-8")
