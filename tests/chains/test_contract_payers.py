"""Payers that are contracts, such as an exchange's: noticed on a node, and counted like others."""

from __future__ import annotations

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.artifacts import load_contract
from payments_core.payments.checkout.stages import list_notices
from payments_core.payments.receipts.record import Receipt
from payments_core.storage.maintenance import scan_all
from tests.chains.evm.deployed import batched
from tests.chains.scenes import AnvilScene
from tests.service.world import USDC, atomic


def receipt_of(world: AnvilScene, payment_id: str) -> Receipt:
    [found] = [
        one.record
        for one in scan_all(world.storage, Receipt)
        if one.record.payment_id == payment_id
    ]
    return found


def test_a_contract_that_pays_is_noticed_and_a_wallet_is_not(anvil_world: AnvilScene) -> None:
    world = anvil_world
    by_contract, by_wallet = world.payment("25.00"), world.payment("25.00")
    router = world.node.create(load_contract("Batch").creation)
    world.stranger("25.00", to=router)
    pay = calls.transfer(str(by_contract.payment.escrow_address), atomic("25.00"))
    world.node.do(world.wallet, router, batched((USDC.address, pay)))
    world.spend("25.00", str(by_wallet.payment.escrow_address))
    world.finish()
    assert world.paid(by_contract.payment.id).status == "succeeded"
    receipt = receipt_of(world, by_contract.payment.id)
    assert (receipt.sender, receipt.is_from_contract) == (router, True)
    assert receipt_of(world, by_wallet.payment.id).is_from_contract is False
    notices = list_notices(world.paid(by_contract.payment.id), is_from_contract=True)
    assert notices == ("from_contract",)


def test_an_account_that_delegates_to_code_is_no_contract(anvil_world: AnvilScene) -> None:
    world = anvil_world
    router = world.node.create(load_contract("Batch").creation)
    world.node.ask("anvil_setCode", world.wallet, "0xef0100" + router[2:])
    assert world.chain.find_code([world.wallet, router]) == frozenset({router})
    assert world.chain.find_code([]) == frozenset()
