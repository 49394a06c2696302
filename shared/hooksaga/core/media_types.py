"""Content types of bodies. Case, spaces and most parameters do not matter."""

import re

_JSON = re.compile(r"[a-z0-9!#$&^_.-]+/(?:[a-z0-9!#$&^_.+-]+\+)?json")


def media_type_of(content_type: str) -> str:
    """Return the type without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Return whether a type in lower case is JSON: `*/json` or `*/*+json`."""
    return _JSON.fullmatch(media_type) is not None


def is_utf8(content_type: str) -> bool:
    """Return whether the charset is UTF-8 or not given."""
    parameters = (part.partition("=") for part in content_type.split(";")[1:])
    charsets = (value for name, _, value in parameters if name.strip().lower() == "charset")
    return all(value.strip().strip('"').lower() in ("utf-8", "utf8") for value in charsets)
