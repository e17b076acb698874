"""Chains with one fault each, as adapters really have them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs
import msgspec

from payments_core.chains.port import (
    AddressSpec,
    Block,
    ChainUnavailable,
    FinalBalances,
    Heads,
    ScannedTransfer,
    SignedTransaction,
    TransactionView,
    TransferIntent,
)
from payments_core.chains.simulated.chain import SimulatedChain


class Eager(SimulatedChain):
    """Takes the newest block for final."""

    def heads(self) -> Heads:
        latest = super().heads().latest
        return Heads(latest, latest)


class Unrooted(SimulatedChain):
    """Makes up the hash of the final block."""

    def heads(self) -> Heads:
        heads = super().heads()
        return Heads(heads.latest, Block(heads.final.number, heads.latest.hash))


class Timeless(SimulatedChain):
    """Does not tell when a transaction's block was made."""

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        found = super().transactions(hashes)
        return {
            hash: attrs.evolve(view, block=_without_time(view.block)) if view else None
            for hash, view in found.items()
        }

    def transaction(self, hash: str) -> TransactionView | None:
        return self.transactions([hash])[hash]


class InSeconds(SimulatedChain):
    """Tells times in seconds."""

    def heads(self) -> Heads:
        latest, final = attrs.astuple(super().heads(), recurse=False)
        return Heads(
            attrs.evolve(latest, time=latest.time // 1_000),
            attrs.evolve(final, time=final.time // 1_000),
        )


class LatelyFinal(SimulatedChain):
    """Takes the time of the request for that of the final block."""

    def heads(self) -> Heads:
        heads = super().heads()
        return attrs.evolve(heads, final=attrs.evolve(heads.final, time=10**15))


def _without_time(block: Block | None) -> Block | None:
    return block and attrs.evolve(block, time=None)


class Prophetic(SimulatedChain):
    """Reports blocks that are not there yet."""

    def block(self, number: int) -> Block | None:
        return super().block(number) or Block(number, "0x" + "00" * 32)


class Numbered(SimulatedChain):
    """Names blocks by their numbers: a reorg goes unseen."""

    def block(self, number: int) -> Block | None:
        return _renamed(super().block(number))

    def heads(self) -> Heads:
        heads = super().heads()
        latest, final = _renamed(heads.latest), _renamed(heads.final)
        assert latest is not None
        assert final is not None
        return Heads(latest, final)

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        found = super().transactions(hashes)
        return {
            hash: attrs.evolve(view, block=_renamed(view.block)) if view else None
            for hash, view in found.items()
        }

    def transaction(self, hash: str) -> TransactionView | None:
        return self.transactions([hash])[hash]

    def scan(self, *asked: Any) -> tuple[ScannedTransfer, ...]:
        return tuple(attrs.evolve(it, block=_renamed(it.block)) for it in super().scan(*asked))


def _renamed(block: Block | None) -> Block | None:
    if block is None:
        return None
    return Block(block.number, "0x" + hashlib.sha256(str(block.number).encode()).hexdigest())


class Hopeful(SimulatedChain):
    """Takes every transaction in a block for a success."""

    def transaction(self, hash: str) -> TransactionView | None:
        view = super().transaction(hash)
        return attrs.evolve(view, succeeded=True) if view else None


class Forgetful(SimulatedChain):
    """Of many, reports only those that it knows."""

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: view for hash, view in super().transactions(hashes).items() if view}


class Remembering(SimulatedChain):
    """Keeps what it has seen in a block, whatever becomes of it."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._seen_before: dict[str, TransactionView] = {}

    def transaction(self, hash: str) -> TransactionView | None:
        view = super().transaction(hash)
        if view is not None:
            self._seen_before.setdefault(hash, view)
        return self._seen_before.get(hash)


class Newest(SimulatedChain):
    """Balances of the newest block, said to be of the final one."""

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        found = super().balances(token_address, holders)
        self.mine(3)
        return FinalBalances(found.height, super().balances(token_address, holders).amounts)


class Blended(SimulatedChain):
    """Gives every token the amounts of the first."""

    def token_balances(
        self, token_addresses: Sequence[str], holders: Sequence[str]
    ) -> Mapping[str, FinalBalances]:
        found = super().token_balances(token_addresses, holders)
        return dict.fromkeys(token_addresses, found[token_addresses[0]])


class NewestTokens(SimulatedChain):
    """Balances of many tokens of the newest block, said to be of the final one."""

    def token_balances(
        self, token_addresses: Sequence[str], holders: Sequence[str]
    ) -> Mapping[str, FinalBalances]:
        if len(token_addresses) > 1:
            self.mine(3)
        return super().token_balances(token_addresses, holders)


class HalfOpen(SimulatedChain):
    """Leaves the last block of a range out."""

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        return super().scan(tokens, recipients, first, last - 1)


class LateStart(SimulatedChain):
    """Leaves the first block of a range out."""

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        return super().scan(tokens, recipients, first + 1, last)


class Backwards(SimulatedChain):
    """Reports the newest transfer first."""

    def scan(self, *asked: Any) -> tuple[ScannedTransfer, ...]:
        return tuple(reversed(super().scan(*asked)))


class Careless(SimulatedChain):
    """Takes no recipients for everybody."""

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        return super().scan(tokens, recipients or None, first, last)


class Greedy(SimulatedChain):
    """Finds the transfers of every token."""

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        both = self.every_token if tokens else ()
        return super().scan(both, recipients, first, last)

    every_token: tuple[str, ...] = ()


class Thrifty(SimulatedChain):
    """Leaves transfers of nothing out."""

    def scan(self, *asked: Any) -> tuple[ScannedTransfer, ...]:
        return tuple(item for item in super().scan(*asked) if item.amount_atomic)


class Joining(SimulatedChain):
    """Joins the parts of a purpose without a separator."""

    def derive(self, spec: AddressSpec) -> str:
        joined = spec.environment_id + spec.kind + spec.owner_id
        return super().derive(AddressSpec(joined, "vault", ""))


class Folding(SimulatedChain):
    """Takes ids without regard to case."""

    def derive(self, spec: AddressSpec) -> str:
        return super().derive(
            AddressSpec(spec.environment_id.lower(), spec.kind, spec.owner_id.lower())
        )


class LowerCase(SimulatedChain):
    """Writes addresses without their checksum."""

    def derive(self, spec: AddressSpec) -> str:
        return super().derive(spec).lower()


class OneSender(SimulatedChain):
    """Sends for all environments from one address."""

    def derive(self, spec: AddressSpec) -> str:
        environment = "all" if spec.kind == "operator" else spec.environment_id
        return super().derive(attrs.evolve(spec, environment_id=environment))


class Hasty(SimulatedChain):
    """Sends what it was to sign."""

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        signed = super().prepare(intent, slot)
        with suppress(ChainUnavailable):
            self.broadcast(signed)
        return signed


class Resigning(SimulatedChain):
    """Makes another transaction of bytes that are sent again."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._sent: dict[str, int] = {}

    def broadcast(self, signed: SignedTransaction) -> None:
        times = self._sent[signed.hash] = self._sent.get(signed.hash, 0) + 1
        if times > 1:
            call = msgspec.json.decode(signed.raw)
            call["slot"] += times - 1
            raw = msgspec.json.encode(call)
            signed = SignedTransaction("0x" + hashlib.sha256(raw).hexdigest(), raw)
        super().broadcast(signed)


class Overcounting(SimulatedChain):
    """Counts slots that nobody has taken."""

    def final_nonce(self, sender: str) -> int:
        return 1


class Settled(SimulatedChain):
    """Counts no nonce before it is final."""

    def pending_nonce(self, sender: str) -> int:
        return self.final_nonce(sender)


class Nameless(SimulatedChain):
    """Takes the recipient for the payer."""

    def find_payer(self, intent: TransferIntent) -> str:
        return intent.recipient


class Doubling(SimulatedChain):
    """Bumps into the slot after."""

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:  # type: ignore[override]
        call = msgspec.json.decode(signed.raw)
        call["slot"] += 1
        raw = msgspec.json.encode(call)
        self.broadcast(signed)
        return SignedTransaction("0x" + hashlib.sha256(raw).hexdigest(), raw)


class Deaf(SimulatedChain):
    """Takes a silence for nothing there."""

    def transaction(self, hash: str) -> TransactionView | None:
        try:
            return super().transaction(hash)
        except ChainUnavailable:
            return None
