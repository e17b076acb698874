"""What a sandbox may do to its chains: the port, and doors that no real chain has."""

from __future__ import annotations

from typing import Protocol

from payments_core.chains.port import Chain, Heads, TransactionView


class SandboxChain(Chain, Protocol):
    """A chain of a sandbox. Its doors raise as storage does (Unavailable, StorageError), or
    ChainUnavailable where a node stands behind them."""

    @property
    def faucet(self) -> str:
        """Where new tokens come from, as a transfer's sender."""

    @property
    def supports_fault_injection(self) -> bool:
        """Whether its calls fail when a sandbox orders them to."""

    def is_contract(self, address: str) -> bool:
        """Whether the address is a contract, which no stranger's transfer may start from."""

    def peek_heads(self) -> Heads:
        """The newest and the newest final block."""

    def peek_transaction(self, hash: str) -> TransactionView | None:
        """The transaction, or None where it is not in the chain."""

    def mine(self, count: int) -> Heads:
        """Add blocks at once."""

    def advance_time(self, seconds: float) -> None:
        """The sandbox's clock went forward by so much, and a real chain would have grown."""

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
        """A stranger's transfer, once for each `name`, in a block when it returns: not final.

        Without a `source` the tokens are new. Where the source lacks them, or with `reverts`, it
        fails on the chain. Answers the hash.
        """

    def mint(self, token_address: str, recipient: str, amount_atomic: int, name: str) -> str:
        """Credit new tokens, once for each `name`; final when it returns. Answers the hash."""

    def reorg(self, depth: int, reinclude: bool = False, name: str | None = None) -> Heads:
        """Replace the last `depth` blocks (1 to 50) by empty ones, once for each `name`.

        Their transactions leave the chain; with `reinclude` they come back in one block, at other
        places. The chain never gets lower.
        """
