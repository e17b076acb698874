"""How many events of an environment are fanned out together: enough for about one commit.

An event makes a delivery for each endpoint that wants it, so that a few events of an environment
with many endpoints are as much work as many events of another.
"""

from __future__ import annotations

FAN_OUT_BATCH = 32

MAX_DELIVERIES_PER_COMMIT = 500
"""The maximum number of deliveries made in one commit."""

MAX_REMEMBERED_LANES = 10_000


class FanOutLimits(dict[str, int]):
    """The number of events of each known lane that may be claimed."""

    unknown = 4
    """The number for a lane while the number of deliveries per event is unknown."""

    def record(self, lane: str, events: int, deliveries: int) -> None:
        """Record how many deliveries some events of the lane made."""
        if len(self) >= MAX_REMEMBERED_LANES:
            self.clear()
        per_event = max(1, deliveries // events)
        self[lane] = max(1, min(FAN_OUT_BATCH, MAX_DELIVERIES_PER_COMMIT // per_event))
