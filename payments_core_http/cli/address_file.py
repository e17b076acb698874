"""The address of a folder's sandbox: a file that exists, and is locked, while it runs.

The lock ends with the process, however it ends: the file of a killed sandbox is ignored.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "sandbox.url"
FILE_MODE = 0o600


@contextmanager
def publish_address(folder: Path, url: str) -> Iterator[None]:
    """Keep the address in the folder during the block. For the folder's only sandbox."""
    path = folder / FILE_NAME
    unfinished = path.with_name(FILE_NAME + ".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # before anybody can find it
        file.write(url + "\n")
        file.flush()
        os.replace(unfinished, path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def read_address(folder: Path) -> str | None:
    """The address of the folder's sandbox; None if none runs."""
    try:
        with (folder / FILE_NAME).open(encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or None
    except (OSError, UnicodeDecodeError):
        return None
    return None  # nobody holds it
