"""One deadline for a whole request: connecting, the handshake, sending, reading."""

from __future__ import annotations

import time

import attrs


@attrs.frozen
class Deadline:
    """A deadline, in seconds of the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining_s(self) -> float:
        """The seconds that are left; 0 when it has passed."""
        return max(0.0, self.at - time.monotonic())


def require_time_left(deadline: Deadline) -> float:
    """The seconds left, more than 0. Raises TimeoutError when it has passed."""
    seconds = deadline.remaining_s()
    if seconds <= 0:
        raise TimeoutError("the deadline has passed")
    return seconds
