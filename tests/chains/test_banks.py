"""Dollars through a bank and tokens on a chain, from start to end: on both kinds of chains."""

from __future__ import annotations

from tests.chains.scenes import ELSEWHERE, Scene
from tests.service.onramps.setting import OnrampSetting
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import atomic


def test_a_payout_takes_the_funds_off_the_chain(world: Scene) -> None:
    harness = PayoutHarness(world)
    created = harness.submitted("25.00")
    assert harness.books(created) == {"payer": -2_500, "bank": 2_500}
    assert (world.newest(world.vault_address()), harness.offramp) == (atomic("75.00"), 2_500)
    harness.bank.settle_payout(harness.payout(created).key)
    harness.look(created)
    assert harness.payment(created).status == "succeeded"
    assert harness.books(created) == {"payer": -2_500, "recipient": 2_500}
    assert world.held() == (atomic("75.00"), 0, atomic("75.00"))


def test_a_payout_that_comes_back_is_refunded_to_the_vault(world: Scene) -> None:
    harness = PayoutHarness(world)
    created = harness.settled("25.00")
    harness.bank.return_payout(harness.payout(created).key, "R03")
    harness.look(created)
    assert harness.payment(created).status == "action_required"
    world.reconcile(created, "refund")
    world.finish()
    assert harness.payment(created).status == "refunded"
    assert harness.books(created) == {}
    assert (world.newest(world.vault_address()), harness.offramp) == (atomic("100.00"), 0)


def test_a_bank_transfer_is_credited_to_a_vault_and_to_a_wallet(world: Scene) -> None:
    setting = OnrampSetting(world)
    to_wallet = setting.add(type="wallet", address=ELSEWHERE)
    setting.deposit("40.00")
    world.finish()
    transaction = setting.transaction
    assert transaction.status == "settled"
    assert world.newest(world.vault_address()) == atomic("140.00")
    setting.onramp = to_wallet
    setting.deposit("12.34")
    world.finish()
    assert setting.transaction.status == "settled"
    assert world.newest(ELSEWHERE) == atomic("12.34")
    credit = world.chain.transaction(transaction.transaction_hash)
    assert [(log.recipient, log.amount_atomic) for log in credit.logs] == [
        (world.vault_address(), atomic("40.00"))
    ]
