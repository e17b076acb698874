"""Every status of a record is one of the four that the legacy interface has."""

from __future__ import annotations

from typing import get_args

import pytest

from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.deposits.record import Deposit
from payments_core.engine.state_machine import StateMachine
from payments_core.legacy.transactions.translation import (
    PREFIXES,
    STATUSES,
    TYPES,
    Origin,
    TransactionStatus,
    TransactionType,
)
from payments_core.payments.funding.lifecycle import FUNDING_OPERATION
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.record import Payment
from payments_core.payments.refunds.lifecycle import REFUND
from payments_core.payments.refunds.record import Refund
from payments_core.payments.transitions import PAYMENT

MACHINES: dict[type[Origin], StateMachine] = {
    Payment: PAYMENT,
    Deposit: DEPOSIT,
    FundingOperation: FUNDING_OPERATION,
    Refund: REFUND,
}
NO_TRANSACTION = {"awaiting_authorization"}


@pytest.mark.parametrize("kind", MACHINES, ids=lambda kind: kind.__name__)
def test_every_status_has_its_row(kind: type[Origin]) -> None:
    assert STATUSES[kind].keys() == set(MACHINES[kind].states) - NO_TRANSACTION
    assert set(STATUSES[kind].values()) <= set(get_args(TransactionStatus))
    assert set(TYPES[kind]) <= set(get_args(TransactionType))


def test_every_kind_is_found_by_its_own_prefix() -> None:
    assert set(PREFIXES.values()) == MACHINES.keys() == TYPES.keys() == STATUSES.keys()


def test_every_type_has_a_kind_of_record() -> None:
    assert {type for types in TYPES.values() for type in types} == set(get_args(TransactionType))
