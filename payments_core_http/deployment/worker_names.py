"""The name under which a worker leases jobs: it outlives the process, and only one process has it.

Each running worker of a machine has a file with a name in it, and a lock on that file, which the
system releases however the process ends. So a process that gets the lock knows that the previous
holder of the name is dead, and resumes its jobs at once. A worker without a name works too: its
jobs become due again when its leases expire.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from payments_core.entropy import Entropy, system_entropy
from payments_core_http.deployment.configuration import Configuration

MAX_WORKERS = 64
"""How many workers of one storage and mode have a name on a machine."""

_log = logging.getLogger(__name__)


@contextmanager
def hold_worker_name(
    configuration: Configuration, entropy: Entropy = system_entropy
) -> Iterator[str | None]:
    """A name that no living process has, during the block; None if no file is available."""
    try:
        locked = _lock_free_file(_state_folder(configuration), _file_prefix(configuration))
    except OSError as error:
        _log.warning("this worker has no name: %s: %s", error.filename, error.strerror)
        locked = None
    if locked is None:
        yield None
        return
    try:
        yield _read_or_write_name(locked, entropy)
    finally:
        os.close(locked)


def _state_folder(configuration: Configuration) -> Path:
    """A folder of only this user. Raises OSError."""
    if configuration.worker.state_folder is not None:
        return Path(configuration.worker.state_folder)
    if given := os.environ.get("STATE_DIRECTORY"):  # by systemd, which separates several by colons
        return Path(given.partition(":")[0])
    folder = Path(tempfile.gettempdir()) / f"payments-workers-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
        raise PermissionError(1, "another user created it, or can write to it", str(folder))
    return folder


def _file_prefix(configuration: Configuration) -> str:
    """Workers of other storages, and of the other mode, have other names."""
    group = f"{configuration.mode} {configuration.storage.url}"
    return f"worker-{hashlib.sha256(group.encode()).hexdigest()[:16]}"


def _lock_free_file(folder: Path, prefix: str) -> int | None:
    """The first of the files that no process has locked, locked. Raises OSError."""
    for number in range(MAX_WORKERS):
        path = folder / f"{prefix}-{number}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            os.close(file)
    return None


def _read_or_write_name(file: int, entropy: Entropy) -> str:
    """The name in a file; a new file gets a random one, so that no two machines have the same."""
    name = os.pread(file, 64, 0).decode("ascii", "replace")
    if len(name) != 32 or not name.isalnum():
        name = entropy(16).hex()
        os.ftruncate(file, 0)
        os.pwrite(file, name.encode(), 0)
    return name
