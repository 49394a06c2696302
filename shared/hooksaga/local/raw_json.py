"""JSON objects with members as text, because Python's parser rejects or changes some payloads: long integers, repeated
names, numbers beyond a float; and in events inserted by SQL, unpaired surrogates and any depth."""

import json
import re

import msgspec

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]', re.DOTALL)


def raw_members(text: str) -> dict[str, str]:
    """Return the members of a JSON object as unchanged text. The last of several equal names counts.

    Raises ValueError for anything but an object. Member values are not checked.
    """
    members: dict[str, str] = {}
    depth, begin, name = 0, 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0][0]
        depth -= mark in "]}"
        if depth == 1 and mark == ":":
            name, begin = text[begin : token.start()], token.end()
        elif (depth, mark) in ((1, ","), (0, "}")):
            if name:
                members[json.loads(name)] = text[begin : token.start()].strip()
            name, begin = "", token.end()
        depth += mark in "[{"
        if depth == 1 and mark in "[{":  # only those of the object itself
            begin = token.end()
    if depth or not text.strip().startswith("{"):
        raise ValueError("no JSON object")
    return members


def indented(text: str) -> str:
    """Indent JSON text without changing numbers and names; return it unchanged if that is not possible."""
    try:
        return msgspec.json.format(text.encode()).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
