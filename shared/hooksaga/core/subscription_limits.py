"""Fields of a subscription that limit its deliveries."""

from typing import Annotated

from pydantic import Field

from hooksaga.core.field_types import StrictModel, WholeNumber

RetryLimit = Annotated[int, Field(ge=1, le=50), WholeNumber]
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
