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
"""https, or plain http on the reader's own machine; nothing behind the host."""


class NewPortalLink(StrictModel):
    """The body of POST /v1/portal-links: whose pages the link opens, and how they look."""

    tenant_id: TenantId | None = Field(
        default=None,
        description="Whose it is. Left out: the key's own tenant, or `default`.",
        examples=["acme"],
    )
    minutes: Annotated[int, Field(ge=1, le=MAX_MINUTES), WholeNumber] = Field(
        default=DEFAULT_MINUTES, description="How long the link opens the pages.", examples=[10]
    )
    name: Annotated[Description, Field(max_length=100)] = Field(
        default="", description="What the pages call themselves.", examples=["Acme webhooks"]
    )
    logo_url: HttpsUrl = Field(default="", description="A picture for the pages' head, `https://`.")
    colour: Colour = Field(default="", description="Of the pages' head, as `#rrggbb`.", examples=["#0b5cad"])
    embed_origin: Origin = Field(
        default="",
        description="The one origin whose pages may show these in a frame, such as `https://app.example.com`.",
        examples=["https://app.acme.example"],
    )
