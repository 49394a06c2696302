"""Who asks for an operation that is recorded with its requester."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requester:
    """A key, or the invoker of the admin function. tenant_id None: for all tenants."""

    tenant_id: str | None
    name: str
    key_id: int | None = None
