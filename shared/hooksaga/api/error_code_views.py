"""Error codes in the form that a caller may see (decision 0069).

Whether a name is missing or resolves to a refused address reveals entries of this network's DNS. Operators need
that; a subscriber, who chooses the names, could map the network with it.
"""

from typing import Any, cast

from hooksaga.api.http_api import Caller
from hooksaga.core.errors import InvalidInput
from hooksaga.core.outcomes import INSIDE_CODES, NO_PUBLIC_ADDRESS, subscriber_error_code

_FIELDS = frozenset({"error_code", "final_error_code", "last_error_code", "code"})


def shown_code(caller: Caller, error_code: str | None) -> str | None:
    """Return the code itself for operators; for other callers the three of INSIDE_CODES are one."""
    return error_code if caller.is_operator else subscriber_error_code(error_code)


def shown_content(caller: Caller, content: dict[str, Any]) -> dict[str, Any]:
    """Return response content with every error code in it, at any depth, replaced by shown_code."""
    return content if caller.is_operator else cast(dict[str, Any], _masked(content))


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    return {
        name: subscriber_error_code(part) if name in _FIELDS and isinstance(part, str) else _masked(part)
        for name, part in cast(dict[str, Any], value).items()
    }


def checked_code_filter(caller: Caller, error_code: str | None) -> str | None:
    """Check a filter by error code. Raises InvalidInput if it would distinguish codes that the caller may not see."""
    if error_code is None or caller.is_operator or error_code not in (*INSIDE_CODES, NO_PUBLIC_ADDRESS):
        return error_code
    rule = f"error_code {NO_PUBLIC_ADDRESS} and the codes that it replaces require an operator's key"
    raise InvalidInput("invalid_parameter", rule, field="error_code", status=422)
