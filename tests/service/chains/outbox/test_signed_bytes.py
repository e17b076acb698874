"""What is signed for a nonce: in which order, by whom, and which bytes count as the transfer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from payments_core.chains.outbox.inclusion import encode_signed, load_signed_versions
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    Replacement,
    TransferOutcome,
    TransferToWatch,
    load_transfer,
    new_transfer,
    replacement_id,
)
from payments_core.chains.port import (
    AddressSpec,
    ChainUnavailable,
    Contract,
    SignedTransaction,
    SignerRefused,
    TransferIntent,
)
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import MINUTE
from payments_core.engine.decision import WorkerAuthority
from payments_core.storage.port import Storage
from tests.service.chain_harness import BASE, BOB, ChainHarness
from tests.service.world import write
from tests.shipped import asset_of

SCOPE = WorkerAuthority("env_a", "sandbox")


class Signing(SimulatedChain):
    """A chain that says what it signs, and never signs the same bytes twice."""

    def __init__(self, chain_harness: ChainHarness) -> None:
        super().__init__(BASE, chain_harness.ports)
        self.signed: list[str] = []
        self.before: Callable[[], None] = lambda: None

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        before, self.before = self.before, lambda: None
        before()
        self.signed.append(intent.id)
        signed = super().prepare(intent, slot)
        return attrs.evolve(signed, hash=f"{signed.hash}-{len(self.signed)}")


@pytest.fixture
def chain_harness(storage: Storage) -> ChainHarness:
    chain_harness = ChainHarness(storage)
    chain_harness.give(chain_harness.vault, 1_000, "gift")
    return chain_harness


def intend(chain_harness: ChainHarness, *ids: str) -> None:
    """Insert the intents of transfers from the vault to BOB."""
    vault = Contract(
        "vault", "acct_a", chain_harness.chain.derive(AddressSpec("env_a", "vault", "acct_a"))
    )
    transfers = [
        new_transfer(
            id, asset_of(BASE, "USDC"), "sweep", f"owner_{id}",
            source=vault, recipient=BOB, amount=10, now=chain_harness.clock.now(),
        )
        for id in ids
    ]  # fmt: skip
    write(chain_harness.storage, "env_a", lambda tx: [tx.insert(one) for one in transfers])


def stored(chain_harness: ChainHarness, id: str) -> OutboundTransfer:
    return load_transfer(chain_harness.storage, "env_a", id)


def test_a_nonce_is_signed_only_when_the_one_before_has_its_bytes(
    chain_harness: ChainHarness,
) -> None:
    """A worker died before it signed the first; another comes to the second, and takes its nonce.

    Were the second signed for the nonce after it, the chain would wait for the first for as long
    as nobody signs it: its owner may have given it up. Were the first signed in the second's turn,
    it would have bytes that nobody was offered.
    """
    intend(chain_harness, "out_1", "out_2")
    chain = Signing(chain_harness)

    def die() -> None:
        raise SignerRefused("the process died here")

    chain.before = die
    with pytest.raises(ChainUnavailable):
        Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, "out_1")
    first = stored(chain_harness, "out_1")
    assert (first.status, first.slot, first.raw) == ("reserved", 0, None)
    chain.before = die  # nor does the second keep what it took
    with pytest.raises(ChainUnavailable):
        Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, "out_2")
    first, second = stored(chain_harness, "out_1"), stored(chain_harness, "out_2")
    assert (first.status, first.sender_id, first.slot) == ("queued", None, None)
    assert (second.status, second.slot, second.previous_id) == ("reserved", 0, None)
    assert (
        Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, "out_2") is not None
    )
    assert chain.signed == ["out_2"]
    assert (
        Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, "out_1") is not None
    )
    assert chain.signed == ["out_2", "out_1"]
    first, second = stored(chain_harness, "out_1"), stored(chain_harness, "out_2")
    assert (first.status, second.status) == ("signed", "signed")
    assert (second.slot, first.slot, first.previous_id) == (0, 1, "out_2")


def test_a_nonce_that_was_taken_over_is_not_signed_by_the_worker_that_had_it(
    chain_harness: ChainHarness,
) -> None:
    """The first worker is slow, not dead: what it signs for the nonce is thrown away."""
    intend(chain_harness, "out_1", "out_2")
    chain = Signing(chain_harness)
    other = Outbox(chain_harness.ports, {BASE: chain})
    chain.before = lambda: other.ensure_signed(SCOPE, BASE, "out_2")  # type: ignore[return-value]
    mine = Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, "out_1")
    assert chain.signed == ["out_2", "out_1", "out_1"]
    first, second = stored(chain_harness, "out_1"), stored(chain_harness, "out_2")
    assert mine is not None
    assert first.transaction_hash == mine.hash
    assert (second.slot, first.slot, first.previous_id) == (0, 1, "out_2")


class TakingTurns(Signing):
    """A chain at which each of two workers signs until the other has begun to, or has ended."""

    MOST = 20

    def __init__(self, chain_harness: ChainHarness) -> None:
        super().__init__(chain_harness)
        self._turn = threading.Condition()
        self.begun = 0
        self.ended = 0

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        with self._turn:
            self.begun += 1
            number = self.begun
            self._turn.notify_all()
            self._turn.wait_for(
                lambda: self.begun > number or self.ended or number >= self.MOST, timeout=30
            )
        return super().prepare(intent, slot)

    def wait_until_begun(self) -> None:
        """Wait until a worker signs."""
        with self._turn:
            assert self._turn.wait_for(lambda: self.begun, timeout=30)

    def end(self) -> None:
        with self._turn:
            self.ended += 1
            self._turn.notify_all()


def test_two_live_workers_do_not_take_one_nonce_from_each_other_for_ever(
    chain_harness: ChainHarness,
) -> None:
    """The one that has lost its nonce gives way, and signs in its next turn."""
    intend(chain_harness, "out_1", "out_2")
    chain = TakingTurns(chain_harness)

    def sign(id: str) -> bool:
        try:
            return (
                Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, id)
                is not None
            )
        except ChainUnavailable:
            return False
        finally:
            chain.end()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(sign, "out_1")
        chain.wait_until_begun()  # or the other one may be done before it signs
        second = pool.submit(sign, "out_2")
        signed = [first.result(), second.result()]
    assert sorted(signed) == [False, True]
    assert chain.begun == 2
    late = "out_1" if not signed[0] else "out_2"
    assert sign(late)
    assert sorted(
        (stored(chain_harness, id).slot, stored(chain_harness, id).status)
        for id in ("out_1", "out_2")
    ) == [(0, "signed"), (1, "signed")]


def test_the_bytes_that_another_worker_stored_first_stay(chain_harness: ChainHarness) -> None:
    """It may have sent them already: bytes that are not stored are bytes that nobody looks for,
    and the transfer would count as failed while they move the money.
    """
    intend(chain_harness, "out_1")
    chain = Signing(chain_harness)
    others: list[SignedTransaction | None] = []
    chain.before = lambda: others.append(
        Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, "out_1")
    )
    mine = Outbox(chain_harness.ports, {BASE: chain}).ensure_signed(SCOPE, BASE, "out_1")
    assert len(chain.signed) == 2, "both workers signed"
    assert [mine] == others
    outgoing = stored(chain_harness, "out_1")
    assert mine is not None
    assert (outgoing.transaction_hash, outgoing.raw) == (mine.hash, encode_signed(mine))


def fill_nonce(chain_harness: ChainHarness, chain: SimulatedChain, id: str) -> SignedTransaction:
    """Store bytes that move nothing as the newest for the nonce of a signed transfer."""
    outgoing = stored(chain_harness, id)
    assert outgoing.slot is not None
    nothing = chain.prepare_noop("env_a", outgoing.slot)
    replacement = Replacement(
        id=replacement_id(id, 1),
        outgoing_id=id,
        transaction_hash=nothing.hash,
        raw=encode_signed(nothing),
        moves=False,
        signed_at_ms=chain_harness.clock.now(),
    )

    def store(tx: object) -> None:
        tx.insert(replacement)  # type: ignore[attr-defined]
        tx.replace(attrs.evolve(outgoing, replacements=1))  # type: ignore[attr-defined]

    write(chain_harness.storage, "env_a", store)
    return nothing


def test_bytes_that_move_nothing_are_never_handed_out_as_the_transfer(
    chain_harness: ChainHarness,
) -> None:
    """The owner would note their hash as that of its transfer, and a payer would be shown it."""
    intend(chain_harness, "out_1")
    outbox = Outbox(chain_harness.ports, {BASE: chain_harness.chain})
    moving = outbox.ensure_signed(SCOPE, BASE, "out_1")
    nothing = fill_nonce(chain_harness, chain_harness.chain, "out_1")
    versions = load_signed_versions(chain_harness.storage, SCOPE, stored(chain_harness, "out_1"))
    assert [version.signed.hash for version in versions][-1] == nothing.hash
    assert outbox.ensure_signed(SCOPE, BASE, "out_1") == moving


def test_a_nonce_that_bytes_that_move_nothing_took_is_a_transfer_that_failed(
    chain_harness: ChainHarness,
) -> None:
    """It is final, and the transaction succeeded; but it does not prove that money moved."""
    intend(chain_harness, "out_1")
    outbox = Outbox(chain_harness.ports, {BASE: chain_harness.chain})
    outbox.ensure_signed(SCOPE, BASE, "out_1")
    nothing = fill_nonce(chain_harness, chain_harness.chain, "out_1")
    chain_harness.chain.broadcast(nothing)
    chain_harness.chain.mine(20)
    [outcome] = outbox.check_outcomes(SCOPE, [TransferToWatch("out_1")])
    assert isinstance(outcome, TransferOutcome)
    assert (outcome.reason, outcome.hash) == ("transaction_failed", nothing.hash)
    assert chain_harness.newest(BOB) == 0


class Refusing(Signing):
    """A chain whose nodes take nothing, and whose fees may rise."""

    bump_after_ms = MINUTE

    def broadcast(self, signed: SignedTransaction) -> None:
        raise ChainUnavailable("no node takes it")

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:
        return SignedTransaction(f"{signed.hash}-raised", signed.raw + b" ")


@pytest.mark.parametrize("moves", [True, False])
def test_bytes_with_higher_fees_move_what_those_before_them_moved(
    chain_harness: ChainHarness, moves: bool
) -> None:
    """Or a nonce that is only to be used up would count as the transfer, once it is expensive."""
    intend(chain_harness, "out_1")
    chain = Refusing(chain_harness)
    outbox = Outbox(chain_harness.ports, {BASE: chain})
    outbox.ensure_signed(SCOPE, BASE, "out_1")
    if not moves:
        fill_nonce(chain_harness, chain, "out_1")
    chain_harness.chain.mine(20)
    chain_harness.clock.advance(3_600)
    with pytest.raises(ChainUnavailable):
        outbox.find_inclusion(SCOPE, "out_1")
    versions = load_signed_versions(chain_harness.storage, SCOPE, stored(chain_harness, "out_1"))
    assert versions[-1].signed.hash.endswith("-raised")
    assert versions[-1].moves is moves
