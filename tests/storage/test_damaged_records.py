"""What one row that cannot be read does to the work for all others: nothing, except an alarm."""

from __future__ import annotations

import pytest

from payments_core.conformance.storage.records import NewerLetter
from payments_core.storage.damaged_records import leave_out_damaged, lock_readable
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.corruption import corrupt


def test_what_cannot_be_read_is_left_out_with_an_alarm(caplog: pytest.LogCaptureFixture) -> None:
    for partition in ("env_1", "env_2"):
        with leave_out_damaged("a deposit", partition):
            if partition == "env_1":
                raise UnreadableDocument("it holds 4111111111111111")
    assert caplog.messages == ["ALARM: a deposit of env_1 is skipped: a row cannot be read"]


def test_another_error_goes_on() -> None:
    with pytest.raises(KeyError), leave_out_damaged("a deposit", "env_1"):
        raise KeyError("another")


@pytest.mark.parametrize("is_damaged", [True, False])
def test_the_rows_that_can_be_read_are_locked(
    is_damaged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    storage = MemoryStorage()
    storage.migrate()
    letters = [NewerLetter(id=id, seal="x") for id in "ab"]
    storage.transact("env_1", lambda tx: [tx.insert(letter) for letter in letters])
    if is_damaged:
        corrupt(storage, "env_1", letters[0])
    found = storage.transact(
        "env_1", lambda tx: lock_readable(tx, "env_1", NewerLetter, ["b", "gone", "a"])
    )
    assert sorted(found) == (["b"] if is_damaged else ["a", "b"])
    alarms = [message for message in caplog.messages if message.startswith("ALARM")]
    assert len(alarms) == is_damaged
    assert all("a of env_1" in alarm for alarm in alarms)
