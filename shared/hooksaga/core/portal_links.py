"""Model of a portal link, checked by pydantic because parts of it become headers and style sheets."""

from typing import Annotated

from pydantic import Field

from hooksaga.core.models import Description, StrictModel, TenantId, WholeNumber

DEFAULT_MINUTES = 10
MAX_MINUTES = 60

_HOST = r"[a-z0-9.-]+(:[0-9]{1,5})?"

Colour = Annotated[str, Field(pattern=r"^(#[0-9a-fA-F]{6})?$")]
HttpsUrl = Annotated[str, Field(max_length=500, pattern=rf"^(https://{_HOST}(/[!#-~]*)?)?$")]
Origin = Annotated[
    str,
    Field(
        max_length=200,
        pattern=rf"^(https://{_HOST}|http://localhost(:[0-9]{{1,5}})?|http://127\.0\.0\.1(:[0-9]{{1,5}})?)?$",
    ),
]
"""https, or plain http on localhost; without a path."""


class NewPortalLink(StrictModel):
    """The body of POST /v1/portal-links."""

    tenant_id: TenantId | None = Field(
        default=None,
        description="The tenant. Omitted: the key's tenant, or `default`.",
        examples=["acme"],
    )
    minutes: Annotated[int, Field(ge=1, le=MAX_MINUTES), WholeNumber] = Field(
        default=DEFAULT_MINUTES, description="Minutes until the link expires.", examples=[10]
    )
    name: Annotated[Description, Field(max_length=100)] = Field(
        default="", description="Title of the pages.", examples=["Acme webhooks"]
    )
    logo_url: HttpsUrl = Field(default="", description="Logo in the page header, `https://`.")
    colour: Colour = Field(
        default="", description="Colour of the page header, as `#rrggbb`.", examples=["#0b5cad"]
    )
    embed_origin: Origin = Field(
        default="",
        description="The only origin that may embed the pages in a frame, such as `https://app.example.com`.",
        examples=["https://app.acme.example"],
    )
