"""What callers send, checked by pydantic, and what they get back."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from hooksaga.core.bulk import DEFAULT_RATE, LEAST_RATE, MOST_RATE
from hooksaga.core.custom_headers import check_custom_headers, check_header_changes
from hooksaga.core.described_input import (
    BULK_OPERATION_RULES,
    CALLBACK_URL_FORMAT,
    HEADER_CHANGES_SCHEMA,
    HEADERS_SCHEMA,
    NO_CONTROL_CHARACTERS,
    described_without_null,
)
from hooksaga.core.event_input import EVENT_TYPE_RULE
from hooksaga.core.moments import read_moment

_NAME_PATTERN = r"^[A-Za-z0-9_.:/-]{1,100}$"

EventType = Annotated[str, Field(pattern=_NAME_PATTERN, description=f"{EVENT_TYPE_RULE}.")]
TenantId = Annotated[str, Field(pattern=_NAME_PATTERN, description=f"{EVENT_TYPE_RULE}.")]
CallbackUrlText = Annotated[
    str, Field(min_length=1, max_length=2000, json_schema_extra={"format": CALLBACK_URL_FORMAT})
]


def _no_control_characters(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("control characters are not allowed")
    text.encode()  # a lone surrogate cannot be stored
    return text


def _whole_number(value: object) -> object:
    """JSON has one kind of number: 14.0 is 14. Beyond 2**53 a float may have been another number before."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOATS:
        return int(value)
    return value


_EXACT_FLOATS = 2**53

Moment = Annotated[datetime, BeforeValidator(read_moment)]
WholeNumber = BeforeValidator(_whole_number)
RowId = Annotated[int, Field(ge=1, lt=2**63), WholeNumber]
RetryLimit = Annotated[int, Field(ge=1, le=50), WholeNumber]
ErrorCodeText = Annotated[
    str,
    Field(min_length=1, max_length=100, json_schema_extra={"pattern": NO_CONTROL_CHARACTERS}),
    AfterValidator(_no_control_characters),
]
Description = Annotated[
    str,
    Field(max_length=500, json_schema_extra={"pattern": NO_CONTROL_CHARACTERS}),
    AfterValidator(_no_control_characters),
]
Headers = Annotated[dict[str, str], AfterValidator(check_custom_headers), WithJsonSchema(HEADERS_SCHEMA)]
HeaderChanges = Annotated[
    dict[str, str | None], AfterValidator(check_header_changes), WithJsonSchema(HEADER_CHANGES_SCHEMA)
]


class StrictModel(BaseModel):
    """Unknown fields are refused, and nothing is converted: "1" is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NewSubscription(StrictModel):
    """The body of POST /v1/subscriptions. Limits left out take the system's defaults at each attempt."""

    event_type: EventType
    callback_url: CallbackUrlText
    tenant_id: TenantId | None = None
    description: Description = ""
    active: bool = True
    max_retry_limit: RetryLimit | None = None
    base_delay_seconds: float | None = Field(default=None, gt=0, le=3600, allow_inf_nan=False)
    timeout_seconds: float | None = Field(default=None, ge=1, le=30, allow_inf_nan=False)
    headers: Headers = Field(default_factory=dict)


_NEVER_NULL = ("event_type", "callback_url", "description", "active")


class SubscriptionChange(StrictModel):
    """The body of PATCH /v1/subscriptions/{id}: only the fields that are given change.

    null resets a limit to the system's default, drops a pending_callback_url, and removes a header, or all of them;
    other fields take no null.
    """

    model_config = ConfigDict(json_schema_extra=described_without_null(*_NEVER_NULL))

    event_type: EventType | None = None
    callback_url: CallbackUrlText | None = None
    pending_callback_url: None = None
    description: Description | None = None
    active: bool | None = None
    max_retry_limit: RetryLimit | None = None
    base_delay_seconds: float | None = Field(default=None, gt=0, le=3600, allow_inf_nan=False)
    timeout_seconds: float | None = Field(default=None, ge=1, le=30, allow_inf_nan=False)
    headers: HeaderChanges | None = None

    @field_validator(*_NEVER_NULL)
    @classmethod
    def _not_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("null is not allowed; leave the field out to keep its value")
        return value


MAX_OVERLAP_SECONDS = 7 * 86_400


class SecretRotation(StrictModel):
    """The body of POST /v1/subscriptions/{id}/rotate-secret: how long the old secret stays valid."""

    overlap_seconds: float = Field(default=86_400, ge=0, le=MAX_OVERLAP_SECONDS, allow_inf_nan=False)


class RequeueFilter(StrictModel):
    """The body of POST /v1/dead-letters/requeue. Every field that is given must match."""

    subscription_id: RowId | None = None
    event_type: EventType | None = None
    error_code: ErrorCodeText | None = None
    failed_after: Moment | None = None
    failed_before: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=1000), WholeNumber] = 1000
    dry_run: bool = False


Rate = Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE, allow_inf_nan=False)]

_REQUEUE_FIELDS = frozenset({"subscription_id", "event_type", "error_code", "failed_after", "failed_before"})
_BACKFILL_FIELDS = frozenset({"subscription_id", "since", "until"})


class BulkFilter(StrictModel):
    """What a bulk operation is about: for a requeue dead letters, for a backfill events of one subscription's type.

    since is inclusive, until is not.
    """

    subscription_id: RowId | None = None
    event_type: EventType | None = None
    error_code: ErrorCodeText | None = None
    failed_after: Moment | None = None
    failed_before: Moment | None = None
    since: Moment | None = None
    until: Moment | None = None


class NewBulkOperation(StrictModel):
    """The body of POST /v1/bulk-operations. A requeue with an empty filter means every dead letter."""

    model_config = ConfigDict(json_schema_extra=BULK_OPERATION_RULES)

    kind: Literal["requeue", "backfill"]
    filter: BulkFilter = BulkFilter()
    rate_per_second: Rate = DEFAULT_RATE
    reason: Description = ""
    dry_run: bool = False

    @model_validator(mode="after")
    def _filter_is_of_its_kind(self) -> "NewBulkOperation":
        given = set(self.filter.model_dump(exclude_none=True))
        allowed = _REQUEUE_FIELDS if self.kind == "requeue" else _BACKFILL_FIELDS
        if wrong := sorted(given - allowed):
            raise ValueError(f"the filter of a {self.kind} takes no {wrong[0]}")
        if self.kind == "backfill" and not {"subscription_id", "since"} <= given:
            raise ValueError("the filter of a backfill needs subscription_id and since")
        return self


class BulkChange(StrictModel):
    """The body of PATCH /v1/bulk-operations/{id}: what is not given stays as it is."""

    rate_per_second: Rate | None = None


def rfc3339(moment: datetime | None) -> str | None:
    """UTC with a Z, to the microsecond; None for None."""
    return None if moment is None else utc_text(moment)


def utc_text(moment: datetime) -> str:
    """UTC with a Z, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
