"""JSON whose parts stay text: a payload may hold what Python's own parser does not take, or would change.

Such are integers of any length, names that come twice, and numbers beyond every float; where a producer wrote the
event by SQL also half of a surrogate pair, and any depth.
"""

import json
import re

import msgspec

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]', re.DOTALL)


def raw_members(text: str) -> dict[str, str]:
    """The members of a JSON object, each as its text, to the character. Of a name that comes twice the last one counts.

    Raises ValueError for what is no object. What stands inside the members is not checked.
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
        if depth == 1 and mark in "[{":  # the object's own, and no other
            begin = token.end()
    if depth or not text.strip().startswith("{"):
        raise ValueError("no JSON object")
    return members


def indented(text: str) -> str:
    """JSON text for people, with its numbers and names as they are; as it is where it cannot be indented."""
    try:
        return msgspec.json.format(text.encode()).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
