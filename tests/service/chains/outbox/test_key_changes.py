"""An operator's key that is changed while transfers are under way, and changed back."""

from __future__ import annotations

import pytest

from payments_core.chains.outbox.record import OutboundTransfer, Sender
from payments_core.chains.port import (
    AddressSpec,
    ChainUnavailable,
    SignedTransaction,
    SignerRefused,
    TransferIntent,
)
from payments_core.chains.simulated.calls import decode_call
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.storage.maintenance import scan_all
from tests.service.world import BASE, World


class Keyed(SimulatedChain):
    """A chain whose operators have the key that is set, or a signer that refuses."""

    key = "one"
    refuses = False
    refused_sender: str | None = None

    def derive(self, spec: AddressSpec) -> str:
        if spec.kind == "operator":
            spec = AddressSpec(spec.environment_id, "operator", self.key)
        return super().derive(spec)

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        if self.refuses:
            raise SignerRefused("not now")
        return super().prepare(intent, slot)

    def broadcast(self, signed: SignedTransaction) -> None:
        if decode_call(signed.raw).sender == self.refused_sender:
            raise ChainUnavailable("it has nothing to pay the fees with")
        super().broadcast(signed)


@pytest.fixture
def chain(world: World) -> Keyed:
    chain = Keyed(BASE, world.service.parts.ports)
    world.service = world.restarted(chains={BASE: chain})
    return chain


def slots(world: World) -> dict[str, int]:
    """The next slot of each sender."""
    senders = world.storage.read(
        world.environment_id, lambda snapshot: snapshot.find(Sender, "of_chain", (BASE,)).records
    )
    return {sender.id: sender.next_slot for sender in senders}


def test_a_slot_that_was_never_signed_is_given_back(world: World, chain: Keyed) -> None:
    option = world.authorized()
    chain.refuses = True
    for key in ("one", "two", "one", "two"):
        chain.key = key
        world.advance(60)
        assert sum(slots(world).values()) == 1
    chain.key, chain.refuses = "one", False
    world.advance(60)
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    assert sorted(slots(world).values()) == [0, 2]


def test_each_key_counts_its_own_slots(world: World, chain: Keyed) -> None:
    options = []
    for key in ("one", "two", "one", "two"):
        chain.key = key
        options.append(world.authorized("5.00"))
        world.finish()
    assert [world.paid(option.payment.id).status for option in options] == ["succeeded"] * 4
    assert sorted(slots(world).values()) == [4, 4]


def test_what_one_key_has_sent_is_not_lost_to_another(world: World, chain: Keyed) -> None:
    option = world.authorized()
    world.run()
    assert world.operation_now(option).status == "broadcast"
    chain.key = "two"
    other = world.authorized("5.00")
    world.finish()
    for each in (option, other):
        assert world.paid(each.payment.id).status == "succeeded"


@pytest.mark.parametrize("refused", ["one", "two"])
def test_a_key_whose_transactions_are_refused_hides_no_reorg_of_the_other(
    world: World, chain: Keyed, refused: str
) -> None:
    senders = {}
    for key in ("one", "two"):
        chain.key = key
        senders[key] = chain.derive(AddressSpec(world.environment_id, "operator", "operator"))
        world.authorized("5.00")
        world.run()
        world.advance(15)
    chain.refused_sender = senders[refused]
    chain.reorg(50)
    world.advance(60)
    reorgs: dict[str, set[int]] = {f"{BASE}:{sender}": set() for sender in senders.values()}
    for one in scan_all(world.storage, OutboundTransfer):
        reorgs[str(one.record.sender_id)].add(one.record.reorgs)
    assert all(reorgs.values())
    assert 0 not in set().union(*reorgs.values())
