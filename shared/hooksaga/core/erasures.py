"""Erasure requests: remove everything that the producer sent from one event, from all events of a tenant, or from those
that have an attribute."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from hooksaga.core.attribute_search import ATTRIBUTE_PATTERN, AttributeFilter, read_attribute
from hooksaga.core.described_input import described_one_of, described_without_null
from hooksaga.core.field_types import StrictModel
from hooksaga.core.models import Description, TenantId


class ErasureStatus(StrEnum):
    RUNNING = "Running"
    COMPLETED = "Completed"


NOT_BLANK = r"^[^\u0000-\u001f\u007f]*[^\u0000-\u001f\u007f\s][^\u0000-\u001f\u007f]*$"


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _described(schema: dict[str, Any]) -> None:
    described_one_of("event_id", "tenant_id")(schema)
    described_without_null("attribute")(schema)
    schema["dependentRequired"] = {"attribute": ["tenant_id"]}


class NewErasure(StrictModel):
    """The body of POST /v1/erasures. Either event_id or tenant_id; an attribute only with tenant_id."""

    model_config = ConfigDict(json_schema_extra=_described)

    event_id: Annotated[str, Field(pattern="^evt_[0-9a-f]{32}$")] | None = Field(
        default=None, description="Erase this event.", examples=["evt_019cec05dd3e7b1c9f2a6d0e4b8f7c31"]
    )
    tenant_id: TenantId | None = Field(default=None, description="Erase all events that this tenant has now.")
    attribute: Annotated[str, Field(pattern=ATTRIBUTE_PATTERN)] | None = Field(
        default=None,
        description="Erase only those of the tenant's events that have this attribute, such as customer_id:C-1042.",
    )
    reason: Annotated[Description, AfterValidator(_not_blank)] = Field(
        min_length=1,
        json_schema_extra={"pattern": NOT_BLANK},
        description="Why, for the record, which is kept. Name the request, not the person.",
        examples=["request 2026-117"],
    )

    @model_validator(mode="after")
    def _names_one(self) -> "NewErasure":
        named = self.model_fields_set & {"event_id", "tenant_id"}
        if len(named) != 1 or (self.event_id or self.tenant_id) is None:
            raise ValueError("event_id or tenant_id: give one of the two")
        if "attribute" in self.model_fields_set and (self.attribute is None or self.tenant_id is None):
            raise ValueError("attribute: give a name, a colon and the value, with tenant_id")
        return self

    @property
    def attribute_filter(self) -> AttributeFilter | None:
        """The attribute that an event must have, if one was given."""
        return None if self.attribute is None else read_attribute(self.attribute)
