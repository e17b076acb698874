"""The processor time of this process, exact for the threads that answer.

The kernel's clock of a process adds the time of threads that run on another processor only at the
next tick, up to 4 ms late. The clock of a thread has no such delay.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence


class ProcessorTime:
    """Returns the processor time in seconds, when called."""

    def __init__(self, threads: Sequence[threading.Thread]) -> None:
        """`threads` have begun. One that has ended counts as the other threads do."""
        self._clocks = [
            time.pthread_getcpuclockid(thread.ident)
            for thread in threads
            if thread.ident is not None and hasattr(time, "pthread_getcpuclockid")  # macOS has none
        ]
        self._others_s = 0.0
        """What the other threads have used, as far as the clock of the process has shown it."""

    def __call__(self) -> float:
        ours_s = 0.0
        for clock in self._clocks:
            with contextlib.suppress(OSError):  # its thread has ended
                ours_s += time.clock_gettime(clock)
        self._others_s = max(self._others_s, time.process_time() - ours_s)
        return ours_s + self._others_s
