"""A deposit's steps that need a chain's worst moment."""

from __future__ import annotations

import pytest

from payments_core.deposits import lifecycle as deposits
from payments_core.deposits.record import Deposit
from payments_core.misdirected import lifecycle as sending_back
from tests.core.examples import NOW
from tests.shipped import WATCH_LIST

TOKEN = next(iter(WATCH_LIST))


@pytest.mark.parametrize("is_requested", [False, True])
def test_a_reorg_of_a_rejected_deposit_ends_the_return_that_was_requested(
    is_requested: bool,
) -> None:
    rejected = Deposit(
        id="deposit_1",
        account_id="acct_1",
        deposit_address_id="deposit_address_1",
        chain_id=TOKEN.chain_id,
        asset_symbol=TOKEN.symbol,
        token_address=TOKEN.address,
        decimals=TOKEN.decimals,
        is_misdirected=True,
        amount_atomic=1_000,
        sender="0x1",
        address="0x2",
        transaction_hash="0xh",
        position=0,
        log_index=0,
        block_number=7,
        block_hash="0xb",
        status="rejected",
        status_version=2,
        sent_back=sending_back.create("out_1", "0x3") if is_requested else None,
        external_user_id="zoe",
        api_version="2026-09-09",
        created_at_ms=NOW,
        updated_at_ms=NOW,
    )
    undone = deposits.reorg(rejected, now=NOW + 1).record
    assert (undone.status, undone.failure) == ("failed", "reorged")
    if is_requested:
        assert undone.sent_back is not None
        assert (undone.sent_back.status, undone.sent_back.failure) == ("failed", "funds_reorged")
    else:
        assert undone.sent_back is None
