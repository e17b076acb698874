"""What a pool has dropped of a sender is offered again, whatever it has kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import attrs
import pytest

from payments_core.chains.outbox.inclusion import load_signed_versions
from payments_core.chains.outbox.line import LINE_STEP, MAX_DROPPED
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import load_transfer, lock_transfer, new_transfer
from payments_core.chains.port import (
    AddressSpec,
    ChainUnavailable,
    Contract,
    SignedTransaction,
    SignerRefused,
    TransactionView,
)
from payments_core.chains.simulated.addresses import contract_address
from payments_core.chains.simulated.calls import decode_call
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.engine.decision import WorkerAuthority
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Transaction
from tests.service.chain_harness import BASE, BOB, ChainHarness
from tests.service.world import write
from tests.shipped import asset_of

SCOPE = WorkerAuthority("env_a", "sandbox")


class Pool(SimulatedChain):
    """A chain that makes no blocks, and whose pool takes what comes after a gap."""

    def __init__(self, chain_harness: ChainHarness) -> None:
        super().__init__(BASE, chain_harness.ports)
        self.held: dict[str, None] = {}
        self.questions = 0
        self.key = "operator"
        self.configured = {"operator"}

    def derive(self, spec: AddressSpec) -> str:
        owner_id = self.key if spec.kind == "operator" else spec.owner_id
        return super().derive(AddressSpec(spec.environment_id, spec.kind, owner_id))

    def prepare_noop(
        self, environment_id: str, slot: int, sender: str | None = None
    ) -> SignedTransaction:
        keys = {
            contract_address(AddressSpec(environment_id, "operator", key))
            for key in self.configured
        }
        if sender is not None and sender not in keys:
            raise SignerRefused(f"the key of {sender} is not configured")
        return super().prepare_noop(environment_id, slot, sender)

    def broadcast(self, signed: SignedTransaction) -> None:
        self.held[signed.hash] = None

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        self.questions += 1
        return {
            hash: TransactionView(hash, None, True, ()) if hash in self.held else None
            for hash in hashes
        }


class Line:
    """Transfers of one sender that are signed, in their order, and in no pool.

    Those from number `second_from` on are signed with a second key.
    """

    def __init__(self, count: int, *, second_from: int | None = None) -> None:
        chain_harness = ChainHarness(MemoryStorage())
        self.chain_harness = chain_harness
        self.chain = Pool(chain_harness)
        self.outbox = Outbox(chain_harness.ports, {BASE: self.chain})
        vault = chain_harness.chain.derive(AddressSpec("env_a", "vault", "acct_a"))
        self.ids = [f"out_{number:04}" for number in range(count)]
        transfers = [
            new_transfer(
                id, asset_of(BASE, "USDC"), "sweep", f"owner_{id}",
                source=Contract("vault", "acct_a", vault), recipient=BOB, amount=10,
                now=chain_harness.clock.now(),
            )
            for id in self.ids
        ]  # fmt: skip
        write(chain_harness.storage, "env_a", lambda tx: [tx.insert(one) for one in transfers])
        self.hashes = []
        for number, id in enumerate(self.ids):
            if number == second_from:
                self.chain.key = "second"
            self.hashes.append(self._sign(id))

    def _sign(self, id: str) -> str:
        signed = self.outbox.ensure_signed(SCOPE, BASE, id)
        assert signed is not None
        return signed.hash

    def keep(self, *numbers: int) -> None:
        self.chain.held = dict.fromkeys(self.hashes[number] for number in numbers)


@pytest.mark.parametrize("kept", [(3,), (0, 3), (5,), (0, 5), (1, 3, 5), ()])
def test_all_in_line_are_looked_at_whatever_the_pool_has_kept(kept: tuple[int, ...]) -> None:
    line = Line(6)
    line.keep(*kept)
    assert line.outbox.rebroadcast_dropped(SCOPE, BASE) == 6 - len(kept)
    assert line.chain.held.keys() == {*line.hashes}
    offered = [hash for hash in line.chain.held if line.hashes.index(hash) not in kept]
    assert offered == sorted(offered, key=line.hashes.index)
    assert line.outbox.rebroadcast_dropped(SCOPE, BASE) == 0


def test_what_is_missing_before_a_refused_transaction_is_offered_first() -> None:
    line = Line(6)
    line.keep(2)
    refuse = line.chain.broadcast

    def refuses_after_a_gap(signed: SignedTransaction) -> None:
        before = line.hashes[: line.hashes.index(signed.hash)]
        if not line.chain.held.keys() >= {*before}:
            raise ChainUnavailable("no node takes what comes after a gap")
        refuse(signed)

    line.chain.broadcast = refuses_after_a_gap  # type: ignore[method-assign]
    line.outbox.broadcast(SCOPE, line.ids[5])
    assert line.chain.held.keys() == {*line.hashes}


def test_a_long_line_is_offered_in_steps() -> None:
    """The oldest go first, and a look asks few questions, however long the line is."""
    line = Line(MAX_DROPPED + 2 * LINE_STEP)
    line.chain.questions = 0
    with pytest.raises(ChainUnavailable, match="may have dropped more"):
        line.outbox.rebroadcast_dropped(SCOPE, BASE)
    assert [*line.chain.held][:MAX_DROPPED] == line.hashes[:MAX_DROPPED]
    assert len(line.chain.held) <= MAX_DROPPED + 1
    assert line.chain.questions <= len(line.hashes) // LINE_STEP + 2
    left = len(line.hashes) - len(line.chain.held)
    assert line.outbox.rebroadcast_dropped(SCOPE, BASE) == left
    assert line.chain.held.keys() == {*line.hashes}
    assert line.outbox.rebroadcast_dropped(SCOPE, BASE) == 0


@pytest.mark.parametrize("refused", [(0, 1), (2, 3)], ids=["former", "present"])
def test_a_sender_whose_transactions_are_refused_keeps_no_other_waiting(
    refused: tuple[int, ...],
) -> None:
    line = Line(4, second_from=2)
    take, hashes = line.chain.broadcast, [line.hashes[number] for number in refused]

    def refuses_one_sender(signed: SignedTransaction) -> None:
        if signed.hash in hashes:
            raise ChainUnavailable("it has nothing to pay the fees with")
        take(signed)

    line.chain.broadcast = refuses_one_sender  # type: ignore[method-assign]
    with pytest.raises(ChainUnavailable, match="the nodes refuse dropped transactions"):
        line.outbox.rebroadcast_dropped(SCOPE, BASE)
    assert line.chain.held.keys() == {*line.hashes} - {*hashes}


def test_a_nonce_of_a_former_key_is_used_up_with_that_key_or_an_alarm_names_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A transfer that has failed must not move anything: nothing may take its nonce but a no-op."""
    line = Line(3)
    line.keep(0, 2)
    write(line.chain_harness.storage, "env_a", lambda tx: _replace_failed(tx, line.ids[1]))
    former = line.chain.derive(AddressSpec("env_a", "operator", "operator"))
    line.chain.key, line.chain.configured = "second", {"second"}
    for _ in range(3):
        assert line.outbox.rebroadcast_dropped(SCOPE, BASE) == 0
    [alarm] = [it.getMessage() for it in caplog.records if it.levelno == logging.CRITICAL]
    assert alarm.startswith(f"ALARM: sender {BASE}:{former} of env_a waits: out_0001 (nonce 1)")
    assert "its nonce must be used up" in alarm
    line.chain.configured.add("operator")
    assert line.outbox.rebroadcast_dropped(SCOPE, BASE) == 1
    [nothing] = line.chain.held.keys() - {*line.hashes}
    versions = load_signed_versions(
        line.chain_harness.storage,
        SCOPE,
        load_transfer(line.chain_harness.storage, "env_a", line.ids[1]),
    )
    assert [(it.moves, it.signed.hash) for it in versions] == [
        (True, line.hashes[1]), (False, nothing),
    ]  # fmt: skip
    assert decode_call(versions[-1].signed.raw).sender == former


def _replace_failed(tx: Transaction, id: str) -> None:
    tx.replace(attrs.evolve(lock_transfer(tx, id), status="failed"))
