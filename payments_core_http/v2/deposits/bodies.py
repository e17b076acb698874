"""Deposit addresses: where one is wanted, and what is looked at."""

from __future__ import annotations

from payments_core.deposits.operations import DepositStatus
from payments_core.validation.fields import ChainId
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import PageQuery


@frozen_body
class IssueAddress:
    """The chain that the account shall have a deposit address on."""

    chainId: ChainId


@frozen_body
class CheckDeposits:
    """The chain to look at; without one, all of them."""

    chainId: ChainId | None = None


@frozen_body
class DepositsQuery(PageQuery):
    """Deposits, all or those of a status."""

    status: DepositStatus | None = None
