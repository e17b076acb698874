"""Contract wallets: what the contract at an address says of a signature (ERC-1271, contract §10).

A wallet names no chain, so every EVM chain that is served may be asked. This is I/O: it never
stands in a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from payments_core.accounts.wallet_signatures import ContractClaim
from payments_core.assets import CHAINS
from payments_core.chains.port import Chain, ChainUnavailable, Unsupported
from payments_core.clock import SECOND, Clock
from payments_core.errors import DependencyFailed

LONGEST_MS = 10 * SECOND
"""After so long no further chain is asked; the one that is being asked has time-outs of its own."""


class ContractWallets:
    """Asks the chains whether a contract accepts a signature."""

    def __init__(self, chains: Mapping[int, Chain], clock: Clock) -> None:
        self._chains = chains
        self._clock = clock

    def accept(self, claim: ContractClaim) -> bool:
        """Whether a contract at the address accepts the signature, on any EVM chain that is served.

        Raises DependencyFailed where none says yes and one of them did not answer.
        """
        until = self._clock.real() + LONGEST_MS
        silent: ChainUnavailable | None = None
        for chain in self._evm_chains():
            if self._clock.real() >= until:
                silent = ChainUnavailable("no time was left to ask every chain")
                break
            try:
                if chain.check_contract_signature(claim.address, claim.digest, claim.signature):
                    return True
            except ChainUnavailable as error:
                silent = error  # another chain may still say yes
            except Unsupported:
                continue
        if silent is not None:
            raise DependencyFailed("chain") from silent
        return False

    def _evm_chains(self) -> Iterator[Chain]:
        """In the order of the registry; then those that are not in it, by their numbers."""
        order = {chain_id: place for place, chain_id in enumerate(CHAINS)}
        for chain_id in sorted(self._chains, key=lambda id: (order.get(id, len(order)), id)):
            if self._chains[chain_id].chain_type == "evm":
                yield self._chains[chain_id]
