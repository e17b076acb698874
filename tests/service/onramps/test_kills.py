"""A worker that is killed between its calls to the bank: a short run of `make onramp-kills`."""

from __future__ import annotations

import pytest

from tests.service.onramps.kills import run


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_workers_leave_one_credit_for_each_transfer() -> None:
    credits, _ = run(transfers=2, seed=7, chance=0.2, within_s=280.0)
    assert credits == 2
