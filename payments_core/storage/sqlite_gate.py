"""A queue for the processes that write to one SQLite file.

SQLite lets a second writer try again after ever longer pauses, up to a tenth of a second, in
which a busy first one comes and goes a hundred times. So writers take turns at a lock of their
own first. It makes no promise: SQLite's lock keeps them apart, also from those who know no gate.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from payments_core.storage.port import StorageUnavailable

SHORTEST_PAUSE_S = 0.000_1
LONGEST_PAUSE_S = 0.002


class Gate:
    """An `flock` on a file beside the database; the system gives it back when a process dies."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._file: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Alone at the gate, of all processes. Raises StorageUnavailable after the timeout."""
        if self._file is None:
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._take(self._file)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _take(self, file: int) -> None:
        # Not a blocking `flock`: that would wait for ever on a process that was stopped.
        until = time.monotonic() + self._timeout_s
        pause_s = SHORTEST_PAUSE_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StorageUnavailable("another process writes for too long") from None
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
