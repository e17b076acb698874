"""What a chain answers that is read for balances and nothing else: that it cannot, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NoReturn

from payments_core.chains.port import (
    AddressSpec,
    ScannedTransfer,
    Signed,
    TransactionView,
    TransferIntent,
    Unsupported,
)
from payments_core.clock import HOUR


class BalancesOnly:
    """The rest of the chain port, where every method raises Unsupported with a sentence."""

    name: ClassVar[str]
    """What the chain is called in those sentences."""

    longest_pause_ms = HOUR
    longest_scan = 1
    patience_ms = None

    def derive(self, spec: AddressSpec) -> str:
        self._cannot("there are no vaults, escrows or deposit addresses of ours on {}")

    def transaction(self, hash: str) -> TransactionView | None:
        self._cannot("transactions on {} are not read")

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        self._cannot("transactions on {} are not read")

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        self._cannot("{} is not scanned for transfers")

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        self._cannot("ERC-1271 is of EVM chains; a wallet on {} signs with its key")

    def prepare(self, intent: TransferIntent, slot: int) -> Signed:
        self._cannot("nothing is sent on {}")

    def fill(self, environment_id: str, slot: int) -> Signed:
        self._cannot("nothing is sent on {}")

    def bump(self, environment_id: str, signed: Signed) -> Signed | None:
        self._cannot("nothing is sent on {}")

    def slots_used(self, sender: str) -> int:
        self._cannot("nothing is sent on {}")

    def broadcast(self, signed: Signed) -> None:
        self._cannot("nothing is sent on {}")

    def _cannot(self, why: str) -> NoReturn:
        raise Unsupported(why.format(self.name))
