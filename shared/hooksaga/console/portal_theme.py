"""Style sheet of one portal: the colour, font and corners that its link states.

Text can always be read: on the colour it is black or white, and links have a shade of the colour with enough contrast.
"""

from hooksaga.api.sealed_sessions import Theme

Rgb = tuple[float, float, float]

BLACK, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
CONTRAST = 5.2
"""At least the 4.5 of WCAG AA, on the darkest light and on the lightest dark background of portal.css."""

LIGHT_GROUND, DARK_GROUND = "#e9edf2", "#242d39"
_STEPS = 40
_FALLBACK = 'system-ui, "Noto Sans TC", "PingFang TC", "Microsoft JhengHei", sans-serif'
_GENERIC = frozenset({"serif", "sans-serif", "monospace", "system-ui", "ui-serif", "ui-rounded"})


def theme_css(theme: Theme) -> str:
    """Return the variables that differ from those of portal.css."""
    names = {"--radius": f"{theme.radius}px"}
    if theme.font:
        names["--font"] = f"{_fonts(theme.font)}, {_FALLBACK}"
    if theme.colour:
        light, dark = (_shade(theme.colour, ground) for ground in (LIGHT_GROUND, DARK_GROUND))
        names["--fill"], names["--on-fill"] = theme.colour, readable_on(theme.colour)
        names["--accent"] = f"light-dark({light}, {dark})"
    return ":root{" + ";".join(f"{name}:{value}" for name, value in names.items()) + "}"


def _fonts(names: str) -> str:
    given = [name.strip() for name in names.split(",")]
    return ", ".join(name if name in _GENERIC else f'"{name}"' for name in given)


def readable_on(colour: str) -> str:
    """Return black or white, whichever has more contrast."""
    ground = _rgb(colour)
    return "#000000" if _contrast(BLACK, ground) > _contrast(WHITE, ground) else "#ffffff"


def _shade(colour: str, ground: str) -> str:
    """Return the colour, mixed with as much black or white as it needs to be read on the background."""
    behind = _rgb(ground)
    towards = BLACK if _luminance(behind) > 0.18 else WHITE
    start = _rgb(colour)
    for step in range(_STEPS + 1):
        mixed = _mixed(start, towards, step / _STEPS)
        if _contrast(mixed, behind) >= CONTRAST:
            return _hex(mixed)
    return _hex(towards)


def _mixed(colour: Rgb, other: Rgb, part: float) -> Rgb:
    red, green, blue = (one + (two - one) * part for one, two in zip(colour, other, strict=True))
    return red, green, blue


def _rgb(colour: str) -> Rgb:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _hex(colour: Rgb) -> str:
    return "#" + "".join(f"{round(part * 255):02x}" for part in colour)


def contrast(colour: str, other: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2), from 1 to 21."""
    return _contrast(_rgb(colour), _rgb(other))


def _contrast(one: Rgb, other: Rgb) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Rgb) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
