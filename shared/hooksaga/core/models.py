"""Request and response models of the API, checked by pydantic."""

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
)

from hooksaga.core.custom_headers import check_custom_headers, check_header_changes
from hooksaga.core.described_input import (
    CALLBACK_URL_FORMAT,
    HEADER_CHANGES_SCHEMA,
    HEADERS_SCHEMA,
    NO_CONTROL_CHARACTERS,
    described_without_null,
)
from hooksaga.core.event_input import EVENT_TYPE_RULE
from hooksaga.core.moments import read_moment
from hooksaga.core.signing import WHSEC_PATTERN, decode_secret

_NAME_PATTERN = r"^[A-Za-z0-9_.:/-]{1,100}$"

EventType = Annotated[str, Field(pattern=_NAME_PATTERN, description=f"{EVENT_TYPE_RULE}.")]
TenantId = Annotated[str, Field(pattern=_NAME_PATTERN, description=f"{EVENT_TYPE_RULE}.")]
CallbackUrlText = Annotated[
    str, Field(min_length=1, max_length=2000, json_schema_extra={"format": CALLBACK_URL_FORMAT})
]


def _no_control_characters(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("control characters are not allowed")
    text.encode()  # an unpaired surrogate cannot be stored
    return text


def _whole_number(value: object) -> object:
    """Accept 14.0 as 14, below 2**53, where floats are exact."""
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
    """Base model that rejects unknown fields and does not convert types: "1" is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _signing_secret(text: str) -> str:
    decode_secret(text)
    return text


SigningSecret = Annotated[
    str, AfterValidator(_signing_secret), WithJsonSchema({"type": "string", "pattern": WHSEC_PATTERN})
]
SigningSecretOrNone = Annotated[
    SigningSecret | None,
    Field(
        description="Your own signing secret: `whsec_` and the base64 of 24 to 64 bytes. `null` or omitted: a "
        "random one.",
    ),
]

MaxRetryLimit = Annotated[
    RetryLimit | None,
    Field(
        description="Limit of attempts, after which a delivery becomes a dead letter. `null`: the system's default.",
        examples=[8],
    ),
]
BaseDelay = Annotated[
    float | None,
    Field(
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="The wait after the first failure; it doubles with each further failure, up to an hour. "
        "`null`: the system's default.",
    ),
]
AttemptTimeout = Annotated[
    float | None,
    Field(
        ge=1,
        le=30,
        allow_inf_nan=False,
        description="Timeout of one attempt. `null`: the system's default.",
    ),
]
MaxInFlight = Annotated[
    Annotated[int, Field(ge=1, le=1000), WholeNumber] | None,
    Field(
        description="Limit of deliveries in flight. Below it the limit adapts to the endpoint. `null`: 1,000.",
        examples=[20],
    ),
]


class RateLimit(StrictModel):
    """A token bucket: it holds `count` tokens, refills at `count` per `per_seconds`, and each attempt takes one."""

    count: Annotated[int, Field(ge=1, le=100_000), WholeNumber] = Field(
        description="Attempts that may start per `per_seconds`.", examples=[50]
    )
    per_seconds: float = Field(
        ge=1, le=86_400, allow_inf_nan=False, description="The period in seconds.", examples=[1]
    )


RateLimitOrNone = Annotated[
    RateLimit | None,
    Field(
        description="Limit of attempts per time. `null`: none.", examples=[{"count": 50, "per_seconds": 1}]
    ),
]
MaxWait = Annotated[
    float | None,
    Field(
        ge=60,
        le=2_592_000,
        allow_inf_nan=False,
        description="Deliveries that are overdue for longer become dead letters with `expired`, except while the "
        "subscription is paused. `null`: 3 days.",
    ),
]

_TENANT_DOC = "Whose it is. Left out: the key's own tenant, or `default`."
_CALLBACK_URL_DOC = "Where deliveries are POSTed: `https://`, on the public internet, at most 500 characters."
_DESCRIPTION_DOC = "A note for people."
_ACTIVE_DOC = "Whether it takes deliveries. `false` stops them at once."
_ORDERED_DOC = (
    "Whether the events of one `ordering_key` are delivered one at a time, in the order in which they were posted. "
    "`max_in_flight` limits all keys together. A change applies to events that are routed after it."
)
_BREAKER_DOC = (
    "Whether a circuit breaker stops deliveries after 10 failures in a row. It then tries one delivery at a time until "
    "one succeeds."
)


class NewSubscription(StrictModel):
    """The body of POST /v1/subscriptions. Omitted limits use the system's defaults at each attempt."""

    event_type: EventType = Field(examples=["order.created"])
    callback_url: CallbackUrlText = Field(
        description=_CALLBACK_URL_DOC, examples=["https://shop.example.com/hooks"]
    )
    tenant_id: TenantId | None = Field(default=None, description=_TENANT_DOC)
    description: Description = Field(
        default="", description=_DESCRIPTION_DOC, examples=["orders of the web shop"]
    )
    active: bool = Field(default=True, description=_ACTIVE_DOC)
    max_retry_limit: MaxRetryLimit = None
    base_delay_seconds: BaseDelay = None
    timeout_seconds: AttemptTimeout = None
    max_in_flight: MaxInFlight = None
    rate_limit: RateLimitOrNone = None
    ordered: bool = Field(default=False, description=_ORDERED_DOC)
    max_wait_seconds: MaxWait = None
    circuit_breaker: bool = Field(default=True, description=_BREAKER_DOC)
    headers: Headers = Field(
        default_factory=dict,
        description="Custom headers of each delivery, at most 20, except those that hooksaga sets. Values are "
        "write-only and shown as `***`.",
        examples=[{"x-shop": "berlin"}],
    )
    secret: SigningSecretOrNone = None
    verified: bool = Field(
        default=False,
        description="`true`: it receives events at once, without a challenge, because you vouch for its address. Needs "
        "the scope `subscriptions:verify`.",
    )
    verified_reason: Description = Field(
        default="",
        description="Why you vouch for the address, for the record.",
        examples=["moved from another system, where it received events"],
    )


_NEVER_NULL = ("event_type", "callback_url", "description", "active", "ordered", "circuit_breaker")


class SubscriptionChange(StrictModel):
    """The body of PATCH /v1/subscriptions/{id}. Omitted fields keep their values.

    null resets a limit to the default, drops a pending_callback_url, and removes one or all headers;
    other fields do not accept null.
    """

    model_config = ConfigDict(json_schema_extra=described_without_null(*_NEVER_NULL))

    event_type: EventType | None = None
    callback_url: CallbackUrlText | None = Field(default=None, description=_CALLBACK_URL_DOC)
    pending_callback_url: None = Field(default=None, description="`null` drops the pending URL.")
    description: Description | None = Field(default=None, description=_DESCRIPTION_DOC)
    active: bool | None = Field(default=None, description=_ACTIVE_DOC, examples=[False])
    max_retry_limit: MaxRetryLimit = None
    base_delay_seconds: BaseDelay = None
    timeout_seconds: AttemptTimeout = None
    max_in_flight: MaxInFlight = None
    rate_limit: RateLimitOrNone = None
    ordered: bool | None = Field(default=None, description=_ORDERED_DOC)
    max_wait_seconds: MaxWait = None
    circuit_breaker: bool | None = Field(default=None, description=_BREAKER_DOC)
    headers: HeaderChanges | None = Field(
        default=None,
        description="Changes by header name: a value sets it, `null` removes it, `***` keeps it; headers "
        "that are not named stay. `null` instead of the object removes all.",
        examples=[{"x-shop": "paris", "x-old": None}],
    )

    @field_validator(*_NEVER_NULL)
    @classmethod
    def _not_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("null is not allowed; omit the field to keep its value")
        return value


Backlog = Literal["deliver", "discard"]
"""Treatment of the deliveries that waited while a subscription was paused."""


class Resumption(StrictModel):
    """The body of POST /v1/subscriptions/{id}/resume."""

    backlog: Backlog = Field(
        default="deliver",
        description="`deliver`: waiting deliveries start within the limits of the subscription. `discard`: they become "
        "dead letters with `discarded`, which can be requeued.",
        examples=["deliver"],
    )


MAX_OVERLAP_SECONDS = 7 * 86_400


class SecretRotation(StrictModel):
    """The body of POST /v1/subscriptions/{id}/rotate-secret."""

    overlap_seconds: float = Field(
        default=86_400,
        ge=0,
        le=MAX_OVERLAP_SECONDS,
        allow_inf_nan=False,
        description="How long the old secret stays valid.",
        examples=[3600],
    )
    secret: SigningSecretOrNone = None


def rfc3339(moment: datetime | None) -> str | None:
    return None if moment is None else utc_text(moment)


def utc_text(moment: datetime) -> str:
    """Format a time in UTC with a Z, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
