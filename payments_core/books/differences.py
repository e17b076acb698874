"""The differences that a comparison of the books can name, as a table of their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from payments_core.networks import Asset

DifferenceKind = Literal[
    "journal_missing",
    "journal_short",
    "journal_over",
    "chain_missing",
    "chain_extra",
    "chain_amount",
    "bank_missing",
    "bank_extra",
    "bank_amount",
]

MEANINGS: Mapping[DifferenceKind, str] = {
    "journal_missing": "Something was verified or finished, and the journal has no entry of it.",
    "journal_short": "The journal has less than what was verified or finished.",
    "journal_over": "The journal has more than what was verified or finished.",
    "chain_missing": "The journal has a transfer, or funds, that the chain does not have.",
    "chain_extra": "The chain has a transfer, or funds, at our address that no entry has.",
    "chain_amount": "The chain has the transfer, of another amount.",
    "bank_missing": "The journal has money at the bank that the bank does not know.",
    "bank_extra": "The bank has a payout or a transfer that the journal does not have.",
    "bank_amount": "The bank has the payout or the transfer, of another amount.",
}
"""What each kind means; the first word of a kind says who is wrong, compared with the others."""


@attrs.frozen(kw_only=True)
class Difference:
    """One thing on which journal, chain and bank disagree.

    `resource_id` is the Payment or the bank transfer, and `subject` what differs there: an entry, a
    receipt, a transaction, an address or a payout. `expected` and `found` are integers of the
    smallest unit of `symbol`, of which `decimals` make a whole; `found` is that of the side that
    the kind names.
    """

    kind: DifferenceKind
    resource_id: str
    subject: str
    symbol: str
    decimals: int
    expected: int
    found: int
    detail: str


@attrs.frozen
class Currency:
    """A currency in which a bank counts: its symbol, and how many decimals make a whole."""

    symbol: str
    decimals: int


DOLLARS = Currency("USD", 2)


def differ(
    kind: DifferenceKind,
    resource_id: str,
    subject: str,
    unit: Asset | Currency,
    expected: int,
    found: int,
    detail: str,
) -> Difference:
    """A difference in an asset, or in US cents."""
    return Difference(
        kind=kind,
        resource_id=resource_id,
        subject=subject,
        symbol=unit.symbol,
        decimals=unit.decimals,
        expected=expected,
        found=found,
        detail=detail,
    )


def differ_without_owner(owner_id: str, entry_id: str, postings: Mapping[str, int]) -> Difference:
    """An entry whose Payment or bank transfer is gone, and with it the asset: atomic, of none."""
    return Difference(
        kind="journal_over",
        resource_id=owner_id,
        subject=entry_id,
        symbol="",
        decimals=0,
        expected=0,
        found=sum(amount for amount in postings.values() if amount > 0),
        detail="the journal has an entry of what is not stored any more",
    )
