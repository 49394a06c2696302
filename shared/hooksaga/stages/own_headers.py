"""Stored form of a subscription's custom headers: names in clear, values sealed (decision 0070).

The stored form is `{"x-token": {"sealed": "<ciphertext>"}}`. Text in place of the inner object is a value in clear that
SQL or an earlier version wrote: it is delivered unchanged, and `hooksaga secrets reseal` seals it.
"""

from collections.abc import Mapping
from typing import Any, cast

from hooksaga.adapters.secret_box import SecretBox
from hooksaga.core.attempts import MASK
from hooksaga.core.custom_headers import MAX_HEADERS
from hooksaga.core.errors import InvalidInput

StoredHeaders = dict[str, Any]

_PURPOSE = "subscription headers"
_SEALED = "sealed"


def seal_headers(box: SecretBox, headers: Mapping[str, str]) -> StoredHeaders:
    own = box.for_purpose(_PURPOSE)
    return {name: {_SEALED: own.seal(value)} for name, value in headers.items()}


def open_headers(box: SecretBox, stored: Any) -> dict[str, str]:
    """Return the headers to send by lower-case name. Raises UnreadableSecret, or ValueError for another stored form."""
    own = box.for_purpose(_PURPOSE)
    return {name.lower(): _opened(own, value) for name, value in _members(stored).items()}


def _opened(own: SecretBox, value: Any) -> str:
    return value if isinstance(value, str) else own.open(_ciphertext(value))


def shown_headers(stored: StoredHeaders) -> dict[str, str]:
    """Return the headers for an API response: every name, every value masked."""
    return dict.fromkeys(stored, MASK)


def change_headers(
    box: SecretBox, stored: StoredHeaders, changes: Mapping[str, str | None] | None
) -> StoredHeaders:
    """Return the stored form after a change: text sets a header, None removes it, MASK keeps it; others stay.
    changes None removes all.

    Raises InvalidInput when MASK names a header that does not exist, or when there would be too many headers.
    """
    if changes is None:
        return {}
    if unknown := [name for name, value in changes.items() if value == MASK and name not in stored]:
        raise _refused(f"{unknown[0]} has no value that {MASK} could stand for")
    given = {name: value for name, value in changes.items() if value is not None and value != MASK}
    kept = {name: value for name, value in stored.items() if name not in changes or changes[name] == MASK}
    changed = {**kept, **seal_headers(box, given)}
    if len(changed) > MAX_HEADERS:
        raise _refused(f"at most {MAX_HEADERS} headers are allowed, not {len(changed)}")
    return changed


def _refused(rule: str) -> InvalidInput:
    return InvalidInput("invalid_field", f"headers: {rule}", field="headers", status=422)


def has_clear_values(stored: Any) -> bool:
    """Return whether any value is stored in clear. Raises ValueError for any other stored form."""
    return any(isinstance(value, str) for value in _members(stored).values())


def reseal_headers(box: SecretBox, stored: Any, *, only_clear: bool) -> StoredHeaders | None:
    """Return the stored form with every value sealed under the first key, or with only_clear only values in clear; None
    when nothing changes. Raises UnreadableSecret, or ValueError for any other stored form."""
    own = box.for_purpose(_PURPOSE)
    members = _members(stored)
    anew = {name: _resealed(own, value, only_clear) for name, value in members.items()}
    return None if anew == members else anew


def _resealed(own: SecretBox, value: Any, only_clear: bool) -> Any:
    if isinstance(value, str):
        return {_SEALED: own.seal(value)}
    sealed = None if only_clear else own.reseal(_ciphertext(value))
    return value if sealed is None else {_SEALED: sealed}


def _members(stored: Any) -> dict[str, Any]:
    if not isinstance(stored, dict):
        raise ValueError("stored headers are not an object")
    return cast(dict[str, Any], stored)


def _ciphertext(value: Any) -> str:
    sealed = cast(dict[str, Any], value).get(_SEALED) if isinstance(value, dict) else None
    if not isinstance(sealed, str):
        raise ValueError("a stored header value is neither sealed nor text")
    return sealed
