"""Deposit addresses: where one is wanted, and what is looked at."""

from __future__ import annotations

import attrs

from payments_core.deposits.operations import DepositStatus
from payments_core.validation.fields import ChainId
from payments_core_http.wire.query import PageQuery


@attrs.frozen(kw_only=True)
class IssueAddress:
    """The chain that the account shall have a deposit address on."""

    chainId: ChainId


@attrs.frozen(kw_only=True)
class CheckDeposits:
    """The chain to look at; without one, all of them."""

    chainId: ChainId | None = None


@attrs.frozen(kw_only=True)
class DepositsQuery(PageQuery):
    """Deposits, all or those of a status."""

    status: DepositStatus | None = None
