"""What one row that cannot be read does to the work for all others: nothing, except an alarm."""

from __future__ import annotations

import pytest

from payments_core.storage.damaged_records import leave_out_damaged
from payments_core.storage.documents import UnreadableDocument


def test_what_cannot_be_read_is_left_out_with_an_alarm(caplog: pytest.LogCaptureFixture) -> None:
    for partition in ("env_1", "env_2"):
        with leave_out_damaged("a deposit", partition):
            if partition == "env_1":
                raise UnreadableDocument("it holds 4111111111111111")
    assert caplog.messages == ["ALARM: a deposit of env_1 is skipped: a row cannot be read"]


def test_another_error_goes_on() -> None:
    with pytest.raises(KeyError), leave_out_damaged("a deposit", "env_1"):
        raise KeyError("another")
