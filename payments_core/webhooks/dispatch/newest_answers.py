"""Which long answers of an endpoint are kept: those of its newest attempts.

A tenant with a hundred endpoints that answer with 4 KB would else store half a megabyte for each
write. The memory is of this process, and only bounds: what another process stored, or this
one before a restart, is left to the hourly purge (`webhooks/trimming.py`).
"""

from __future__ import annotations

from collections import deque
from threading import Lock

KEPT_ANSWERS = 20
"""The newest long answers of an endpoint that a process keeps."""

SHORT_CHARACTERS = 256
"""Shorter answers are always kept: to clear one costs more than it takes."""

_MAX_ENDPOINTS = 10_000


class NewestAnswers:
    """The deliveries of each endpoint whose long answers are stored, oldest first."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[str]] = {}
        self._lock = Lock()

    def push(self, endpoint_id: str, delivery_id: str, answer: str | None) -> str | None:
        """Note an answer that will be stored; the delivery whose answer makes room, or None."""
        if answer is None or len(answer) <= SHORT_CHARACTERS:
            return None
        with self._lock:
            if len(self._kept) >= _MAX_ENDPOINTS:
                self._kept.clear()
            kept = self._kept.setdefault(endpoint_id, deque())
            if delivery_id in kept:  # another attempt of it
                kept.remove(delivery_id)
            kept.append(delivery_id)
            return kept.popleft() if len(kept) > KEPT_ANSWERS else None
