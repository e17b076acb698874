"""The gate before SQLite: one at a time, and who waits too long gives up."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from payments_core.conformance.storage.harness import run_concurrently
from payments_core.storage.port import StorageUnavailable
from payments_core.storage.sqlite.writer_lock import WriterLock
from tests.storage.sqlite.groups import until


def test_the_gate_lets_one_in_at_a_time(tmp_path: Path) -> None:
    gates = [WriterLock(tmp_path / "gate", 10) for _ in range(3)]
    inside: list[int] = []

    def go_through(gate: WriterLock) -> None:
        for _ in range(10):
            with gate.acquire():
                inside.append(1)
                assert len(inside) == 1
                time.sleep(0.001)
                inside.pop()

    assert run_concurrently(*(lambda gate=gate: go_through(gate) for gate in gates)) == [None] * 3
    for gate in gates:
        gate.close()
        gate.close()


def test_who_waits_too_long_at_the_gate_gives_up_and_may_come_again(tmp_path: Path) -> None:
    """As when the process that holds it was stopped."""
    holder, late = WriterLock(tmp_path / "gate", 10), WriterLock(tmp_path / "gate", 0.05)
    with holder.acquire(), pytest.raises(StorageUnavailable), late.acquire():
        pass
    until(lambda: all(thread.name != "sqlite-gate" for thread in threading.enumerate()))
    with late.acquire():
        pass
    with holder.acquire():
        pass
    holder.close()
    late.close()
