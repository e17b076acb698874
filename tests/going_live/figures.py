"""The outcome of a play in words: a line for each step, the laws, and the tamperings."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.going_live.playing import Passage
from tests.going_live.steps import Rotation, Step

LINE = "{:10} {:>9} {:>7} {:>7} {:>9} {:>9}   {}"


def table(steps: Sequence[Step | Rotation], passages: Sequence[Passage], customers: int) -> str:
    """Step, customers that came through, kills, and the seconds from the last kill on."""
    lines = [LINE.format("step", "through", "before", "after", "p50 s", "max s", "what happens")]
    for step in steps:
        if isinstance(step, Rotation):
            lines.append(LINE.format(step.name, "", "", "", "", "", step.does))
            continue
        mine = [one for one in passages if one.step == step.name]
        kills = [kill.moment for one in mine for kill in one.kills]
        seconds = [one.recovery_s for one in mine]
        lines.append(
            LINE.format(
                step.name,
                f"{len(mine)}/{customers}",
                kills.count("before") or "",
                kills.count("after") or "",
                f"{statistics.median(seconds):.1f}" if seconds else "",
                f"{max(seconds):.1f}" if seconds else "",
                step.does,
            )
        )
    return "\n".join(lines)
