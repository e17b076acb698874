"""A worker that is killed between its calls to the bank: a short run of `make payout-kills`."""

from __future__ import annotations

import pytest

from tests.service.payments.payouts.kills import run


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_workers_leave_one_payout_for_each_payment() -> None:
    payouts, _ = run(payments=3, seed=7, chance=0.3, within_s=280.0)
    assert payouts == 3
