"""Your own chain adapter, which passes the suite of the port.

`node.py` is the chain; yours has nodes. `play.py` has a Payment paid on it.
`docs/how-to/write-a-chain-adapter.md` builds this file part by part.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from payments_core.chains.port import (
    AddressSpec,
    Block,
    ChainMismatch,
    ChainUnavailable,
    Contract,
    FinalBalances,
    Heads,
    ScannedTransfer,
    SignedTransaction,
    TransactionView,
    TransferIntent,
    TransferLog,
    UnsupportedByChain,
)
from payments_core.chains.rotated_signer import OperatorSigner, find_signer
from payments_core.clock import SECOND
from payments_core.networks import ChainType, Network

from .node import Ledger, NodeDown, Sighting, contract_address

T = TypeVar("T")


class LedgerChain:
    """The port of `payments_core/chains/port.py`, over one node. Threads may share it."""

    chain_type: ChainType = "evm"  # addresses of 20 bytes
    max_scan_interval_ms = 5 * SECOND
    max_scan_blocks = 1_000
    bump_after_ms = None  # there are no fees: no transaction is stuck

    def __init__(self, node: Ledger, network: Network, signer: OperatorSigner) -> None:
        if any(row.tag in ("safe", "finalized") for row in network.acceptance):
            raise ValueError("the nodes of this chain have no tags: give acceptance with a depth")
        self.chain_id, self._finality = network.chain_id, network.finality
        self._node, self._signer = node, signer

    def check(self) -> None:
        if (found := self._ask(Ledger.chain_id)) != self.chain_id:
            raise ChainMismatch(f"the node serves chain {found}, not {self.chain_id}")

    def _require_block(self, number: int) -> Block:
        block = self.block(number)
        if block is None:
            raise ChainUnavailable(f"the node has lost block {number}")
        return block

    def _ask(self, question: Callable[[Ledger], T]) -> T:
        try:
            return question(self._node)
        except NodeDown as error:
            raise ChainUnavailable(str(error)) from error

    def heads(self) -> Heads:
        latest = self._ask(Ledger.height)
        final = self._finality.find_height(latest, tagged=None)
        return Heads(self._require_block(latest), self._require_block(final))

    def block(self, number: int) -> Block | None:
        found = self._ask(lambda node: node.block(number))
        return None if found is None else Block(*found)

    def transaction(self, hash: str) -> TransactionView | None:
        found = self._ask(lambda node: node.find(hash))
        if found is None or found.block is None:  # in the pool it has no block yet
            return found and TransactionView(hash, None, False, ())
        log = TransferLog(0, found.place, found.token, found.source, found.recipient, found.amount)
        logs = (log,) if found.succeeded and found.token else ()
        return TransactionView(hash, self._block_of(found), found.succeeded, logs)

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self.transaction(hash) for hash in hashes}

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        return tuple(
            ScannedTransfer(
                one.hash, self._block_of(one), one.place, one.token, one.source, one.recipient,
                one.amount,
            )
            for one in self._ask(lambda node: node.transfers(first, last))
            if one.token in tokens and (recipients is None or one.recipient in recipients)
        )  # fmt: skip

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        height = self.heads().final.number
        return FinalBalances(
            height,
            self._ask(lambda node: {it: node.balance(token_address, it, height) for it in holders}),
        )

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        raise UnsupportedByChain("wallets are not contracts here")

    def _block_of(self, found: Sighting) -> Block:
        return Block(found.block or 0, str(found.block_hash), found.block_time_ms)

    def derive(self, spec: AddressSpec) -> str:
        if spec.kind == "operator":  # the sender of the environment
            return self._signer.address(spec.environment_id)
        return contract_address(spec.environment_id, spec.kind, spec.owner_id)

    def find_payer(self, intent: TransferIntent) -> str:
        return intent.source.address

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        if intent.module is not None:
            raise UnsupportedByChain("there are no role modules here")
        return self._sign(
            self._signer, intent.environment_id, nonce, intent.source, intent.token_address,
            intent.recipient, intent.amount_atomic, intent.id,
        )  # fmt: skip

    def prepare_noop(
        self, environment_id: str, nonce: int, sender: str | None = None
    ) -> SignedTransaction:
        present = self._signer.address(environment_id)
        signer = find_signer(self._signer, environment_id, sender or present)
        nobody = Contract("operator", "operator", present)
        return self._sign(signer, environment_id, nonce, nobody, "", "", 0, "nothing")

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:
        return None

    def final_nonce(self, sender: str) -> int:
        final = self.heads().final.number
        return self._ask(lambda node: node.count_nonces(sender, final))

    def pending_nonce(self, sender: str) -> int:
        return self._ask(lambda node: node.count_nonces(sender, node.height()))

    def broadcast(self, signed: SignedTransaction) -> None:
        self._ask(lambda node: node.submit(signed.raw))

    def _sign(
        self, signer: OperatorSigner, environment_id: str, nonce: int, source: Contract,
        token: str, recipient: str, amount: int, id: str,
    ) -> SignedTransaction:  # fmt: skip
        call = json.dumps({
            "chain_id": self.chain_id, "environment_id": environment_id, "nonce": nonce,
            "source": [source.kind, source.owner_id], "token": token, "recipient": recipient,
            "amount": amount, "id": id,
        })  # fmt: skip
        signature = signer.sign(environment_id, hashlib.sha256(call.encode()).digest())
        raw = json.dumps({"call": call, "signature": signature.hex()}).encode()
        return SignedTransaction("0x" + hashlib.sha256(raw).hexdigest(), raw)


def open_chain(
    chain_id: int,
    urls: Sequence[str],
    *,
    signer: OperatorSigner | None,
    settings: Mapping[str, str],
    network: Network | None = None,
) -> LedgerChain:
    """What the service calls for `ledger+file:///path/ledger.db`. It asks no node."""
    if network is None or signer is None:
        raise ValueError("a ledger needs its network and a signer")
    if settings:
        raise ValueError(f"a ledger has no setting {min(settings)}")
    if len(urls) != 1 or not urls[0].startswith("file:///"):
        raise ValueError("the URL of a ledger is ledger+file:///path/ledger.db")
    return LedgerChain(Ledger(Path(urls[0].removeprefix("file://"))), network, signer)
