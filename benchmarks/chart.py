"""The chart of `docs/performance.md`, drawn from the table of `benchmarks.reach`.

    python -m benchmarks.chart < table.md > docs/images/reach.svg

A bar shows how near a row is to its lower target, which is the line in the middle: ratios are shown
as they are, and times and memory are inverted, so that longer is better everywhere. A bar that
reaches the right edge is twice as good as the target or more.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from html import escape

import attrs

WIDTH, ROW, TOP = 840, 30, 34
LABELS, FIGURES = 430, 90
BAR = WIDTH - LABELS - FIGURES
REACHED, SHORT = "#1a7f5a", "#b4540a"

_FIGURE = re.compile(r"([0-9.]+) (×|ms|s|MB)")


@attrs.frozen
class Bar:
    """A line of the table that says what is to be reached."""

    what: str
    at_least: str
    measured: str

    @property
    def share(self) -> float:
        """How much of what is to be reached was measured; 1 is all of it."""
        wanted, unit = _read(self.at_least)
        found, _ = _read(self.measured)
        return found / wanted if unit == "×" else wanted / found


def read_table(text: str) -> list[Bar]:
    """The lines of a table in Markdown that have a figure to reach."""
    rows = ([cell.strip() for cell in line.strip("|\n ").split("|")] for line in text.splitlines())
    return [
        Bar(what.replace("`", ""), at_least, measured)
        for what, at_least, _, measured in (row for row in rows if len(row) == 4)
        if _FIGURE.fullmatch(at_least) and _FIGURE.fullmatch(measured)
    ]


def draw(bars: Iterable[Bar]) -> str:
    """The chart as an SVG document."""
    drawn = [_draw_bar(bar, TOP + number * ROW) for number, bar in enumerate(bars)]
    height, middle = TOP + len(drawn) * ROW + 8, LABELS + BAR / 2
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' font-family="sans-serif" font-size="13">',
        "<title>The targets, and the measured figures</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{middle}" y="20" text-anchor="middle" fill="#333333">target</text>',
        *drawn,
        f'<line x1="{middle}" x2="{middle}" y1="26" y2="{height - 8}" stroke="#333333"/>',
        "</svg>\n",
    ))  # fmt: skip


def _draw_bar(bar: Bar, y: int) -> str:
    length = BAR * min(bar.share / 2, 1)
    color = REACHED if bar.share >= 1 else SHORT
    return (
        f'<text x="{LABELS - 10}" y="{y + 15}" text-anchor="end" fill="#111111">'
        f"{escape(bar.what)}</text>"
        f'<rect x="{LABELS}" y="{y + 2}" width="{length:.0f}" height="18" fill="{color}"/>'
        f'<text x="{LABELS + BAR + 10}" y="{y + 15}" fill="#111111">{escape(bar.measured)}</text>'
    )


def _read(figure: str) -> tuple[float, str]:
    match = _FIGURE.fullmatch(figure)
    assert match is not None, figure
    return float(match[1]), match[2]


if __name__ == "__main__":
    sys.stdout.write(draw(read_table(sys.stdin.read())))
