"""Contract wallets: whether the contract at an address accepts a signature (ERC-1271, contract
§10).

A wallet names no chain, so every served EVM chain is asked. One yes is not enough: an attacker
with code at somebody's address on one chain can make it say yes to everything, and the
owner's contract on another chain must be asked too. This is I/O: it never runs in a
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from payments_core.accounts.wallet_signatures import ContractClaim
from payments_core.assets import CHAINS
from payments_core.chains.port import Chain, ChainUnavailable, UnsupportedByChain
from payments_core.clock import SECOND, Clock, Instant
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import DependencyFailed

MAX_CHECK_MS = 10 * SECOND
"""No chain is asked after this time; the chain that is being asked has its own time-outs."""


class ContractSignatureChecker:
    """Asks the chains whether a contract accepts a signature."""

    def __init__(self, chains: Mapping[int, Chain], clock: Clock, calls: RemoteCalls) -> None:
        self._chains = chains
        self._calls = calls
        self._clock = clock

    def is_accepted(self, claim: ContractClaim, environment_id: str) -> bool:
        """Whether a contract at the address accepts the signature, and none on any EVM chain
        refuses it.

        Only served chains count. Raises DependencyFailed if one of them did not answer
        before any said no.
        """
        return self._is_accepted(claim, environment_id, self._clock.real_now() + MAX_CHECK_MS)

    def find_accepted(
        self, chain_id: int, claims: Iterable[ContractClaim], environment_id: str
    ) -> ContractClaim | None:
        """The first claim that a contract on this chain accepts, and that none elsewhere refuses.

        Raises DependencyFailed if the chains did not answer in time.
        """
        until = self._clock.real_now() + MAX_CHECK_MS
        chain = self._chains.get(chain_id)
        if chain is None:  # served once, and no longer
            raise DependencyFailed("chain")
        for claim in claims:
            if self._check_on_chain(chain, claim, environment_id, until):
                return claim if self._is_accepted(claim, environment_id, until) else None
        return None

    def _is_accepted(self, claim: ContractClaim, environment_id: str, until: Instant) -> bool:
        accepted = False
        for chain in self._evm_chains():
            answer = self._check_on_chain(chain, claim, environment_id, until)
            if answer is False:
                return False  # whatever the other chains say
            accepted = accepted or answer is True
        return accepted

    def _evm_chains(self) -> Iterator[Chain]:
        """In the order of the registry; then the others, by their numbers."""
        order = {chain_id: place for place, chain_id in enumerate(CHAINS)}
        for chain_id in sorted(self._chains, key=lambda id: (order.get(id, len(order)), id)):
            if self._chains[chain_id].chain_type == "evm":
                yield self._chains[chain_id]

    def _check_on_chain(
        self, chain: Chain, claim: ContractClaim, environment_id: str, until: Instant
    ) -> bool | None:
        """One chain's answer; None if no contract exists there. Raises DependencyFailed."""
        if self._clock.real_now() >= until:
            silence = ChainUnavailable("the deadline passed before every chain answered")
            raise DependencyFailed("chain") from silence
        try:
            with self._calls.acquire("chain", environment_id):
                return chain.check_contract_signature(claim.address, claim.digest, claim.signature)
        except UnsupportedByChain:
            return None
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error
