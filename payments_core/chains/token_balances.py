"""Balances of several tokens at once, of any chain.

An adapter that can answer them in one request to a node has `token_balances`; of any other chain,
each token is read separately. So a request for an account's balances costs a node the minimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from payments_core.chains.port import Chain, FinalBalances


@runtime_checkable
class ReadsTokenBalances(Protocol):
    """An optional method of a chain adapter."""

    def token_balances(
        self, token_addresses: Sequence[str], holders: Sequence[str]
    ) -> Mapping[str, FinalBalances]:
        """As `Chain.balances`, of several tokens, all of them at one final height.

        That height may be a second old, so that requests can share its query: this is for
        display. Decisions about money use `Chain.balances`. Raises ChainUnavailable.
        """


def read_token_balances(
    chain: Chain, token_addresses: Sequence[str], holders: Sequence[str]
) -> Mapping[str, FinalBalances]:
    """The balances of each token: in one request if the chain supports it, else one by one.

    Then they may be of several heights. Raises ChainUnavailable.
    """
    if not token_addresses:
        return {}
    if isinstance(chain, ReadsTokenBalances):
        return chain.token_balances(token_addresses, holders)
    return {token: chain.balances(token, holders) for token in token_addresses}
