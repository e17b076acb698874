"""A worker that is killed between its calls to the bank: a short run of `make onramp-kills`."""

from __future__ import annotations

import pytest

from tests.service.onramps.kills import run


@pytest.mark.slow
def test_killed_workers_leave_one_credit_for_each_transfer() -> None:
    credits, _ = run(transfers=3, seed=7, chance=0.2, within_s=110.0)
    assert credits == 3
