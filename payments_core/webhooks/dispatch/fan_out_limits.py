"""How many events of an environment are fanned out together: those that make about one commit.

An event makes a delivery for each endpoint that wants it, so that a few events of an environment
with many endpoints are as much work as many events of another.
"""

from __future__ import annotations

FAN_OUT_BATCH = 32

MAX_DELIVERIES_PER_COMMIT = 500
"""So many deliveries are made in one commit."""

MAX_REMEMBERED_LANES = 10_000


class FanOutLimits(dict[str, int]):
    """How many events of each lane may be claimed, as far as it is known."""

    unknown = 4
    """So many of a lane, while it is not known how many deliveries its events make."""

    def record(self, lane: str, events: int, deliveries: int) -> None:
        """So many events of the lane made so many deliveries."""
        if len(self) >= MAX_REMEMBERED_LANES:
            self.clear()
        per_event = max(1, deliveries // events)
        self[lane] = max(1, min(FAN_OUT_BATCH, MAX_DELIVERIES_PER_COMMIT // per_event))
