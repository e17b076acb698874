"""Transactions that look like a payment and prove none, on the simulated chain and a real node."""

from __future__ import annotations

from tests.chains.scenes import Scene
from tests.service.payer import Payer
from tests.service.world import STRANGER, atomic


def hinted(world: Scene, hash: str, payer: Payer) -> None:
    """The payer says that this transaction has paid, and all there is to see of it is seen."""
    payer.submit(payer.select(payer.option()), hash)
    world.finish()
    world.advance(660)  # longer than a hint is followed


def is_untouched(world: Scene, payer: Payer) -> bool:
    """Whether the Payment waits as before, with nothing received."""
    found = payer.paid()
    return (
        (found.status, found.labels, found.received_atomic, found.is_pending)
        == ("awaiting_payment", (), 0, False)
        and world.journal(payer.id) == []
        and world.event_names(payer.id)["payment.accepted"] == 0
    )


def escrow_of(payer: Payer) -> str:
    return str(payer.payment.payment.escrow_address)


def test_a_spoofed_token_is_rejected(world: Scene) -> None:
    payer = Payer(world, "25.00")
    hash = world.stranger("25.00", to=escrow_of(payer), token=world.other_token())
    view = world.chain.transaction(hash)
    assert (view.succeeded, view.logs[0].recipient) == (True, escrow_of(payer))
    world.look()
    assert is_untouched(world, payer)  # nobody looks at such a token
    hinted(world, hash, payer)
    assert is_untouched(world, payer)
    assert world.receipts(payer.payment) == [("rejected", "wrong_token", atomic("25"))]


def test_a_transfer_of_nothing_by_a_stranger_is_rejected(world: Scene) -> None:
    payer = Payer(world, "25.00")
    hash = world.stranger("0", to=escrow_of(payer), source=STRANGER)
    assert world.chain.transaction(hash).succeeded
    world.finish()
    assert is_untouched(world, payer)
    assert world.receipts(payer.payment) == [("rejected", "wrong_amount", 0)]
    hinted(world, hash, payer)
    assert is_untouched(world, payer)
    world.spend("25.00", escrow_of(payer))
    world.finish()
    assert (payer.paid().status, payer.paid().labels) == ("succeeded", ())


def test_a_call_to_an_address_without_code_succeeds_and_proves_nothing(world: Scene) -> None:
    payer = Payer(world, "25.00")
    hash = world.call_without_code(escrow_of(payer))
    view = world.chain.transaction(hash)
    assert (view.succeeded, view.logs) == (True, ())
    hinted(world, hash, payer)
    assert is_untouched(world, payer)
    assert world.receipts(payer.payment) == []


def test_a_transaction_that_reverts_proves_nothing(world: Scene) -> None:
    payer = Payer(world, "25.00")
    hash = world.stranger("25.00", to=escrow_of(payer), source=world.wallet, reverts=True)
    assert not world.chain.transaction(hash).succeeded
    hinted(world, hash, payer)
    assert is_untouched(world, payer)
    assert world.receipts(payer.payment) == []


def test_a_transfer_to_somebody_else_proves_nothing(world: Scene) -> None:
    payer = Payer(world, "25.00")
    hinted(world, world.spend("25.00", STRANGER), payer)
    assert is_untouched(world, payer)
    assert world.receipts(payer.payment) == []


def test_the_transaction_of_one_payment_proves_nothing_of_another(world: Scene) -> None:
    first, second = Payer(world, "25.00"), Payer(world, "25.00")
    hash = world.spend("25.00", escrow_of(first))
    hinted(world, hash, second)
    assert is_untouched(world, second)
    assert first.paid().status == "succeeded"
