"""The results of the sandbox's operations."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.chains.port import Heads, TransactionView
from payments_core.chains.simulated.failure_records import ArmedFailure
from payments_core.clock import Instant


@attrs.frozen
class FaucetCredit:
    """A credit of the faucet, already final."""

    account_id: str
    chain_id: int
    asset_symbol: str
    amount: str
    amount_atomic: int
    address: str
    transaction_hash: str


@attrs.frozen
class OutsideTransfer:
    """A stranger's transfer as the chain reported it: in a block and not final.

    `transaction` is None if a reorg has dropped it meanwhile.
    """

    chain_id: int
    asset_symbol: str
    amount: str
    amount_atomic: int
    sender: str
    recipient: str
    transaction_hash: str
    transaction: TransactionView | None


@attrs.frozen(kw_only=True)
class SandboxState:
    """The sandbox's time and the real one, its chains' heads by their number, and which calls fail
    next."""

    now: Instant
    real_now: Instant
    heads: Mapping[int, Heads]
    failures: tuple[ArmedFailure, ...]
