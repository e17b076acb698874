"""Draws state machines as SVG while the pages are built: no program or script from elsewhere.

The pages hold Mermaid's text, which code hosts draw themselves; `draw` takes the lines that
`docs/generate.py` writes, `source --> target: trigger`, where `[*]` is the beginning and the end.
States are in rows by how far they are from the beginning; a way back goes round the side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape

import attrs

START_OR_END = "[*]"

_LINE = re.compile(r"\s*(\S+) --> ([^\s:]+)(?:: (.+))?")
_BOX_WIDTH, _BOX_HEIGHT = 150, 30
_COLUMN, _ROW, _MARGIN = 200, 96, 90
_MAX_LABELS = 14
"""With more arrows their labels would hide each other: then they appear on hover."""
_END = "end"
_FIRST = "start"


@attrs.frozen
class Arrow:
    """A way between two states, with all triggers that take it."""

    source: str
    target: str
    triggers: tuple[str, ...]


def read_arrows(text: str) -> list[Arrow]:
    """The arrows of a diagram's text, those between the same states as one."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            source, target, trigger = match.groups()
            source = _FIRST if source == START_OR_END else source
            target = _END if target == START_OR_END else target
            found.setdefault((source, target), []).extend([trigger] if trigger else [])
    return [Arrow(source, target, tuple(words)) for (source, target), words in found.items()]


def draw(text: str) -> str:
    """The diagram as an SVG element, in the colors of the page."""
    arrows = read_arrows(text)
    rows = _arrange(arrows)
    places = _place(rows)
    width = max(len(row) for row in rows) * _COLUMN + 2 * _MARGIN
    height = len(rows) * _ROW
    ways = [
        _draw_arrow(arrow, places, number, width, labelled=len(arrows) <= _MAX_LABELS)
        for number, arrow in enumerate(arrows, start=1)
    ]
    boxes = [_draw_state(name, *place) for name, place in places.items()]
    states = ", ".join(name for name in places if name not in (_FIRST, _END))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' aria-label="The states {escape(states)}, and the ways between them; the table below has'
        ' each." style="max-width:100%;height:auto" font-family="inherit" fill="none"'
        f' stroke="currentColor">{_HEAD}{"".join(ways)}{"".join(boxes)}</svg>'
    )


def _arrange(arrows: Iterable[Arrow]) -> list[list[str]]:
    """The states in rows: each below all that lead to it, except for ways back."""
    after: dict[str, list[str]] = {}
    for arrow in arrows:
        after.setdefault(arrow.source, []).append(arrow.target)
    names = dict.fromkeys(name for arrow in arrows for name in (arrow.source, arrow.target))
    order: list[str] = []
    back: set[tuple[str, str]] = set()
    _walk(_FIRST if _FIRST in names else next(iter(names)), after, [], order, back)
    row = dict.fromkeys(names, 0)
    for name in reversed(order):
        for target in after.get(name, ()):
            if (name, target) not in back:
                row[target] = max(row[target], row[name] + 1)
    if _END in names:
        row[_END] = max(row.values()) + (list(row.values()).count(row[_END]) > 1)
    rows: list[list[str]] = [[] for _ in range(max(row.values()) + 1)]
    for name in names:
        rows[row[name]].append(name)
    return [names for names in rows if names]


def _walk(
    name: str,
    after: Mapping[str, list[str]],
    path: list[str],
    order: list[str],
    back: set[tuple[str, str]],
) -> None:
    """Depth first: states in the order in which they are left, and the ways back."""
    for target in after.get(name, ()):
        if target in (*path, name):
            back.add((name, target))
        elif target not in order:
            _walk(target, after, [*path, name], order, back)
    order.append(name)


def _place(rows: list[list[str]]) -> dict[str, tuple[int, int]]:
    """The middle of each state."""
    widest = max(len(row) for row in rows)
    return {
        name: (
            _MARGIN + _COLUMN // 2 + column * _COLUMN + (widest - len(row)) * _COLUMN // 2,
            number * _ROW + _ROW // 2,
        )
        for number, row in enumerate(rows)
        for column, name in enumerate(row)
    }


def _draw_state(name: str, x: int, y: int) -> str:
    if name == _FIRST:
        return f'<circle cx="{x}" cy="{y}" r="7" fill="currentColor"/>'
    if name == _END:
        return (
            f'<circle cx="{x}" cy="{y}" r="9"/><circle cx="{x}" cy="{y}" r="5"'
            ' fill="currentColor"/>'
        )
    left, top = x - _BOX_WIDTH // 2, y - _BOX_HEIGHT // 2
    return (
        f'<g><rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="8"'
        ' fill="var(--color-background-primary, white)"/>'
        f'<text x="{x}" y="{y + 4}" font-size="13" text-anchor="middle" stroke="none"'
        f' fill="currentColor">{escape(name)}</text></g>'
    )


def _draw_arrow(
    arrow: Arrow,
    places: Mapping[str, tuple[int, int]],
    number: int,
    width: int,
    *,
    labelled: bool,
) -> str:
    (x1, y1), (x2, y2) = places[arrow.source], places[arrow.target]
    half = _BOX_HEIGHT // 2
    if y2 > y1:  # down, from the lower edge to the upper one
        ends = ((x1, y1 + half), (x2, y2 - half - 5))
        bends = ((x1, y1 + half + 40), (x2, y2 - half - 45))
    elif y2 == y1:  # next to each other: over the tops
        ends = ((x1, y1 - half), (x2, y2 - half - 5))
        bends = ((x1, y1 - 55), (x2, y2 - 60))
    else:  # back, round the nearer side
        side = 1 if x1 + x2 >= width else -1
        edge = side * _BOX_WIDTH // 2
        ends = ((x1 + edge, y1), (x2 + edge + side * 5, y2))
        reach = 40 + (y1 - y2) // 6
        bends = ((x1 + edge + side * reach, y1 - 20), (x2 + edge + side * reach, y2 + 20))
    # Labels are at different parts of their arrows, or many would overlap.
    part = (0.4, 0.55, 0.7)[number % 3]
    at = [
        round(
            (1 - part) ** 3 * ends[0][axis]
            + 3 * (1 - part) ** 2 * part * bends[0][axis]
            + 3 * (1 - part) * part**2 * bends[1][axis]
            + part**3 * ends[1][axis]
        )
        for axis in (0, 1)
    ]
    words = [word.replace("_", " ") for word in arrow.triggers]
    more = f" +{len(words) - 1}" if len(words) > 1 else ""
    label = f"{words[0]}{more}" if words and labelled else ""
    title = f"{arrow.source} to {arrow.target}: {', '.join(words) or 'ends'}"
    path = "M{} {} C{} {} {} {} {} {}".format(
        *(value for point in (ends[0], *bends, ends[1]) for value in point)
    )
    return (
        f'<g><title>{escape(title)}</title><path d="{path}" marker-end="url(#arrow-head)"'
        ' opacity="0.6"/>'
        f'<text x="{at[0]}" y="{at[1]}" font-size="10" text-anchor="middle" stroke-width="4"'
        ' stroke="var(--color-background-primary, white)" paint-order="stroke"'
        f' fill="currentColor">{escape(label)}</text></g>'
    )


_HEAD = (
    '<defs><marker id="arrow-head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7"'
    ' markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="currentColor"'
    ' stroke="none"/></marker></defs>'
)
