"""The filter in request bodies."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from hooksaga.core.described_filters import FILTER_SCHEMA
from hooksaga.core.field_types import StrictModel, WholeNumber
from hooksaga.core.filters import FILTER_RULE, check_filter

FILTER_WORDS = (
    "Which events of its types it receives, by their attributes: patterns by name, as in EventBridge. All names must "
    f"match, and of the patterns of one name any. It has {FILTER_RULE}."
)

Filter = Annotated[dict[str, Any], AfterValidator(check_filter), WithJsonSchema(FILTER_SCHEMA)]

MAX_TESTED = 1000


class FilterToTest(StrictModel):
    """The body of POST /v1/subscriptions/{id}/test-filter."""

    filter: Filter | None = Field(
        default=None,
        description=f"The filter to try. `null` or omitted: that of the subscription. {FILTER_WORDS}",
        examples=[{"total": [{"numeric": [">", 100]}]}],
    )
    last: Annotated[int, Field(ge=1, le=MAX_TESTED), WholeNumber] = Field(
        default=100,
        description="How many of the newest events of its event types to compare; test events are left out.",
        examples=[100],
    )
