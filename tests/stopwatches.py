"""Clocks for bounds that a busy machine must not move."""

from __future__ import annotations

import resource
import time
from pathlib import Path

_SCHEDULED = Path("/proc/thread-self/schedstat")


def read_children_processor_s() -> float:
    """What the processes have worked that this one started, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_unqueued_s() -> float:
    """A clock that stands while this thread waits for a processor that others have, where the
    system says that."""
    waited_ns = int(_SCHEDULED.read_text().split()[1]) if _SCHEDULED.exists() else 0
    return time.monotonic() - waited_ns / 1e9
