"""What is common to chains that are only read for balances: the token, and what is unsupported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NoReturn

from payments_core.chains.port import (
    AddressSpec,
    ScannedTransfer,
    SignedTransaction,
    TransactionView,
    TransferIntent,
    UnsupportedByChain,
)
from payments_core.clock import HOUR
from payments_core.networks import Asset, ChainType

READABLE_USDC: Mapping[ChainType, Asset] = {
    "solana": Asset(0, "USDC", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 6),
    "aptos": Asset(
        0, "USDC", "0xbae207659db88bea0cbead6da0ed00aac12edcdda169e591cd41c94180b46f3b", 6
    ),
}
"""The USDC of the types that are only read: their networks have numbers of an operator's own."""


class ReadOnlyChain:
    """The rest of the chain port, whose every method raises Unsupported with a sentence."""

    name: ClassVar[str]
    """The chain's name in those sentences."""

    max_scan_interval_ms = HOUR
    max_scan_blocks = 1
    bump_after_ms = None

    def derive(self, spec: AddressSpec) -> str:
        self._raise_unsupported("vaults, escrows and deposit addresses are not supported on {}")

    def transaction(self, hash: str) -> TransactionView | None:
        self._raise_unsupported("transactions on {} are not read")

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        self._raise_unsupported("transactions on {} are not read")

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        self._raise_unsupported("{} is not scanned for transfers")

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        self._raise_unsupported(
            "ERC-1271 is only for EVM chains; a wallet on {} signs with its key"
        )

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        self._raise_unsupported("transactions cannot be sent on {}")

    def prepare_noop(
        self, environment_id: str, nonce: int, sender: str | None = None
    ) -> SignedTransaction:
        self._raise_unsupported("transactions cannot be sent on {}")

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:
        self._raise_unsupported("transactions cannot be sent on {}")

    def final_nonce(self, sender: str) -> int:
        self._raise_unsupported("transactions cannot be sent on {}")

    def pending_nonce(self, sender: str) -> int:
        self._raise_unsupported("transactions cannot be sent on {}")

    def find_payer(self, intent: TransferIntent) -> str:
        self._raise_unsupported("transactions cannot be sent on {}")

    def broadcast(self, signed: SignedTransaction) -> None:
        self._raise_unsupported("transactions cannot be sent on {}")

    def _raise_unsupported(self, why: str) -> NoReturn:
        raise UnsupportedByChain(why.format(self.name))


def require_one_node(name: str, urls: Sequence[str], settings: Mapping[str, str]) -> str:
    """The URL of the only node of a chain that is read. Raises ValueError.

    It is trusted, so several would promise an agreement that nobody checks.
    """
    if len(urls) != 1:
        raise ValueError(f"{name} is read from one node, which is trusted: give one URL")
    if settings:
        raise ValueError(f"unknown setting {sorted(settings)[0]}: {name} has none")
    return urls[0]
