"""Base of all models of requests, and whole numbers as JSON writes them."""

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _whole_number(value: object) -> object:
    """Accept 14.0 as 14, below 2**53, where floats are exact."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOATS:
        return int(value)
    return value


_EXACT_FLOATS = 2**53

WholeNumber = BeforeValidator(_whole_number)


class StrictModel(BaseModel):
    """Base model that rejects unknown fields and does not convert types: "1" is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
