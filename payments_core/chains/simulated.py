"""The simulated chain: deterministic, final after three blocks, and honest about failure.

It adds a block for every second of the clock (computed, not stored) and one for every
transaction. A transfer without the funds is included and reverts, as on a real chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import attrs
import msgspec

from payments_core.addresses import checksummed
from payments_core.assets import ChainType
from payments_core.chains.books import (
    SimulatedBalance,
    SimulatedChainState,
    SimulatedLog,
    SimulatedSender,
    SimulatedTransaction,
)
from payments_core.chains.port import (
    AddressSpec,
    BalancesAt,
    Block,
    ChainUnavailable,
    Heads,
    Signed,
    TransactionView,
    TransferIntent,
    TransferLog,
)
from payments_core.clock import SECOND, Clock
from payments_core.decision import Decision, Ledger, Scope
from payments_core.errors import Unavailable
from payments_core.identifiers import Draw
from payments_core.money import Atomic
from payments_core.storage.port import SIMULATED, Snapshot, Storage, StorageError, Transaction
from payments_core.storage.records import Record

T = TypeVar("T")

CONFIRMATIONS = 3
"""A block is final when this many blocks are on top of it."""

FAUCET = "0x000000000000000000000000000000000000fA0C"
_SCOPE = Scope(SIMULATED, "sandbox")


@attrs.frozen
class _Call:
    """What the bytes of a simulated transaction say."""

    chain_id: int
    intent_id: str
    sender: str
    slot: int
    token_address: str
    source: str
    recipient: str
    amount: str


class SimulatedChain:
    """One chain of the sandbox."""

    chain_type: ChainType = "evm"

    def __init__(self, chain_id: int, storage: Storage, ledger: Ledger, clock: Clock) -> None:
        self.chain_id = chain_id
        self._storage = storage
        self._ledger = ledger
        self._clock = clock

    # The port.

    def derive(self, spec: AddressSpec) -> str:
        return _address(spec)

    def heads(self) -> Heads:
        return self._heads(self._read(self._state))

    def transaction(self, hash: str) -> TransactionView | None:
        row = self._read(
            lambda snapshot: snapshot.get(SimulatedTransaction, f"{self.chain_id}:{hash}")
        )
        if row is None:
            return None
        logs = tuple(
            TransferLog(
                position,
                position,
                log.token_address,
                log.sender,
                log.recipient,
                log.amount,
            )
            for position, log in enumerate(row.logs)
        )
        return TransactionView(row.hash, self._block(row.block_number), row.succeeded, logs)

    def balances(self, token_address: str, holders: Sequence[str]) -> BalancesAt:
        def look(snapshot: Snapshot) -> BalancesAt:
            final = self._heads(self._state(snapshot)).final.number
            amounts = {}
            for holder in holders:
                row = snapshot.get(SimulatedBalance, self._balance_id(token_address, holder))
                recent = sum(change for block, change in row.recent if block > final) if row else 0
                amounts[holder] = row.total - recent if row else 0
            return BalancesAt(final, amounts)

        return self._read(look)

    def prepare(self, intent: TransferIntent, slot: int) -> Signed:
        sender = self.derive(AddressSpec(intent.environment_id, "operator", "operator"))
        call = _Call(
            self.chain_id,
            intent.id,
            sender,
            slot,
            intent.token_address,
            intent.source,
            intent.recipient,
            str(intent.amount_atomic),
        )
        raw = msgspec.json.encode(call)
        return Signed("0x" + hashlib.sha256(raw).hexdigest(), raw)

    def broadcast(self, signed: Signed) -> None:
        call = msgspec.json.decode(signed.raw, type=_Call)

        def decide(tx: Transaction, draw: Draw) -> Decision[bool]:
            sender_id = f"{self.chain_id}:{call.sender}"
            sender = tx.get(SimulatedSender, sender_id, for_update=True)
            known = tx.get(SimulatedTransaction, f"{self.chain_id}:{signed.hash}", for_update=True)
            if known is not None:
                return Decision(True)
            next_slot = sender.next_slot if sender else 0
            if call.slot != next_slot:
                return Decision(False)
            moved = self._transfer(
                tx, signed.hash, call.token_address, call.source, call.recipient, int(call.amount)
            )
            used = attrs.evolve(sender or SimulatedSender(id=sender_id), next_slot=next_slot + 1)
            after = Decision(True, replaces=(used,)) if sender else Decision(True, inserts=(used,))
            return after.joined(moved)

        if not self._commit(decide):
            raise ChainUnavailable(f"slot {call.slot} is not the sender's next")

    # The sandbox's own doors.

    def mine(self, blocks: int) -> Heads:
        """Add blocks at once."""

        def decide(tx: Transaction, draw: Draw) -> Decision[SimulatedChainState]:
            state = self._state(tx, for_update=True)
            return self._stored(attrs.evolve(state, extra_blocks=state.extra_blocks + blocks))

        return self._heads(self._commit(decide))

    def mint(self, token_address: str, recipient: str, amount_atomic: int, name: str) -> str:
        """Credit new tokens, once for each `name`; final when it returns. Answers the hash."""
        hash = "0x" + hashlib.sha256(f"{self.chain_id}/{name}".encode()).hexdigest()

        def decide(tx: Transaction, draw: Draw) -> Decision[str]:
            state = self._state(tx, for_update=True)
            if tx.get(SimulatedTransaction, f"{self.chain_id}:{hash}", for_update=True):
                return Decision(hash)
            credited = self._credit(tx, state, hash, token_address, recipient, amount_atomic)
            return Decision(hash).joined(credited)

        self._commit(decide)
        self.mine(CONFIRMATIONS)
        return hash

    # The books.

    def _transfer(
        self,
        tx: Transaction,
        hash: str,
        token: str,
        source: str,
        recipient: str,
        amount: int,
    ) -> Decision[None]:
        state = self._state(tx, for_update=True)
        payer = tx.get(SimulatedBalance, self._balance_id(token, source), for_update=True)
        funds = payer.total if payer else 0
        if payer is None or funds < amount:
            return self._included(state, hash, None)
        log = SimulatedLog(
            token_address=token, sender=source, recipient=recipient, amount=Atomic(amount)
        )
        number = self._height(state) + 1
        if source == recipient:
            return self._included(state, hash, log)
        debit = self._moved(payer, number, -amount)
        credit = self._credited(tx, token, recipient, number, amount)
        return self._included(state, hash, log).joined(debit, credit)

    def _credit(
        self,
        tx: Transaction,
        state: SimulatedChainState,
        hash: str,
        token: str,
        recipient: str,
        amount: int,
    ) -> Decision[None]:
        log = SimulatedLog(
            token_address=token, sender=FAUCET, recipient=recipient, amount=Atomic(amount)
        )
        credit = self._credited(tx, token, recipient, self._height(state) + 1, amount)
        return self._included(state, hash, log).joined(credit)

    def _included(
        self, state: SimulatedChainState, hash: str, log: SimulatedLog | None
    ) -> Decision[None]:
        """The block with the transaction: with its transfer, or reverted without one."""
        number = self._height(state) + 1
        row = SimulatedTransaction(
            id=f"{self.chain_id}:{hash}",
            chain_id=self.chain_id,
            hash=hash,
            block_number=number,
            succeeded=log is not None,
            logs=(log,) if log else (),
        )
        grown = attrs.evolve(state, extra_blocks=state.extra_blocks + 1, highest=number)
        return Decision(None, inserts=(row,)).joined(self._stored(grown))

    def _credited(
        self, tx: Transaction, token: str, holder: str, number: int, amount: int
    ) -> Decision[None]:
        id = self._balance_id(token, holder)
        row = tx.get(SimulatedBalance, id, for_update=True)
        return self._moved(row or SimulatedBalance(id=id), number, amount)

    def _moved(self, row: SimulatedBalance, number: int, change: int) -> Decision[None]:
        # Reorganisations reach back some blocks more than finality; keep a margin of them.
        recent = tuple(item for item in row.recent if item[0] > number - 8 * CONFIRMATIONS)
        changed = attrs.evolve(
            row, total=row.total + change, recent=(*recent, (number, Atomic(change)))
        )
        return _put(changed)

    def _state(self, tx: Snapshot, *, for_update: bool = False) -> SimulatedChainState:
        id = str(self.chain_id)
        if for_update:
            state = tx.get(SimulatedChainState, id, for_update=True)  # type: ignore[call-arg]
        else:
            state = tx.get(SimulatedChainState, id)
        return state or SimulatedChainState(id=id, began_at=self._clock.now())

    def _stored(self, state: SimulatedChainState) -> Decision[SimulatedChainState]:
        return Decision(state).joined(_put(state))

    def _height(self, state: SimulatedChainState) -> int:
        grown = (self._clock.now() - state.began_at) // SECOND + state.extra_blocks
        return max(grown, state.highest)  # a clock that steps back takes no block away

    def _heads(self, state: SimulatedChainState) -> Heads:
        latest = self._height(state)
        return Heads(self._block(latest), self._block(max(0, latest - CONFIRMATIONS)))

    def _block(self, number: int) -> Block:
        return Block(
            number, "0x" + hashlib.sha256(f"{self.chain_id}:{number}".encode()).hexdigest()
        )

    def _balance_id(self, token: str, holder: str) -> str:
        return f"{self.chain_id}:{token}:{holder}"

    def _read(self, look: Callable[[Snapshot], T]) -> T:
        try:
            return self._storage.read(SIMULATED, look)
        except StorageError as error:
            raise ChainUnavailable(str(error)) from error

    def _commit(self, decide: Callable[[Transaction, Draw], Decision[T]]) -> T:
        try:
            return self._ledger.commit(_SCOPE, decide)
        except Unavailable as error:
            raise ChainUnavailable(str(error)) from error


@lru_cache(maxsize=10_000)
def _address(spec: AddressSpec) -> str:
    """All simulated EVM chains share addresses, as CREATE2 makes real ones do."""
    seed = f"{spec.environment_id}/{spec.kind}/{spec.owner_id}".encode()
    return checksummed(hashlib.sha256(seed).digest()[:20])


def _put(record: Record) -> Decision[None]:
    """Insert a record that was never stored, replace one that was."""
    if record.version == 0:
        return Decision(None, inserts=(record,))
    return Decision(None, replaces=(record,))
