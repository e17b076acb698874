"""What does not count goes back by the contracts as they are, simulated and on a node."""

from __future__ import annotations

import pytest

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.port import AddressSpec
from payments_core.deposits.record import Deposit
from payments_core.errors import ValidationFailed
from payments_core.payments.receipts.record import Receipt
from payments_core.storage.maintenance import scan_all
from tests.chains.scenes import AnvilScene, Scene
from tests.service.world import BASE, OTHER_WALLET, atomic
from tests.shipped import token_of

BRIDGED = token_of(BASE, "USDbC")


def held(world: Scene, address: str) -> int:
    return int(world.chain.balances(BRIDGED.address, [address]).amounts[address])


def only(world: Scene, kind: type) -> object:
    [found] = [one.record for one in scan_all(world.storage, kind)]
    return found


def test_a_bridged_token_at_an_escrow_goes_back(world: Scene) -> None:
    payment = world.payment("25.00")
    escrow = str(payment.payment.escrow_address)
    world.stranger("25.00", to=escrow, token=BRIDGED.address)
    world.finish()
    receipt = only(world, Receipt)
    assert isinstance(receipt, Receipt)
    assert (receipt.status, receipt.rejection_reason) == ("rejected", "wrong_token")
    if int(receipt.sender, 16) == 0:  # the node's token was minted
        with pytest.raises(ValidationFailed, match="destination is required"):
            world.reconcile(payment, "return_misdirected", receipt_id=receipt.id)
    world.reconcile(payment, "return_misdirected", receipt_id=receipt.id, destination=OTHER_WALLET)
    world.finish()
    assert (held(world, escrow), held(world, OTHER_WALLET)) == (0, atomic("25"))
    assert world.paid(payment.payment.id).misdirected == 0


def count_coins(world: Scene, address: str) -> int:
    """Native coin as a wallet sees it."""
    if isinstance(world, AnvilScene):
        return int(world.node.ask("eth_getBalance", address, "latest"), 16)
    return int(world.chain.balances(NATIVE_ADDRESS, [address]).amounts[address])


def test_native_coin_at_an_escrow_is_noticed_at_the_expiry_and_goes_back(world: Scene) -> None:
    nobody, coins = "0x" + 40 * "7", 10**16
    payment = world.payment("25.00", expires_in_s=300)
    escrow = str(payment.payment.escrow_address)
    name = f"{world.environment_id}/coins"
    world.chain.transfer(NATIVE_ADDRESS, None, escrow, coins, name)
    world.finish()
    assert [one.record for one in scan_all(world.storage, Receipt)] == []
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 1)
    after = world.paid(payment.payment.id)
    assert (after.status, after.labels) == ("expired", ("misdirected",))
    receipt = only(world, Receipt)
    assert isinstance(receipt, Receipt)
    assert (receipt.token_address, receipt.amount_atomic) == (NATIVE_ADDRESS, coins)
    world.reconcile(payment, "return_misdirected", receipt_id=receipt.id, destination=nobody)
    world.finish()
    assert (count_coins(world, escrow), count_coins(world, nobody)) == (0, coins)
    assert world.paid(payment.payment.id).misdirected == 0


def test_native_coin_at_a_deposit_address_is_noticed_by_a_check_and_goes_back(
    world: Scene,
) -> None:
    nobody, coins = "0x" + 40 * "7", 10**16
    deposits, account = world.resources.deposits, world.payer
    address = deposits.issue_address(account.id, BASE).address.address
    world.chain.transfer(NATIVE_ADDRESS, None, address, coins, f"{world.environment_id}/coins")
    world.finish()
    deposits.check(account.id)
    world.finish()
    deposit = only(world, Deposit)
    assert isinstance(deposit, Deposit)
    assert (deposit.status, deposit.amount_atomic) == ("rejected", coins)
    deposits.send_back(account.id, deposit.id, nobody)
    world.finish()
    world.finish()
    assert (count_coins(world, address), count_coins(world, nobody)) == (0, coins)


@pytest.mark.parametrize("is_swept", [False, True])
def test_a_bridged_token_at_a_deposit_address_goes_back_through_the_vault(
    world: Scene, is_swept: bool
) -> None:
    """Also if a stranger has brought it to the vault, as anybody may."""
    deposits, account = world.resources.deposits, world.payer
    address = deposits.issue_address(account.id, BASE).address.address
    vault = world.chain.derive(AddressSpec(world.environment_id, "vault", account.id))
    world.stranger("5.00", to=address, token=BRIDGED.address)
    world.finish()
    deposit = only(world, Deposit)
    assert isinstance(deposit, Deposit)
    assert deposit.status == "rejected"
    if is_swept:
        world.sweep_all(account.id, BRIDGED.address)
        world.finish()
        assert held(world, vault) == atomic("5")
    deposits.send_back(account.id, deposit.id, OTHER_WALLET)
    world.finish()
    world.finish()
    after = only(world, Deposit)
    assert isinstance(after, Deposit)
    assert after.sent_back is not None
    assert after.sent_back.status == "succeeded"
    assert [held(world, one) for one in (address, vault, OTHER_WALLET)] == [0, 0, atomic("5")]
