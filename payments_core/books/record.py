"""Closed days as they are stored: what each account had, gained, lost and has, by asset."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.books.balances import Balances, Turnover
from payments_core.clock import Instant
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset
from payments_core.storage.records import Collection, Index, Record

CLOSING_ID = "closing"


@attrs.frozen(kw_only=True)
class DayTurnover:
    """What one account of the journal had at the beginning of a day, gained and lost."""

    chain_id: int
    asset_symbol: str
    token_address: str
    decimals: int
    account: str
    opening_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    gained_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    lost_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)

    @property
    def asset(self) -> Asset:
        """The asset of the amounts."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)


@attrs.frozen(kw_only=True, slots=False)
class ClosedDay(Record):
    """A day on which something moved; the id is its ISO date. It never changes.

    Days without a movement have no row: they have the balances with which the day before ended.
    """

    collection: ClassVar[Collection] = Collection(
        "closed_days",
        columns={"day": str},
        indexes=(
            Index("by_day", order=("day",)),
            Index("newest", order=("day",), descending=True),
        ),
    )

    turnovers: tuple[DayTurnover, ...]

    @property
    def day(self) -> str:
        """The ISO date."""
        return self.id

    @property
    def balances(self) -> Balances:
        """Its turnovers, to be continued."""
        return unpack(self.turnovers)


@attrs.frozen(kw_only=True, slots=False)
class Closing(Record):
    """How far an environment's days are closed: one row in its partition.

    Every day before `closed_until` is closed. Of later movements those up to the place `after_ms`,
    `after_id` are added up in `turnovers`, on top of what the day before them ended with; `day` is
    the day of the last one.
    """

    collection: ClassVar[Collection] = Collection("closings")

    closed_until: str
    after_ms: Instant = 0
    after_id: str = ""
    day: str | None = None
    turnovers: tuple[DayTurnover, ...] = ()


def pack(balances: Balances) -> tuple[DayTurnover, ...]:
    """Balances as they are stored."""
    return tuple(
        DayTurnover(
            chain_id=asset.chain_id,
            asset_symbol=asset.symbol,
            token_address=asset.address,
            decimals=asset.decimals,
            account=account,
            opening_atomic=Atomic(one.opening),
            gained_atomic=Atomic(one.gained),
            lost_atomic=Atomic(one.lost),
        )
        for asset, account, one in balances
    )


def unpack(turnovers: tuple[DayTurnover, ...]) -> Balances:
    """The balances of stored turnovers."""
    return Balances(
        {
            (one.asset, one.account): Turnover(
                one.opening_atomic, one.gained_atomic, one.lost_atomic
            )
            for one in turnovers
        }
    )
