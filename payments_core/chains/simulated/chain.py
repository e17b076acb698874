"""The simulated chain: deterministic, final after three blocks, with realistic failures.

It adds a block for every second of the clock (computed, not stored) and one for every
transaction. A transfer without the funds is included and reverts, as on a real chain. Its
blocks and books are in the modules beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from payments_core.chains.gas import GasReadings, TransferAction
from payments_core.chains.port import (
    AddressSpec,
    Block,
    ChainUnavailable,
    Contract,
    FinalBalances,
    Heads,
    NetworkKind,
    ScannedTransfer,
    SignedTransaction,
    TransactionView,
    TransferIntent,
)
from payments_core.chains.role_modules import ModuleState
from payments_core.chains.simulated import blocks
from payments_core.chains.simulated.addresses import contract_address, find_payer, is_contract
from payments_core.chains.simulated.broadcasts import (
    INJECTED_FAILURE,
    decide_broadcast,
    decide_coins,
)
from payments_core.chains.simulated.calls import (
    SimulatedCall,
    decode_call,
    new_call,
    new_nothing,
    sign_call,
)
from payments_core.chains.simulated.failures import (
    ANY,
    READ_FAILURES,
    Failures,
    FaultInjection,
    load_armed_failures,
)
from payments_core.chains.simulated.modules import load_module, module_address
from payments_core.chains.simulated.nonces import (
    load_coins,
    load_final_nonce,
    load_nonce,
    sender_reads,
)
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedChainState,
    SimulatedReorg,
    SimulatedTransaction,
)
from payments_core.chains.simulated.reorgs import (
    MAX_REORG_DEPTH,
    Tail,
    decide_reorg,
    load_tail,
    reorg_id,
)
from payments_core.chains.simulated.scans import load_transfers
from payments_core.chains.simulated.transfers import (
    FAUCET,
    balance_id,
    include,
    insert_or_replace,
    load_amounts,
    to_stranger_movement,
)
from payments_core.clock import HOUR, Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.evolve import evolve
from payments_core.networks import ChainType
from payments_core.storage.port import SIMULATED, Snapshot, StorageError, Transaction
from payments_core.storage.reads import Get

T = TypeVar("T")

_AUTHORITY = WorkerAuthority(SIMULATED, "sandbox")
_ATTEMPTS = 100


class SimulatedChain:
    """One chain of the sandbox."""

    chain_type: ChainType = "evm"
    max_scan_interval_ms = 6 * HOUR  # the sandbox's controls wake the scanner
    faucet = FAUCET
    supports_fault_injection = True
    network_kind: NetworkKind = "simulated"
    bump_after_ms = None  # a transaction is in a block at once, or not at all
    max_scan_blocks = 100_000  # more than a day of seconds: empty blocks cost nothing

    def __init__(self, chain_id: int, ports: Ports) -> None:
        self.chain_id = chain_id
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._failures = Failures(ports)
        self._state_read = Get(SimulatedChainState, str(chain_id))
        self._gas = GasReadings[int | None](self._clock.now)

    # Methods of the port.

    def derive(self, spec: AddressSpec) -> str:
        return contract_address(spec)

    def heads(self) -> Heads:
        senders = self._gas.choose_due()

        def load(snapshot: Snapshot) -> tuple[Heads | None, Mapping[str, int | None]]:
            return self._load_heads(snapshot), load_coins(snapshot, self.chain_id, senders)

        reads = sender_reads(self.chain_id, senders)
        found, coins = self._read_or_fail("heads", load, self._state_read, *reads)
        self._gas.keep(coins)
        return found or self._translate_errors(lambda: self._begin(self._clock.now()))

    def block(self, number: int) -> Block | None:
        def load(snapshot: Snapshot) -> Block | None:
            state = self._load_state(snapshot)
            there = 0 <= number <= blocks.height(state, self._clock.now())
            return blocks.block(state, number) if there else None

        return self._read_or_fail("heads", load, self._state_read)

    def transaction(self, hash: str) -> TransactionView | None:
        return self.transactions([hash])[hash]

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return self._read_or_fail(
            "transaction",
            lambda snapshot: {hash: self._load_view(snapshot, hash) for hash in hashes},
            self._state_read,
            *(Get(SimulatedTransaction, self._row_id(hash)) for hash in hashes),
        )

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        wanted, ours = frozenset(tokens), None if recipients is None else frozenset(recipients)

        def load(snapshot: Snapshot) -> tuple[ScannedTransfer, ...]:
            return load_transfers(snapshot, self._load_state(snapshot), wanted, ours, first, last)

        return self._read_or_fail("scan", load, self._state_read)

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        return self.token_balances([token_address], holders)[token_address]

    def token_balances(
        self, token_addresses: Sequence[str], holders: Sequence[str]
    ) -> Mapping[str, FinalBalances]:
        def load(snapshot: Snapshot) -> Mapping[str, FinalBalances]:
            final = blocks.heads(self._load_state(snapshot), self._clock.now()).final.number
            amounts = partial(load_amounts, snapshot, self.chain_id, holders=holders, number=final)
            return {token: FinalBalances(final, amounts(token)) for token in token_addresses}

        ids = [balance_id(self.chain_id, one, who) for one in token_addresses for who in holders]
        reads = (Get(SimulatedBalance, id) for id in ids)
        return self._read_or_fail("balances", load, self._state_read, *reads)

    def find_unlogged_coin(
        self, environment_id: str, contracts: Sequence[Contract]
    ) -> Mapping[str, int]:
        """See UnloggedCoin: sending back costs nothing here."""
        addresses = [contract.address for contract in contracts]
        held = self.balances(blocks.UNLOGGED_COIN, addresses).amounts
        return {address: amount for address, amount in held.items() if amount > 0}

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        """Always None: its contracts are addresses without code, and strangers have none."""
        return self._read_or_fail("check_contract_signature", lambda snapshot: None)

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        sender = self.derive(AddressSpec(intent.environment_id, "operator", "operator"))
        return self._sign(intent, sender, slot)

    def prepare_noop(
        self, environment_id: str, slot: int, sender: str | None = None
    ) -> SignedTransaction:
        sender = sender or self.derive(AddressSpec(environment_id, "operator", "operator"))
        return self._sign(new_nothing(environment_id, sender, slot), sender, slot)

    def _sign(self, intent: TransferIntent, sender: str, slot: int) -> SignedTransaction:
        return sign_call(new_call(self.chain_id, intent, sender, slot, self.find_payer(intent)))

    def find_module(self, environment_id: str, avatar: str, tokens: tuple[str, ...]) -> str:
        return module_address(environment_id, avatar, tokens)

    def read_module(self, environment_id: str, avatar: str, tokens: tuple[str, ...]) -> ModuleState:
        module = self.find_module(environment_id, avatar, tokens)
        return self._read_or_fail(
            "balances", lambda snapshot: load_module(snapshot, self.chain_id, avatar, module)
        )

    def bump(self, environment_id: str, signed: SignedTransaction) -> None:
        return None

    def final_nonce(self, sender: str) -> int:
        def load(snapshot: Snapshot) -> int:
            return load_final_nonce(snapshot, self.chain_id, sender, self._load_heads(snapshot))

        return self._read(load)

    def pending_nonce(self, sender: str) -> int:
        return self._read(lambda snapshot: load_nonce(snapshot, self.chain_id, sender))

    def find_payer(self, intent: TransferIntent) -> str:
        return find_payer(intent)

    def broadcast(self, signed: SignedTransaction) -> None:
        call = decode_call(signed.raw)
        trouble = self._commit(
            lambda tx, id_sequence: self._decide_broadcast(tx, id_sequence, signed.hash, call)
        )
        if trouble is not None:
            raise ChainUnavailable(trouble)

    def follow_senders(self, senders: Collection[str]) -> None:
        self._gas.follow(senders)

    def count_affordable(self, sender: str, action: TransferAction) -> int | None:
        return self._gas.find(sender)

    def list_affordable(self) -> Mapping[str, int]:
        return {one: it for one, it in self._gas.list_recent().items() if it is not None}

    # The sandbox's controls, which ordered failures do not affect. They raise the storage's errors:
    # Unavailable, StorageError.

    def peek_heads(self) -> Heads:
        """The newest and the newest final block."""
        return self.find_heads() or self._begin(self._clock.now())

    def find_heads(self) -> Heads | None:
        """The newest and the newest final block; None if the chain was never used."""
        return self._read_storage(self._load_heads)

    def is_contract(self, address: str) -> bool:
        """Whether a service derived the address."""
        return is_contract(address)

    def advance_time(self, before: Instant, now: Instant) -> None:
        """Start an unused chain before the clock is moved."""
        if self.find_heads() is None:
            self._begin(before)

    def peek_transaction(self, hash: str) -> TransactionView | None:
        """The transaction, or None if it is not in the chain."""
        return self._read_storage(lambda snapshot: self._load_view(snapshot, hash))

    def set_coins(self, environment_id: str, transactions: int | None) -> None:
        """Give an environment's operator coins for so many transactions, or for any number."""
        operator = self.derive(AddressSpec(environment_id, "operator", "operator"))
        sender_id = f"{self.chain_id}:{operator}"
        self._commit_storage(lambda tx, id_sequence: decide_coins(tx, sender_id, transactions))

    def mine(self, count: int) -> Heads:
        """Add blocks at once."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedChainState]:
            grown = blocks.add_blocks(self._lock_state(tx), self._clock.now(), count)
            return Decision(grown).merge(insert_or_replace(grown))

        return blocks.heads(self._commit_storage(decide), self._clock.now())

    def transfer(
        self,
        token_address: str,
        source: str | None,
        recipient: str,
        amount_atomic: int,
        name: str,
        *,
        reverts: bool = False,
    ) -> str:
        """See SandboxChain: in a block when it returns, and not final."""
        movement = to_stranger_movement(
            self.chain_id, token_address, source, recipient, amount_atomic, name, reverts
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[str]:
            state, done = self._lock_state(tx), Decision(movement.hash)
            if self._lock_transaction(tx, movement.hash) is not None:
                return done
            return done.merge(include(tx, state, movement, self._clock.now()))

        return self._commit_storage(decide)

    def mint(self, token_address: str, recipient: str, amount_atomic: int, name: str) -> str:
        """Credit new tokens, once for each `name`; final when it returns. Returns the hash."""
        hash = self.transfer(token_address, None, recipient, amount_atomic, name)
        self.mine(blocks.CONFIRMATIONS)
        return hash

    def reorg(self, depth: int, reinclude: bool = False, name: str | None = None) -> Heads:
        """Replace the last `depth` blocks (1 to 50) by empty ones, once for each `name`.

        Their transactions leave the chain; with `reinclude` they come back in one block on top,
        at other places. The chain never gets lower.
        """
        if not 1 <= depth <= MAX_REORG_DEPTH:
            raise ValueError(f"a reorg removes 1 to {MAX_REORG_DEPTH} blocks")
        name = name or self._committer.id_sequence().issue("reorg")
        for _ in range(_ATTEMPTS):
            end = self._read_storage(lambda snapshot: self._load_tail(snapshot, depth))
            state = self._commit_storage(partial(self._decide_reorg, end, name, reinclude))
            if state is not None:
                return blocks.heads(state, self._clock.now())
        raise Unavailable()  # the chain has advanced

    # The books.

    def _decide_broadcast(
        self, tx: Transaction, id_sequence: IdSequence, hash: str, call: SimulatedCall
    ) -> Decision[str | None]:
        """Why it is refused, or None. Locks: failures, chain, sender, transaction, balances."""
        faults = FaultInjection(tx, id_sequence, "chain", self.chain_id)
        if faults.take(ANY, "broadcast"):
            return Decision[str | None](INJECTED_FAILURE).merge(faults.as_decision())
        state = self._lock_state(tx)
        return decide_broadcast(tx, state, faults, hash, call, self._clock.now())

    def _decide_reorg(
        self, end: Tail, name: str, reinclude: bool, tx: Transaction, id_sequence: IdSequence
    ) -> Decision[SimulatedChainState | None]:
        """The chain after the reorg, or None if it has advanced since its end was read."""
        state = self._lock_state(tx)
        outcome: Decision[SimulatedChainState | None] = Decision(None)
        if tx.get(SimulatedReorg, reorg_id(state, name), for_update=True) is not None:
            return evolve(outcome, result=state)
        if state.version != end.state.version:
            return outcome
        now = self._clock.now()
        done = decide_reorg(tx, state, end, name=name, reinclude=reinclude, now=now)
        return evolve(outcome, result=done.result).merge(done)

    def _load_tail(self, snapshot: Snapshot, depth: int) -> Tail:
        return load_tail(snapshot, self._load_state(snapshot), depth, self._clock.now())

    def _begin(self, instant: Instant) -> Heads:
        """Store the beginning of a chain without one: from then on each second adds a block."""
        decide = partial(blocks.decide_beginning, self.chain_id, instant)
        return blocks.heads(self._commit_storage(decide), self._clock.now())

    def _load_heads(self, snapshot: Snapshot) -> Heads | None:
        """The heads; None if the chain's beginning is not stored."""
        state = snapshot.get(SimulatedChainState, str(self.chain_id))
        return blocks.heads(state, self._clock.now()) if state else None

    def _load_view(self, snapshot: Snapshot, hash: str) -> TransactionView | None:
        row = snapshot.get(SimulatedTransaction, self._row_id(hash))
        return blocks.view(self._load_state(snapshot), row) if row is not None else None

    def _load_state(self, snapshot: Snapshot) -> SimulatedChainState:
        return self._state_or_new(snapshot.get(SimulatedChainState, str(self.chain_id)))

    def _lock_state(self, tx: Transaction) -> SimulatedChainState:
        return self._state_or_new(tx.get(SimulatedChainState, str(self.chain_id), for_update=True))

    def _state_or_new(self, state: SimulatedChainState | None) -> SimulatedChainState:
        return state or SimulatedChainState(id=str(self.chain_id), began_at_ms=self._clock.now())

    def _lock_transaction(self, tx: Transaction, hash: str) -> SimulatedTransaction | None:
        return tx.get(SimulatedTransaction, self._row_id(hash), for_update=True)

    def _row_id(self, hash: str) -> str:
        return f"{self.chain_id}:{hash}"

    # Calls.

    def _read_or_fail(self, operation: str, load: Callable[[Snapshot], T], *reads: Get) -> T:
        """The answer to a call of the port, unless it was ordered to fail; `load` makes `reads`."""
        wanted = (ANY, operation)

        def load_with_failures(snapshot: Snapshot) -> tuple[bool, T]:
            snapshot.read_ahead(READ_FAILURES, *reads)
            failures = load_armed_failures(snapshot)
            armed = failures is not None and failures.has("chain", wanted, self.chain_id)
            return armed, load(snapshot)

        armed, answer = self._read(load_with_failures)
        if armed and self._translate_errors(
            lambda: self._failures.take("chain", wanted, self.chain_id)
        ):
            raise ChainUnavailable(INJECTED_FAILURE)
        return answer

    def _read(self, load: Callable[[Snapshot], T]) -> T:
        return self._translate_errors(lambda: self._read_storage(load))

    def _commit(self, decide: Callable[[Transaction, IdSequence], Decision[T]]) -> T:
        return self._translate_errors(lambda: self._commit_storage(decide))

    def _translate_errors(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (StorageError, Unavailable) as error:
            raise ChainUnavailable(str(error)) from error

    def _read_storage(self, load: Callable[[Snapshot], T]) -> T:
        return self._storage.read(SIMULATED, load)

    def _commit_storage(self, decide: Callable[[Transaction, IdSequence], Decision[T]]) -> T:
        return self._committer.commit(_AUTHORITY, decide)
