"""Models of requeue and bulk operation requests."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from hooksaga.core.bulk import DEFAULT_RATE, KIND_WORDS, MAX_RATE, MIN_RATE
from hooksaga.core.described_input import BULK_OPERATION_RULES
from hooksaga.core.models import (
    Description,
    ErrorCodeText,
    EventType,
    Moment,
    RowId,
    StrictModel,
    WholeNumber,
)


class RequeueFilter(StrictModel):
    """The body of POST /v1/dead-letters/requeue. All given fields must match."""

    subscription_id: RowId | None = Field(default=None, description="Only this subscription.", examples=[8])
    event_type: EventType | None = Field(default=None, description="Only this event type.")
    error_code: ErrorCodeText | None = Field(
        default=None, description="Only this error code.", examples=["http_503"]
    )
    failed_after: Moment | None = Field(default=None, description="At or after this time.")
    failed_before: Moment | None = Field(default=None, description="Before this time.")
    limit: Annotated[int, Field(ge=1, le=1000), WholeNumber] = Field(
        default=1000, description="Requeue at most this many, oldest first."
    )
    dry_run: bool = Field(default=False, description="Only count the matches.", examples=[True])


Rate = Annotated[
    float,
    Field(
        ge=MIN_RATE,
        le=MAX_RATE,
        allow_inf_nan=False,
        description="Sagas started per second, for all subscriptions together.",
    ),
]

_REQUEUE_FIELDS = frozenset({"subscription_id", "event_type", "error_code", "failed_after", "failed_before"})
_BACKFILL_FIELDS = frozenset({"subscription_id", "since", "until"})
_RESEND_FIELDS = frozenset(
    {"subscription_id", "event_type", "error_code", "status", "ended_after", "ended_before"}
)
_ALLOWED = {"requeue": _REQUEUE_FIELDS, "backfill": _BACKFILL_FIELDS, "resend": _RESEND_FIELDS}
_REQUIRED = {
    "requeue": frozenset[str](),
    "backfill": frozenset({"subscription_id", "since"}),
    "resend": frozenset({"ended_after"}),
}


class BulkFilter(StrictModel):
    """Filter of a bulk operation: dead letters for a requeue, ended deliveries for a resend, events of one
    subscription's type for a backfill.

    since and ended_after are inclusive, until and ended_before are not.
    """

    subscription_id: RowId | None = Field(
        default=None,
        description="Only dead letters or deliveries of this subscription, or the subscription of a backfill.",
        examples=[8],
    )
    event_type: EventType | None = Field(
        default=None, description="Only dead letters or deliveries of this event type."
    )
    error_code: ErrorCodeText | None = Field(
        default=None, description="Only dead letters, or dead-lettered deliveries, with this error code."
    )
    failed_after: Moment | None = Field(
        default=None, description="Only dead letters that failed at or after this time."
    )
    failed_before: Moment | None = Field(
        default=None, description="Only dead letters that failed before this time."
    )
    since: Moment | None = Field(
        default=None,
        description="Backfill: events accepted at or after this time, which must not be in the future.",
        examples=["2026-03-01T00:00:00Z"],
    )
    until: Moment | None = Field(
        default=None,
        description="Backfill: events accepted before this time. Omitted: up to now.",
    )
    status: Literal["Completed", "DeadLettered"] | None = Field(
        default=None, description="Resend: only deliveries that ended so. Omitted: both."
    )
    ended_after: Moment | None = Field(
        default=None, description="Resend: deliveries whose last attempt ended at or after this time."
    )
    ended_before: Moment | None = Field(
        default=None,
        description="Resend: deliveries whose last attempt ended before this time. Omitted: up to now.",
    )


class NewBulkOperation(StrictModel):
    """The body of POST /v1/bulk-operations. A requeue with an empty filter matches all dead letters."""

    model_config = ConfigDict(json_schema_extra=BULK_OPERATION_RULES)

    kind: Literal["requeue", "backfill", "resend"] = Field(
        description=KIND_WORDS,
        examples=["requeue"],
    )
    filter: BulkFilter = Field(
        default=BulkFilter(),
        description="The filter. All given fields must match.",
        examples=[{"error_code": "http_503"}],
    )
    rate_per_second: Rate = Field(default=DEFAULT_RATE, examples=[20])
    reason: Description = Field(
        default="", description="The reason, for the record.", examples=["the receiver is back"]
    )
    dry_run: bool = Field(default=False, description="Only count the matches.")

    @model_validator(mode="after")
    def _filter_is_of_its_kind(self) -> "NewBulkOperation":
        given = set(self.filter.model_dump(exclude_none=True))
        if wrong := sorted(given - _ALLOWED[self.kind]):
            raise ValueError(f"{wrong[0]} is not allowed in the filter of a {self.kind}")
        if not _REQUIRED[self.kind] <= given:
            names = " and ".join(sorted(_REQUIRED[self.kind], reverse=True))
            verb = "are" if len(_REQUIRED[self.kind]) > 1 else "is"
            raise ValueError(f"{names} {verb} required in the filter of a {self.kind}")
        return self


class BulkChange(StrictModel):
    """The body of PATCH /v1/bulk-operations/{id}."""

    rate_per_second: Rate | None = Field(
        default=None,
        description="Sagas started per second, for all subscriptions together.",
        examples=[50],
    )
