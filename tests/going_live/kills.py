"""Orders to kill -9 whoever makes a call to a provider: before the call is passed on, or after it
was answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import attrs

from tests.outages.processes import Process, Role

Moment = Literal["before", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "after")
DEAD_S = 10.0


@attrs.frozen
class Call:
    """A call that processes of a role make to a provider, or that a provider makes to them.

    A process that is killed after a `repeated` call makes it again. The kills of one that is not
    come in the order of the moments. A call that is made `at_start` too counts only of a process
    that is ready; others count from the first job of a process that was killed.
    """

    provider: str
    name: str
    role: Role
    repeated: bool = True
    at_start: bool = False


@attrs.define(eq=False)
class Kill:
    """An order, and when it was carried out (monotonic, s). So many calls pass before it."""

    call: Call
    moment: Moment
    passing: int = 0
    struck_at: float | None = None


class Kills:
    """The open orders, in the order in which they are carried out for each call."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: list[Kill] = []

    def order(self, kills: Sequence[Kill]) -> None:
        """From now on."""
        with self._changed:
            self._open += kills

    def withdraw(self, kills: Sequence[Kill]) -> list[Kill]:
        """No longer; those of them that were not carried out."""
        with self._changed:
            left = [kill for kill in kills if kill in self._open]
            self._open = [kill for kill in self._open if kill not in left]
            return left

    def wait(self, kills: Sequence[Kill], timeout_s: float) -> bool:
        """Wait until all of them were carried out."""
        with self._changed:
            return self._changed.wait_for(
                lambda: all(kill.struck_at is not None for kill in kills), timeout_s
            )

    def strike(
        self,
        provider: str,
        names: Collection[str],
        moment: Moment,
        find: Callable[[], Process | None],
    ) -> bool:
        """Kill the process of this call if that was ordered, and return when it is dead."""
        with self._changed:
            kill = next(self._due(provider, names), None)
            if kill is None or kill.moment != moment:
                return False
            process = find()
            if process is None or process.role != kill.call.role:
                return False
            if kill.call.at_start and not process.is_ready:
                return False
            if kill.passing:
                kill.passing -= 1
                return False
            pid = process.pid
            if not process.kill():
                return False
            self._open.remove(kill)
        _wait_until_dead(pid)
        with self._changed:
            kill.struck_at = time.monotonic()
            self._changed.notify_all()
        return True

    def _due(self, provider: str, names: Collection[str]) -> Iterator[Kill]:
        """The next order for each of the calls."""
        return (k for k in self._open if k.call.provider == provider and k.call.name in names)


def find_caller(port: int, server_port: int, processes: Sequence[Process]) -> Process | None:
    """The process whose connection from this port of the loopback goes to that one. Reads /proc."""
    inode = _inode(port, server_port)
    for process in processes:
        pid = process.pid
        if pid is not None and inode is not None and f"socket:[{inode}]" in _open_files(pid):
            return process
    return None


def _inode(port: int, server_port: int) -> str | None:
    ends = f"0100007F:{port:04X}", f"0100007F:{server_port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if (fields[1], fields[2]) == ends:
            return fields[9]
    return None


def _open_files(pid: int) -> set[str]:
    found = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            found.add(str(file.readlink()))
    return found


def _wait_until_dead(pid: int | None) -> None:
    until = time.monotonic() + DEAD_S
    while Path(f"/proc/{pid}/exe").exists() and time.monotonic() < until:
        time.sleep(0.005)
