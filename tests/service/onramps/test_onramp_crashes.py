"""Whatever goes wrong between any two calls, a bank transfer is credited once and never lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import pytest

from payments_core.clock import SECOND
from payments_core.storage.memory.adapter import MemoryStorage
from tests.conftest import Opener
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyStorage,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.onramps.setting import OnrampSetting
from tests.service.world import World

CENT = 10_000
STRIDES = (1, 1) if "EVERY_CALL" in os.environ else (5, 29)
"""Every fifth call on memory, every 29th on SQLite; `make bank-faults` meets all."""


def corrupt(setting: OnrampSetting, at: int, fault: Fault, seconds: int = 20) -> bool:
    """A worker's life on a storage whose `at`-th call goes wrong; whether it did."""
    world = setting.world
    storage = FaultyStorage(world.storage, at, fault)
    with contextlib.suppress(Crashed, Exception):
        worker = world.restarted(storage).worker("sandbox")
        until = world.clock.now() + seconds * SECOND
        worker.run_through(until, world.clock.advance_to)
    return storage.had_its_fault


def calm(setting: OnrampSetting) -> None:
    """A healthy worker's turn, once the leases of a dead one have ended; a wire of the evening
    waits for the next business day."""
    world = setting.world
    world.advance(200)
    newest = setting.transactions()[0]
    if newest.status == "scheduled" and newest.expected_at_ms is not None:
        world.advance((newest.expected_at_ms - world.clock.now()) // SECOND + 60)


@pytest.mark.parametrize("fault", [crash, commit_lost, commit_failed, storage_away])
def test_a_transfer_is_credited_once_whatever_call_goes_wrong(
    opener: Opener, fault: Callable[[Callable[[], object]], object]
) -> None:
    setting = OnrampSetting(World(opener()).open())
    step = STRIDES[0] if isinstance(setting.world.storage, MemoryStorage) else STRIDES[1]
    expected = setting.balance()
    count = 0
    for at in range(1, 400, step):
        setting.deposit("1.00")
        count += 1
        is_over = not corrupt(setting, at, fault)
        calm(setting)
        expected += 100 * CENT
        newest = setting.transactions()[0]
        assert newest.status == "settled", f"call {at}: {newest}"
        assert setting.balance() == expected, f"call {at}"
        if is_over:
            break
    else:
        raise AssertionError("the work never ended")
    assert count > 3
    incoming = [one.incoming_id for one in setting.transactions()]
    assert len(set(incoming)) == len(incoming)
