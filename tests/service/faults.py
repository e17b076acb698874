"""Ports that go wrong at one call of the test's choosing, and are healthy before and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from payments_core.chains.port import (
    AddressSpec,
    Block,
    Chain,
    ChainUnavailable,
    Contract,
    FinalBalances,
    Heads,
    ScannedTransfer,
    SignedTransaction,
    TransactionView,
    TransferIntent,
    UnloggedCoin,
)
from payments_core.chains.role_modules import ModuleChain, ModuleState
from payments_core.clock import Instant
from payments_core.networks import ChainType
from payments_core.storage import one_by_one
from payments_core.storage.port import (
    ClaimedJob,
    CommitUnknown,
    LocatedRecord,
    Measure,
    OnDamaged,
    Snapshot,
    Storage,
    StorageUnavailable,
    Transaction,
    Where,
)
from payments_core.storage.records import R, Value

T = TypeVar("T")
Fault = Callable[[Callable[[], Any]], Any]

EVERY_CALL = ("transact", "read", "claim", "next_due")


class Crashed(BaseException):
    """The process died; nothing in it can catch that."""


def crash(call: Callable[[], Any]) -> Any:
    """Die before the call, which is after the one before."""
    raise Crashed


def storage_away(call: Callable[[], Any]) -> Any:
    """The storage is out of reach for one call."""
    raise StorageUnavailable("for the moment")


def commit_lost(call: Callable[[], Any]) -> Any:
    """The transaction takes place and nobody hears of it."""
    call()
    raise CommitUnknown("took place")


def commit_failed(call: Callable[[], Any]) -> Any:
    """The transaction does not take place, and nobody hears of that."""
    raise CommitUnknown("did not take place")


def chain_away(call: Callable[[], Any]) -> Any:
    """The node is out of reach for one call."""
    raise ChainUnavailable("for the moment")


def answer_lost(call: Callable[[], Any]) -> Any:
    """The node does as asked, and its answer is lost."""
    call()
    raise ChainUnavailable("after all was done")


class FaultyStorage:
    """A storage whose `at`-th call of those that count has a fault."""

    def __init__(
        self, inner: Storage, at: int, fault: Fault, counted: Collection[str] = EVERY_CALL
    ) -> None:
        self._inner = inner
        self._at = at
        self._fault = fault
        self._counted = counted
        self.calls = 0

    @property
    def had_its_fault(self) -> bool:
        return self.calls >= self._at

    def count(self, operations: Collection[str]) -> None:
        """From now on these calls count."""
        self._counted = operations

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        return self._through("transact", lambda: self._inner.transact(partition, work))

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        return self._through("read", lambda: self._inner.read(partition, work))

    read_apart, fetch = one_by_one.read_apart, one_by_one.fetch

    def claim(self, queue: str, now: Instant, **options: Any) -> Sequence[ClaimedJob]:
        return self._through("claim", lambda: self._inner.claim(queue, now, **options))

    def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
        return self._through("renew", lambda: self._inner.renew(claimed, until))

    def end_leases(self, queue: str, holder: str, now: Instant) -> int:
        return self._through("end_leases", lambda: self._inner.end_leases(queue, holder, now))

    def find_leases(self, queue: str, after: Instant, limit: int = 100) -> Sequence[ClaimedJob]:
        return self._through("find_leases", lambda: self._inner.find_leases(queue, after, limit))

    def measure(self, partition: str, kind: type[R], after: str | None, limit: int) -> Measure:
        return self._through("read", lambda: self._inner.measure(partition, kind, after, limit))

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        return self._through("next_due", lambda: self._inner.next_due(queue, after))

    def locate(
        self,
        kind: type[R],
        lookup: str,
        keys: Sequence[Sequence[Value]],
        *,
        where: Sequence[Where] = (),
        after: tuple[str, str] | None = None,
        limit: int = 100,
        on_damaged: OnDamaged | None = None,
    ) -> Sequence[LocatedRecord[R]]:
        return self._through(
            "read",
            lambda: self._inner.locate(
                kind, lookup, keys, where=where, after=after, limit=limit, on_damaged=on_damaged
            ),
        )

    def migrate(self) -> None:
        self._inner.migrate()

    def close(self) -> None:
        self._inner.close()

    def _through(self, operation: str, call: Callable[[], T]) -> T:
        if operation in self._counted:
            self.calls += 1
            if self.calls == self._at:
                answer: T = self._fault(call)
                return answer
        return call()


class FaultyChain:
    """A chain whose `at`-th call has a fault; with `until`, all the calls from there to that."""

    def __init__(self, inner: Chain, at: int, fault: Fault, until: int | None = None) -> None:
        self._inner = inner
        self._at = at
        self._fault = fault
        self._until = at if until is None else until
        self.calls = 0

    @property
    def had_its_fault(self) -> bool:
        return self.calls >= self._at

    def heal(self) -> None:
        """No more faults."""
        self._until = -1

    @property
    def chain_id(self) -> int:
        return self._inner.chain_id

    @property
    def chain_type(self) -> ChainType:
        return self._inner.chain_type

    def derive(self, spec: AddressSpec) -> str:
        return self._inner.derive(spec)

    def heads(self) -> Heads:
        return self._through(self._inner.heads)

    def transaction(self, hash: str) -> TransactionView | None:
        return self._through(lambda: self._inner.transaction(hash))

    @property
    def max_scan_interval_ms(self) -> int:
        return self._inner.max_scan_interval_ms

    @property
    def max_scan_blocks(self) -> int:
        return self._inner.max_scan_blocks

    @property
    def bump_after_ms(self) -> int | None:
        return self._inner.bump_after_ms

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return self._through(lambda: self._inner.transactions(hashes))

    def block(self, number: int) -> Block | None:
        return self._through(lambda: self._inner.block(number))

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        return self._through(lambda: self._inner.scan(tokens, recipients, first, last))

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        return self._through(lambda: self._inner.balances(token_address, holders))

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        return self._through(
            lambda: self._inner.check_contract_signature(address, digest, signature)
        )

    def find_unlogged_coin(
        self, environment_id: str, contracts: Sequence[Contract]
    ) -> Mapping[str, int]:
        inner = self._inner
        assert isinstance(inner, UnloggedCoin)
        return self._through(lambda: inner.find_unlogged_coin(environment_id, contracts))

    def find_module(self, environment_id: str, avatar: str, tokens: tuple[str, ...]) -> str:
        return str(self._modules.find_module(environment_id, avatar, tokens))

    def read_module(
        self, environment_id: str, avatar: str, tokens: tuple[str, ...]
    ) -> ModuleState | None:
        return self._through(lambda: self._modules.read_module(environment_id, avatar, tokens))

    @property
    def _modules(self) -> ModuleChain:
        assert isinstance(self._inner, ModuleChain)
        return self._inner

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        return self._through(lambda: self._inner.prepare(intent, slot))

    def prepare_noop(
        self, environment_id: str, slot: int, sender: str | None = None
    ) -> SignedTransaction:
        return self._through(lambda: self._inner.prepare_noop(environment_id, slot, sender))

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:
        return self._through(lambda: self._inner.bump(environment_id, signed))

    def final_nonce(self, sender: str) -> int:
        return self._through(lambda: self._inner.final_nonce(sender))

    def pending_nonce(self, sender: str) -> int:
        return self._through(lambda: self._inner.pending_nonce(sender))

    def find_payer(self, intent: TransferIntent) -> str:
        return self._inner.find_payer(intent)

    def broadcast(self, signed: SignedTransaction) -> None:
        self._through(lambda: self._inner.broadcast(signed))

    def _through(self, call: Callable[[], T]) -> T:
        self.calls += 1
        if self._at <= self.calls <= self._until:
            answer: T = self._fault(call)
            return answer
        return call()
