"""The look of a portal: values that a link refuses with their rule, and colours that can always be read."""

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hooksaga.api.http_api import invalid_field
from hooksaga.api.sealed_sessions import Theme
from hooksaga.console.portal_theme import DARK_GROUND, LIGHT_GROUND, contrast, readable_on, theme_css
from hooksaga.core.portal_links import NewPortalLink

REFUSED = [
    ("colour", "red", "colour: must be a colour as #rrggbb, or empty"),
    ("colour", "#0a6b4f\n", "colour: must be a colour as #rrggbb, or empty"),
    ("colour", "#0a6b4f0", "colour: must be a colour as #rrggbb, or empty"),
    ("radius", 25, "radius: Input should be less than or equal to 24"),
    ("radius", 1.5, "radius: Input should be a valid integer"),
    ("font", "Inter;}", "font: must be names of fonts"),
    ("font", 'a"', "font: must be names of fonts"),
    ("scheme", "sepia", "scheme: Input should be 'auto', 'light' or 'dark'"),
    ("language", "fr", "language: Input should be 'auto', 'en' or 'zh-Hant'"),
    ("header", "no", "header: Input should be a valid boolean"),
    ("logo_url", "http://a.example/x.png", "logo_url: must be an https:// URL"),
    ("logo_url", "https://a.example/" + "x" * 483, "logo_url: must be an https:// URL of at most 500"),
    ("font", "x" * 201, "font: must be names of fonts"),
    ("embed_origin", "https://a.example/path", "embed_origin: must be an origin without a path"),
    ("embed_origin", "*", "embed_origin: must be an origin without a path"),
    ("embed_origin", "http://a.example", "embed_origin: must be an origin without a path"),
]


@pytest.mark.parametrize(("field", "value", "said"), REFUSED)
def test_a_wrong_value_is_refused_with_field_and_rule(field: str, value: object, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        NewPortalLink.model_validate({field: value})
    error = invalid_field(refused.value)
    assert (error.status, error.field) == (422, field)
    assert str(error).startswith(said)
    assert not jsonschema_rs.is_valid(NewPortalLink.model_json_schema(), {field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("colour", ""),
        ("colour", "#0A6b4f"),
        ("font", "x" * 200),
        ("logo_url", "https://a.example/" + "x" * 482),
        ("embed_origin", "http://localhost:3000"),
        ("embed_origin", f"https://{'a' * 192}"),
    ],
)
def test_a_value_within_its_rule_is_kept(field: str, value: str) -> None:
    assert NewPortalLink.model_validate({field: value}).model_dump()[field] == value
    assert jsonschema_rs.is_valid(NewPortalLink.model_json_schema(), {field: value})


@given(st.integers(0, 0xFFFFFF))
def test_text_can_be_read_with_any_colour(number: int) -> None:
    colour = f"#{number:06x}"
    assert contrast(colour, readable_on(colour)) >= 4.5
    css = theme_css(Theme(colour=colour))
    light, dark = css.partition("light-dark(")[2].partition(")")[0].split(", ")
    for ground in (LIGHT_GROUND, "#ffffff", "#f6f7f9", "#eef1f5"):
        assert contrast(light, ground) >= 4.5
    for ground in (DARK_GROUND, "#11151b", "#191f28", "#222a35"):
        assert contrast(dark, ground) >= 4.5


def test_a_colour_with_enough_contrast_is_kept() -> None:
    assert "light-dark(#0a4a36," in theme_css(Theme(colour="#0a4a36"))


def test_fonts_are_quoted_except_the_generic_ones() -> None:
    assert '--font:"Helvetica Neue", serif, system-ui' in theme_css(Theme(font="Helvetica Neue, serif"))
