"""Reads of the chains to compare the books: many transactions, and many balances, at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from payments_core.books.chain_check import Views
from payments_core.books.payment_case import WantedTransfer
from payments_core.books.tally import Tally
from payments_core.chains.port import Chain, ChainUnavailable, TransactionView
from payments_core.networks import Asset

BATCH = 100
"""How many transactions one request asks for."""

_TRIES = 3
"""How often a chain is asked for transactions on which its nodes do not agree."""


@attrs.frozen
class SeenTransactions:
    """What the chains showed. Of a chain that is not `served`, nothing is known."""

    views: Views
    served: frozenset[int]


@attrs.frozen
class Escrow:
    """An address of ours that a Payment or a bank transfer has for its asset alone."""

    owner_id: str
    address: str
    asset: Asset


class ChainReader:
    """Asks the served chains. Its methods raise ChainUnavailable."""

    def __init__(self, chains: Mapping[int, Chain]) -> None:
        self._chains = chains

    def read_transactions(self, wanted: Iterable[WantedTransfer], tally: Tally) -> SeenTransactions:
        """The transactions of some transfers."""
        hashes: dict[int, set[str]] = {}
        for one in wanted:
            hashes.setdefault(one.chain_id, set()).add(one.hash)
        views: dict[tuple[int, str], TransactionView | None] = {}
        served = set()
        for chain_id, some in sorted(hashes.items()):
            if self._is_served(chain_id, len(some), tally):
                served.add(chain_id)
                answered = self._ask(chain_id, sorted(some))
                views.update({(chain_id, hash): view for hash, view in answered.items()})
        return SeenTransactions(views, frozenset(served))

    def read_balances(self, escrows: Iterable[Escrow], tally: Tally) -> dict[str, int]:
        """What each escrow holds of its asset at the newest final block, by its owner's id."""
        places: dict[tuple[int, str], list[Escrow]] = {}
        for escrow in escrows:
            place = escrow.asset.chain_id, escrow.asset.address
            places.setdefault(place, []).append(escrow)
        held: dict[str, int] = {}
        for (chain_id, token), some in sorted(places.items()):
            if self._is_served(chain_id, len(some), tally):
                found = self._chains[chain_id].balances(token, [one.address for one in some])
                held.update({one.owner_id: found.amounts[one.address] for one in some})
        return held

    def _is_served(self, chain_id: int, count: int, tally: Tally) -> bool:
        is_served = chain_id in self._chains
        if not is_served:
            tally.unchecked[f"chain {chain_id} is not served"] += count
        return is_served

    def _ask(self, chain_id: int, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        answered: dict[str, TransactionView | None] = {}
        for _ in range(_TRIES):
            missing = [hash for hash in hashes if hash not in answered]
            for first in range(0, len(missing), BATCH):
                some = missing[first : first + BATCH]
                answered.update(self._chains[chain_id].transactions(some))
        if len(answered) < len(hashes):
            raise ChainUnavailable(f"the nodes of chain {chain_id} do not agree on transactions")
        return answered
