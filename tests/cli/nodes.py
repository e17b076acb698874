"""Whether there is anvil for `--anvil`, and which anvils run for a folder."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from payments_core_http.cli.anvil.process import AnvilUnavailable, find_anvil_program

ENDS_S = 15.0


def require_anvil() -> None:
    """Skip for want of npm; where there is npm, there should be anvil."""
    try:
        find_anvil_program()
    except AnvilUnavailable as reason:
        if shutil.which("npm"):
            raise
        pytest.skip(str(reason))
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("reads /proc")


def processes_of(folder: Path) -> list[int]:
    """Anvil and its keeper, for chains below this folder."""
    return sorted(pid for pid, _ in _commands(folder))


def anvil_of(folder: Path) -> int:
    """The anvil itself, of which there must be one."""
    [pid] = [pid for pid, name in _commands(folder) if name.endswith("anvil")]
    return pid


def all_end(folder: Path) -> bool:
    """Whether none is left after a while: a killed sandbox's anvil writes its chain first."""
    until = time.monotonic() + ENDS_S
    while processes_of(folder):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _commands(folder: Path) -> Iterator[tuple[int, str]]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            arguments = file.read_text(errors="replace").split("\0")
            state = f"{folder}/"
            if any(
                option == "--state" and value.startswith(state)
                for option, value in pairwise(arguments)
            ):
                yield int(file.parent.name), arguments[0]
