"""Deposit addresses: where to create one, and which chain to check."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from payments_core.deposits.operations import DepositStatus
from payments_core.validation.fields import Address, ChainId
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import PageQuery


@frozen_body
class IssueAddress:
    """The chain on which the account is to have a deposit address."""

    chainId: ChainId


@frozen_body
class CheckDeposits:
    """The chain to check; without one, all of them.

    Null is refused, since it may be a value that was lost.
    """

    chainId: ChainId | UnsetType = UNSET


@frozen_body
class ReturnDeposit:
    """Where a deposit goes back to; without a destination, to its sender.

    A null `destination` is refused: it may be a value that was lost.
    """

    destination: Address | UnsetType = UNSET
    """The address that gets it, in place of the sender."""


@frozen_body
class DepositsQuery(PageQuery):
    """All deposits, or those with a status."""

    status: DepositStatus | None = None
    """Only those with this status."""
