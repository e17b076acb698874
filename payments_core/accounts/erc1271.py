"""Contract wallets: whether the contract at an address accepts a signature (ERC-1271, contract
§10).

A contract's answer counts on its own chain alone. Real wallets bind what they accept to a chain, so
no signature can be accepted on two; and another chain may have somebody else's code at the same
address, whose yes must not speak for the owner, and whose no must not silence the owner. This is
I/O: it never runs in a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from payments_core.accounts.wallet_signatures import ContractClaim
from payments_core.chains.port import Chain, ChainUnavailable, UnsupportedByChain
from payments_core.clock import SECOND, Instant
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import DependencyFailed

MAX_CHECK_MS = 10 * SECOND
"""No chain is asked after this time; the chain that is being asked has its own time-outs."""


class ContractSignatureChecker:
    """Asks the chains whether a contract accepts a signature."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], calls: RemoteCalls) -> None:
        self._networks = ports.networks
        self._chains = chains
        self._calls = calls
        self._clock = ports.clock

    def find_accepting_chains(
        self, claim: ContractClaim, environment_id: str, chain_id: int | None = None
    ) -> tuple[int, ...]:
        """The served EVM chains whose contract accepts the signature; only `chain_id` if given.

        Raises DependencyFailed if none accepts it, and one of them did not answer in time.
        """
        until = self._clock.real_now() + MAX_CHECK_MS
        accepting: list[int] = []
        silence: DependencyFailed | None = None
        for chain in self._evm_chains() if chain_id is None else [self._require(chain_id)]:
            try:
                if self._is_accepted_on(chain, claim, environment_id, until):
                    accepting.append(chain.chain_id)
            except DependencyFailed as error:
                silence = silence or error
        if silence is not None and not accepting:
            raise silence
        return tuple(accepting)

    def find_accepted(
        self, chain_id: int, claims: Iterable[ContractClaim], environment_id: str
    ) -> ContractClaim | None:
        """The first claim that a contract on this chain accepts.

        Raises DependencyFailed if the chain did not answer in time.
        """
        until = self._clock.real_now() + MAX_CHECK_MS
        chain = self._require(chain_id)
        for claim in claims:
            if self._is_accepted_on(chain, claim, environment_id, until):
                return claim
        return None

    def _require(self, chain_id: int) -> Chain:
        chain = self._chains.get(chain_id)
        if chain is None:  # served once, and no longer
            raise DependencyFailed("chain")
        return chain

    def _evm_chains(self) -> Iterator[Chain]:
        """In the order of the registry; then the others, by their numbers."""
        order = {chain_id: place for place, chain_id in enumerate(self._networks)}
        for chain_id in sorted(self._chains, key=lambda id: (order.get(id, len(order)), id)):
            if self._chains[chain_id].chain_type == "evm":
                yield self._chains[chain_id]

    def _is_accepted_on(
        self, chain: Chain, claim: ContractClaim, environment_id: str, until: Instant
    ) -> bool:
        """Whether the contract on a chain accepts, if there is one. Raises DependencyFailed."""
        if self._clock.real_now() >= until:
            silence = ChainUnavailable("the deadline passed before every chain answered")
            raise DependencyFailed("chain") from silence
        try:
            with self._calls.acquire("chain", environment_id):
                answer = chain.check_contract_signature(
                    claim.address, claim.digest, claim.signature
                )
        except UnsupportedByChain:
            return False
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error
        return answer is True
