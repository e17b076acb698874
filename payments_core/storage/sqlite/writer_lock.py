"""A queue for the processes that write to one SQLite file.

SQLite lets a second writer retry after longer and longer pauses, up to a tenth of a second, in
which a busy first one commits a hundred times. So writers first take turns at a lock of their
own. It guarantees nothing: SQLite's lock separates them, also from programs that ignore the gate.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from payments_core.storage.port import StorageUnavailable


class WriterLock:
    """An `flock` on a file beside the database; the system releases it when a process dies."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._file: int | None = None

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Hold the gate, exclusively among all processes.

        Raises StorageUnavailable after the timeout, and if the machine lacks files or threads.
        """
        try:
            file = self._lock_file()
        except (OSError, RuntimeError) as error:  # no free files or threads
            raise StorageUnavailable(
                f"the write lock of the file cannot be opened: {error}"
            ) from error
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _lock_file(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        file = self._file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_for_lock(file)
        return file

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _wait_for_lock(self, file: int) -> None:
        """Wait in the system's queue, which is fair; repeated tries are not.

        That wait has no timeout, and a stopped process can hold the gate forever; so a
        thread waits there, and is abandoned with the file if it takes too long.
        """
        granted = threading.Event()
        mutex = threading.Lock()
        given_up = False

        def wait() -> None:
            fcntl.flock(file, fcntl.LOCK_EX)
            with mutex:
                if given_up:
                    os.close(file)
                granted.set()

        threading.Thread(target=wait, daemon=True, name="sqlite-gate").start()
        granted.wait(self._timeout_s)
        with mutex:
            given_up = not granted.is_set()
        if given_up:
            self._file = None
            raise StorageUnavailable("another process has been writing for too long")
