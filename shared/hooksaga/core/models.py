"""Request and response models of the API, checked by pydantic."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from hooksaga.core.cloud_event_output import PAYLOAD, STRUCTURED, DeliveryFormat
from hooksaga.core.custom_headers import check_custom_headers, check_header_changes
from hooksaga.core.described_input import (
    CALLBACK_URL_FORMAT,
    HEADER_CHANGES_SCHEMA,
    HEADERS_SCHEMA,
    NO_CONTROL_CHARACTERS,
    described_one_of,
    described_without_null,
)
from hooksaga.core.event_input import EVENT_TYPE_RULE
from hooksaga.core.event_patterns import EVENT_TYPES_RULE, MAX_EVENT_TYPES, PATTERN, check_event_types
from hooksaga.core.field_types import StrictModel, WholeNumber
from hooksaga.core.filter_input import FILTER_WORDS, Filter
from hooksaga.core.moments import read_moment, utc_text
from hooksaga.core.signing import WHSEC_PATTERN, decode_secret
from hooksaga.core.subscription_limits import (
    AttemptTimeout,
    BaseDelay,
    MaxInFlight,
    MaxRetryLimit,
    MaxWait,
    RateLimitOrNone,
)

_NAME_PATTERN = r"^[A-Za-z0-9_.:/-]{1,100}$"

EventType = Annotated[str, Field(pattern=_NAME_PATTERN, description=f"{EVENT_TYPE_RULE}.")]
TenantId = Annotated[str, Field(pattern=_NAME_PATTERN, description=f"{EVENT_TYPE_RULE}.")]
EventTypes = Annotated[
    list[str],
    AfterValidator(check_event_types),
    WithJsonSchema(
        {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_EVENT_TYPES,
            "items": {"type": "string", "pattern": PATTERN},
        }
    ),
]
CallbackUrlText = Annotated[
    str, Field(min_length=1, max_length=2000, json_schema_extra={"format": CALLBACK_URL_FORMAT})
]


def _no_control_characters(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("control characters are not allowed")
    text.encode()  # an unpaired surrogate cannot be stored
    return text


Moment = Annotated[datetime, BeforeValidator(read_moment)]
RowId = Annotated[int, Field(ge=1, lt=2**63), WholeNumber]
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

_EVENT_TYPE_DOC = f"One event type, in place of `event_types`: {EVENT_TYPE_RULE}."
_EVENT_TYPES_DOC = (
    f"The event types that it receives: {EVENT_TYPES_RULE}. A prefix matches every type that begins with it. Types "
    "that begin with `hooksaga.` are received only if they, or a prefix of them, are named. An event is delivered "
    "once, however many match."
)
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

FORMAT_DOC = (
    "What a delivery carries. `payload`: the payload alone. `cloudevents-structured`: a CloudEvent 1.0 in "
    "`application/cloudevents+json`, with the payload as `data`. `cloudevents-binary`: the payload, with the "
    "attributes of the CloudEvent in `ce-` headers. A change applies from the next attempt on."
)


class NewSubscription(StrictModel):
    """The body of POST /v1/subscriptions. Omitted limits use the system's defaults at each attempt."""

    model_config = ConfigDict(json_schema_extra=described_one_of("event_type", "event_types"))

    event_type: EventType | None = Field(default=None, description=_EVENT_TYPE_DOC)
    event_types: EventTypes | None = Field(
        default=None,
        validate_default=True,
        description=_EVENT_TYPES_DOC,
        examples=[["order.created", "invoice.*"]],
    )
    filter: Filter | None = Field(
        default=None, description=FILTER_WORDS, examples=[{"country": ["DE", {"prefix": "A"}]}]
    )
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
    format: DeliveryFormat = Field(default=PAYLOAD, description=FORMAT_DOC)
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

    @field_validator("event_type")
    @classmethod
    def _not_null(cls, value: str | None) -> str | None:
        if value is None:
            raise ValueError("null is not allowed")
        return value

    @field_validator("event_types")
    @classmethod
    def _one_of_both(cls, value: list[str] | None, info: ValidationInfo) -> list[str] | None:
        if (info.data.get("event_type") is None) == (value is None) and "event_type" in info.data:
            raise ValueError("one of event_types and event_type is required, and not both")
        return value

    @model_validator(mode="after")
    def _given_event_types(self) -> Self:
        if self.event_types is None and "event_types" in self.model_fields_set:
            raise ValueError("event_types must not be null")
        return self


_NEVER_NULL = (
    "event_type",
    "event_types",
    "callback_url",
    "description",
    "active",
    "ordered",
    "circuit_breaker",
    "format",
)


def _described_change(schema: dict[str, Any]) -> None:
    described_without_null(*_NEVER_NULL)(schema)
    schema["not"] = {"required": ["event_type", "event_types"]}


class SubscriptionChange(StrictModel):
    """The body of PATCH /v1/subscriptions/{id}. Omitted fields keep their values.

    null resets a limit to the default, drops a pending_callback_url, and removes the filter, and one or all headers;
    other fields do not accept null.
    """

    model_config = ConfigDict(json_schema_extra=_described_change)

    event_type: EventType | None = Field(default=None, description=_EVENT_TYPE_DOC)
    event_types: EventTypes | None = Field(default=None, description=_EVENT_TYPES_DOC)
    filter: Filter | None = Field(default=None, description=f"{FILTER_WORDS} `null` removes it.")
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
    format: DeliveryFormat | None = Field(default=None, description=FORMAT_DOC, examples=[STRUCTURED])
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

    @model_validator(mode="after")
    def _has_one_kind_of_event_types(self) -> Self:
        if self.event_type is not None and self.event_types is not None:
            raise ValueError("event_type and event_types must not both be given")
        return self


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
