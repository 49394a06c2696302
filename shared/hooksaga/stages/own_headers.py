"""The headers of a subscription's own, as they are stored: names as they are, values sealed (decision 0070).

The stored form is `{"x-token": {"sealed": "<ciphertext>"}}`. Text in place of the inner object is a value in clear that
SQL, or a version before, wrote: it is delivered as it is, and `hooksaga secrets reseal` seals it.
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
    """The stored form of checked headers."""
    own = box.for_purpose(_PURPOSE)
    return {name: {_SEALED: own.seal(value)} for name, value in headers.items()}


def open_headers(box: SecretBox, stored: Any) -> dict[str, str]:
    """The headers to send, by their names in lower case. Raises UnreadableSecret, or ValueError for another form."""
    own = box.for_purpose(_PURPOSE)
    return {name.lower(): _opened(own, value) for name, value in _members(stored).items()}


def _opened(own: SecretBox, value: Any) -> str:
    return value if isinstance(value, str) else own.open(_ciphertext(value))


def shown_headers(stored: StoredHeaders) -> dict[str, str]:
    """As answers show them: every name, and no value."""
    return dict.fromkeys(stored, MASK)


def change_headers(
    box: SecretBox, stored: StoredHeaders, changes: Mapping[str, str | None] | None
) -> StoredHeaders:
    """The stored form after a change: a text sets a header, None removes it, MASK keeps it, and the others stay.
    changes None removes all.

    Raises InvalidInput where MASK stands for a header that there is not, or where there would be too many.
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
    """Whether a value is stored in clear. Raises ValueError for another form."""
    return any(isinstance(value, str) for value in _members(stored).values())


def reseal_headers(box: SecretBox, stored: Any, *, only_clear: bool) -> StoredHeaders | None:
    """The stored form with every value sealed under the first key, or with only_clear those that are in clear; None
    where nothing changes. Raises UnreadableSecret, or ValueError for another form."""
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
