"""The record of one error code of the HTTP API."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """An error code with its status. `cause` and `cure` are Markdown that uses only `code` markup."""

    code: str
    status: int
    cause: str
    cure: str
