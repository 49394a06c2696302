"""Model of a portal link, checked by pydantic because parts of it become headers and style sheets."""

import re
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from hooksaga.core.models import Description, StrictModel, TenantId, WholeNumber

DEFAULT_MINUTES = 10
MAX_MINUTES = 60
DEFAULT_RADIUS = 6
MAX_RADIUS = 24

Scheme = Literal["auto", "light", "dark"]
PortalLanguage = Literal["auto", "en", "zh-Hant"]

_HOST = r"[a-z0-9.-]+(:[0-9]{1,5})?"
_COLOUR = r"^(#[0-9a-fA-F]{6})?$"
_HTTPS_URL = rf"^(https://{_HOST}(/[!#-~]*)?)?$"
_ORIGIN = rf"^(https://{_HOST}|http://localhost(:[0-9]{{1,5}})?|http://127\.0\.0\.1(:[0-9]{{1,5}})?)?$"
_ORIGIN_RULE = "an origin without a path: https://, or http:// on localhost or 127.0.0.1, or empty"
_FONT_RULE = "names of fonts, separated by commas, of at most 200 letters, digits, spaces and -"
_FONT = r"^([A-Za-z0-9][A-Za-z0-9 -]*(, ?[A-Za-z0-9][A-Za-z0-9 -]*)*)?$"


def _check(text: str, *, pattern: str, most: int, rule: str) -> str:
    """Return the text. Raises ValueError, which states the rule in words."""
    if len(text) > most or not re.fullmatch(pattern, text):
        raise ValueError(f"must be {rule}")
    return text


Colour = Annotated[
    str,
    AfterValidator(partial(_check, pattern=_COLOUR, most=7, rule="a colour as #rrggbb, or empty")),
    WithJsonSchema({"type": "string", "maxLength": 7, "pattern": _COLOUR}),
]
HttpsUrl = Annotated[
    str,
    AfterValidator(
        partial(
            _check, pattern=_HTTPS_URL, most=500, rule="an https:// URL of at most 500 characters, or empty"
        )
    ),
    WithJsonSchema({"type": "string", "maxLength": 500, "pattern": _HTTPS_URL}),
]
Origin = Annotated[
    str,
    AfterValidator(partial(_check, pattern=_ORIGIN, most=200, rule=_ORIGIN_RULE)),
    WithJsonSchema({"type": "string", "maxLength": 200, "pattern": _ORIGIN}),
]
Font = Annotated[
    str,
    AfterValidator(partial(_check, pattern=_FONT, most=200, rule=_FONT_RULE)),
    WithJsonSchema({"type": "string", "maxLength": 200, "pattern": _FONT}),
]


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
    logo_url: HttpsUrl = Field(
        default="", description="Logo in the page header, `https://`. Omitted: no logo."
    )
    colour: Colour = Field(
        default="",
        description="Colour of the page header, the buttons and the links, as `#rrggbb`. Text on it is black or white, "
        "and links are lightened or darkened, so that they can be read.",
        examples=["#0b5cad"],
    )
    radius: Annotated[int, Field(ge=0, le=MAX_RADIUS), WholeNumber] = Field(
        default=DEFAULT_RADIUS, description="Radius of corners in pixels.", examples=[6]
    )
    font: Font = Field(
        default="",
        description="Fonts that the visitor's device has, the preferred one first. Omitted: the font of the system.",
        examples=["Inter, Helvetica Neue"],
    )
    scheme: Scheme = Field(default="auto", description="`light`, `dark`, or `auto`: as the browser prefers.")
    header: bool = Field(
        default=True,
        description="Whether pages have a header with the logo, the title, languages and Sign out. `false`: only the "
        "navigation, for a page that has its own header.",
    )
    language: PortalLanguage = Field(
        default="auto",
        description="Language of the pages, such as that of your application. `auto`: the visitor's choice, or the "
        "browser's language.",
    )
    embed_origin: Origin = Field(
        default="",
        description="The only origin that may embed the pages in a frame, such as `https://app.example.com`. The frame "
        "reports its height to this origin.",
        examples=["https://app.acme.example"],
    )
