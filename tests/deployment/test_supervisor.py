"""Several processes on one port: started, replaced where they end, and ended together."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payments_core_http.cli.child_processes import ChildFailed, ChildProcess

ROOT = Path(__file__).resolve().parents[2]
SEEN_S = 20.0


@contextmanager
def several(count: int, *refused: int) -> Iterator[ChildProcess]:
    child = ChildProcess("parent", "tests.deployment.several", [str(count), *map(str, refused)])
    try:
        child.wait_until_ready()
        yield child
    finally:
        child.end()


@pytest.fixture(autouse=True)
def _modules_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def pids_of(parent: ChildProcess) -> dict[int, int]:
    return {one["number"]: one["pid"] for one in parent.read_messages()[0]["members"]}


def ask(parent: ChildProcess) -> tuple[int, int]:
    """Who takes a connection: its number and its process id."""
    at = ("127.0.0.1", parent.read_messages()[0]["port"])
    with socket.create_connection(at, timeout=SEEN_S) as connection:
        number, pid = connection.makefile().read().split()
    return int(number), int(pid)


def wait_until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SEEN_S
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Whether it has ended, be it that nobody has asked how."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # before or while it was read
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_parent_ends_all(number: signal.Signals) -> None:
    with several(3) as parent:
        pids = pids_of(parent)
        assert pids.keys() == {1, 2, 3}
        assert ask(parent) in pids.items()
        assert parent.end(number) == 0, parent.read_errors()
    assert all(is_gone(pid) for pid in pids.values())


def test_ctrl_c_at_a_terminal_ends_all_and_hurries_none() -> None:
    with several(2) as parent:
        os.killpg(parent.pid, signal.SIGINT)
        wait_until(lambda: is_gone(parent.pid))
        assert parent.end() == 0, parent.read_errors()


def test_who_dies_is_replaced_while_the_others_answer() -> None:
    with several(2) as parent:
        pids = pids_of(parent)
        os.kill(pids[2], signal.SIGKILL)
        wait_until(lambda: is_gone(pids[2]))
        assert ask(parent) == (1, pids[1])
        wait_until(lambda: ask(parent)[0] == 2)
        assert "process 2 ended with -9" in parent.read_errors()
        assert parent.end() == 0


def test_none_outlives_a_parent_that_is_killed() -> None:
    with several(2) as parent:
        pids = pids_of(parent)
        parent.kill()
        wait_until(lambda: all(is_gone(pid) for pid in pids.values()))


def test_a_second_signal_kills_each_process_that_has_not_ended() -> None:
    with several(2) as parent:
        pids = pids_of(parent)
        for pid in pids.values():
            os.kill(pid, signal.SIGSTOP)
        os.kill(parent.pid, signal.SIGTERM)
        wait_until(lambda: "stopping" in parent.read_errors())  # or both would come as one
        assert parent.end(signal.SIGTERM) == 1
        wait_until(lambda: all(is_gone(pid) for pid in pids.values()))


def test_a_hangup_ahead_of_its_signal_hurries_none() -> None:
    """As systemd's SendSIGHUP sends both; which of two comes first is the kernel's choice."""
    with several(2) as parent:
        pids = pids_of(parent)
        for pid in pids.values():
            os.kill(pid, signal.SIGSTOP)
        os.kill(parent.pid, signal.SIGHUP)
        wait_until(lambda: "stopping" in parent.read_errors())
        os.kill(parent.pid, signal.SIGTERM)
        for pid in pids.values():
            os.kill(pid, signal.SIGCONT)
        assert parent.end(signal.SIGHUP) == 0, parent.read_errors()


def test_if_the_first_cannot_start_none_does() -> None:
    with pytest.raises(ChildFailed) as failed, several(2, 1):
        pass
    assert "process 2" not in str(failed.value)


def test_who_cannot_start_is_tried_again_later_each_time() -> None:
    child = ChildProcess("parent", "tests.deployment.several", ["2", "2"])
    try:
        wait_until(lambda: "ended with 7, and is restarted in 1.0 s" in child.read_errors())
        assert "ended with 7, and is restarted in 0.5 s" in child.read_errors()
        assert child.read_messages() == []
    finally:
        assert child.end() == 0
