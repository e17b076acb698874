"""The balances of the books: by asset, and by account of the journal. Sums are exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from payments_core.networks import Asset
from payments_core.onramps.record import BOOK_ACCOUNTS
from payments_core.payments.journal.record import JOURNAL_ACCOUNTS

LEDGER_ACCOUNTS: tuple[str, ...] = tuple(dict.fromkeys((*JOURNAL_ACCOUNTS, *BOOK_ACCOUNTS)))
"""The accounts of Payments, then those that only bank transfers have."""

Place = tuple[Asset, str]
"""An asset, and an account of the journal."""


@attrs.frozen
class Turnover:
    """What an account had, what it gained and lost since, and what it has: atomic, of one asset."""

    opening: int = 0
    gained: int = 0
    lost: int = 0

    @property
    def closing(self) -> int:
        """The balance at the end: the opening one with all movements."""
        return self.opening + self.gained - self.lost

    def add(self, amount: int) -> Turnover:
        """With a movement, which is below zero if the account lost it."""
        if amount < 0:
            return Turnover(self.opening, self.gained, self.lost - amount)
        return Turnover(self.opening, self.gained + amount, self.lost)


class Balances:
    """Turnovers of all accounts. The closing balances of an asset always add up to zero."""

    def __init__(self, turnovers: Mapping[Place, Turnover] | None = None) -> None:
        self._turnovers = dict(turnovers or {})

    def post(self, asset: Asset, postings: Mapping[str, int]) -> None:
        """Add a movement."""
        for account, amount in postings.items():
            place = asset, account
            self._turnovers[place] = self._turnovers.get(place, Turnover()).add(amount)

    def carry(self) -> Balances:
        """The balances from which the next day begins: what is closed opens it."""
        return Balances(
            {
                place: Turnover(opening=one.closing)
                for place, one in self._turnovers.items()
                if one.closing
            }
        )

    def __iter__(self) -> Iterator[tuple[Asset, str, Turnover]]:
        """Each account that has or had something, in the order of assets and accounts."""
        for asset, account in sorted(self._turnovers, key=_order):
            yield asset, account, self._turnovers[asset, account]

    def __bool__(self) -> bool:
        return bool(self._turnovers)


def _order(place: Place) -> tuple[int, str, str, int]:
    asset, account = place
    return asset.chain_id, asset.symbol, asset.address, LEDGER_ACCOUNTS.index(account)
