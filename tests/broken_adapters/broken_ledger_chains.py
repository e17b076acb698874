"""Chain adapters with one fault each against what docs/how-to/write-a-chain-adapter.md promises."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import attrs

from examples.custom_chain.adapter import LedgerChain
from examples.custom_chain.node import Ledger, contract_address
from payments_core.chains.port import (
    AddressSpec,
    FinalBalances,
    Heads,
    SignedTransaction,
    TransactionView,
    TransferIntent,
)
from payments_core.chains.rotated_signer import OperatorSigner
from payments_core.networks import Network


class SenderUnnamed(LedgerChain):
    """Derives an address for the sender that its key does not have."""

    def derive(self, spec: AddressSpec) -> str:
        return contract_address(spec.environment_id, spec.kind, spec.owner_id)


class LatestFinal(LedgerChain):
    """Takes the newest block for final."""

    def heads(self) -> Heads:
        latest = super().heads().latest
        return Heads(latest, latest)


class LatestNonces(LedgerChain):
    """Counts the nonces of the newest block as final."""

    def final_nonce(self, sender: str) -> int:
        return self.pending_nonce(sender)


class LatestBalances(LedgerChain):
    """Reads balances at the newest block, and says that they are of the final one."""

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        final, newest = self.heads().final.number, self._ask(Ledger.height)
        amounts = {it: self._node.balance(token_address, it, newest) for it in holders}
        return FinalBalances(final, amounts)


class PolicyIgnored(LedgerChain):
    """Has a finality of its own, whatever the network's policy asks for."""

    def heads(self) -> Heads:
        latest = super().heads().latest
        final = self.block(max(0, latest.number - 3))
        return Heads(latest, final or latest)


class FirstRowFinal(LedgerChain):
    """Takes the row for small Payments as that for every amount."""

    def __init__(self, node: Ledger, network: Network, signer: OperatorSigner) -> None:
        first = attrs.evolve(network.acceptance[0], up_to=None)
        super().__init__(node, attrs.evolve(network, acceptance=(first,)), signer)


class TagsIgnored(LedgerChain):
    """Takes a policy with tags, although its nodes know none."""

    def __init__(self, node: Ledger, network: Network, signer: OperatorSigner) -> None:
        rows = tuple(
            attrs.evolve(row, tag=None, depth=row.depth or 3) if row.tag else row
            for row in network.acceptance
        )
        super().__init__(node, attrs.evolve(network, acceptance=rows), signer)


class NonceChosen(LedgerChain):
    """Takes the chain's next nonce in place of the one that it is given."""

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        sender = self._signer.address(intent.environment_id)
        return super().prepare(intent, self.pending_nonce(sender))


class NonceReused(LedgerChain):
    """Signs everything for the first nonce."""

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        return super().prepare(intent, 0)


class NoopMisplaced(LedgerChain):
    """Uses up the nonce after the one that it is given."""

    def prepare_noop(
        self, environment_id: str, nonce: int, sender: str | None = None
    ) -> SignedTransaction:
        return super().prepare_noop(environment_id, nonce + 1, sender)


class PoolIncluded(LedgerChain):
    """Says of a transaction in the pool that it is in the newest block."""

    def transaction(self, hash: str) -> TransactionView | None:
        view = super().transaction(hash)
        if view is None or view.block is not None:
            return view
        return attrs.evolve(view, block=self.heads().latest, succeeded=True)


class DeriveAsks(LedgerChain):
    """Asks its node for an address."""

    def derive(self, spec: AddressSpec) -> str:
        self.check()
        return super().derive(spec)


class PayerAsked(LedgerChain):
    """Asks its node who pays."""

    def find_payer(self, intent: TransferIntent) -> str:
        self.check()
        return super().find_payer(intent)


class SilenceSwallowed(LedgerChain):
    """Answers that there is nothing when the node does not answer."""

    def transaction(self, hash: str) -> TransactionView | None:
        with suppress(Exception):
            return super().transaction(hash)
        return None
