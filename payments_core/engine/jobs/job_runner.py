"""What else runs the jobs of a queue, beside a worker."""

from __future__ import annotations

from typing import Protocol


class JobRunner(Protocol):
    """A companion that runs a queue's jobs in its own threads, beside the worker's."""

    def start(self) -> None:
        """Start the threads."""

    def stop(self, timeout_s: float) -> bool:
        """End the threads; False if some did not end in time."""

    def wake(self) -> None:
        """Look for work now."""

    def pause(self, timeout_s: float) -> bool:
        """Begin nothing, and wait for the running jobs; False if they did not end in time."""

    def resume(self) -> None:
        """Undo one `pause`."""
