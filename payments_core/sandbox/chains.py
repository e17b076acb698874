"""The sandbox's chains: the port, and controls that no real chain has."""

from __future__ import annotations

from typing import Protocol

from payments_core.addresses import AddressError, normalize_address
from payments_core.chains.port import Chain, Heads, NetworkKind, TransactionView
from payments_core.clock import Instant
from payments_core.errors import FieldError, ValidationFailed


class SandboxChain(Chain, Protocol):
    """A chain of a sandbox. Its controls raise the storage's errors (Unavailable, StorageError), or
    ChainUnavailable if they use a node."""

    @property
    def network_kind(self) -> NetworkKind:
        """Whether a wallet can be connected to it, and which."""

    @property
    def faucet(self) -> str:
        """The source of new tokens, as a transfer's sender."""

    @property
    def supports_fault_injection(self) -> bool:
        """Whether its calls fail when a sandbox orders them to."""

    def is_contract(self, address: str) -> bool:
        """Whether the address is a contract, which no stranger's transfer may start from."""

    def peek_heads(self) -> Heads:
        """The newest and the newest final block."""

    def peek_transaction(self, hash: str) -> TransactionView | None:
        """The transaction, or None if it is not in the chain."""

    def mine(self, count: int) -> Heads:
        """Add blocks at once."""

    def advance_time(self, before: Instant, now: Instant) -> None:
        """Add the blocks that a real chain would have made while the clock was advanced."""

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

        Without a `source` the tokens are new. If the source lacks them, or with `reverts`, it
        fails on the chain. Returns the hash.
        """

    def mint(self, token_address: str, recipient: str, amount_atomic: int, name: str) -> str:
        """Credit new tokens, once for each `name`; final when it returns. Returns the hash."""

    def reorg(self, depth: int, reinclude: bool = False, name: str | None = None) -> Heads:
        """Replace the last `depth` blocks (1 to 50) by empty ones, once for each `name`.

        Their transactions leave the chain; with `reinclude` they come back in one block, at other
        places. The chain never gets lower.
        """


def validate_addresses(
    chain: SandboxChain, recipient: str, source: str | None
) -> tuple[str, str | None]:
    """Both addresses in canonical form; the source must not be a contract.

    Raises ValidationFailed.
    """
    faults = []
    found = {}
    for path, address in (("to", recipient), ("from", source)):
        if address is None:
            continue
        try:
            found[path] = normalize_address(chain.chain_type, address)
        except AddressError as error:
            faults.append(FieldError(path, str(error)))
    if "from" in found and chain.is_contract(found["from"]):
        faults.append(
            FieldError("from", "must be an external wallet; the service controls this one")
        )
    if faults:
        raise ValidationFailed(tuple(faults))
    return found["to"], found.get("from")
