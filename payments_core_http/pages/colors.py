"""A partner's color on our pages: changed, if necessary, until it is readable.

Contrast is as WCAG 2.2 defines it (relative luminance of sRGB); text needs 4.5 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

MIN_CONTRAST = 4.5
LIGHT_GROUNDS = ("#f4f6f9", "#ffffff")
DARK_GROUNDS = ("#12161b", "#1a2027")
"""The backgrounds of text, as in `style/style.css`; a filled button's text has one of these colors,
so that it is readable too."""

_STEPS = 64
_Rgb = tuple[int, int, int]


@attrs.frozen
class Accent:
    """A color that is readable on light and on dark backgrounds, each as `#rrggbb`."""

    light: str
    dark: str


def make_accent(color: str) -> Accent:
    """The color, made as much darker for light and lighter for dark backgrounds as needed."""
    return Accent(
        _change_until_readable(color, LIGHT_GROUNDS, toward=(0, 0, 0)),
        _change_until_readable(color, DARK_GROUNDS, toward=(255, 255, 255)),
    )


def compute_contrast(one: str, other: str) -> float:
    """From 1, for the same color twice, to 21, for black and white."""
    darker, lighter = sorted((_compute_luminance(_parse(one)), _compute_luminance(_parse(other))))
    return (lighter + 0.05) / (darker + 0.05)


def _change_until_readable(color: str, grounds: Sequence[str], *, toward: _Rgb) -> str:
    """The first step toward black or white that is readable on all backgrounds; the last is."""
    channels = _parse(color)
    for step in range(_STEPS + 1):
        mixed = "#" + "".join(
            f"{(own * (_STEPS - step) + end * step) // _STEPS:02x}"
            for own, end in zip(channels, toward, strict=True)
        )
        if all(compute_contrast(mixed, ground) >= MIN_CONTRAST for ground in grounds):
            return mixed
    raise AssertionError("black and white are readable on every background")


def _compute_luminance(channels: _Rgb) -> float:
    red, green, blue = (_linearize(channel / 255) for channel in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linearize(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def _parse(color: str) -> _Rgb:
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue
