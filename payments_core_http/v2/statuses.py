"""The statuses of answers and filters, straight from the tables that step through them."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from msgspec import Meta

from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.engine.state_machine import StateMachine
from payments_core.misdirected.lifecycle import SENDING_BACK
from payments_core.payments.funding.lifecycle import FUNDING_OPERATION
from payments_core.payments.machine import PAYMENT
from payments_core.payments.options.lifecycle import OPTION, SELECTION
from payments_core.payments.payouts.lifecycle import PAYOUT
from payments_core.payments.receipts.lifecycle import RECEIPT
from payments_core.payments.refunds.lifecycle import REFUND
from payments_core.payments.refunds.reconciliation_rules import ReconciliationAction


def _states(machine: StateMachine, noun: str) -> Meta:
    extra = {"fault": f"is not a status of {noun}", "rule": f"a status of {noun}"}
    return Meta(extra={"values": tuple(sorted(machine.states)), **extra})


def _labels(machine: StateMachine) -> Meta:
    labels: set[Any] = {row.label for row in machine.transitions if row.label is not None}
    return Meta(extra={"values": tuple(sorted(labels)), "fault": "is not a label of a Payment"})


def _decisions() -> Meta:
    return Meta(
        extra={
            "values": get_args(ReconciliationAction),
            "fault": "is not a decision about a Payment",
        }
    )


PaymentStatus = Annotated[str, _states(PAYMENT, "a Payment")]
PaymentLabel = Annotated[str, _labels(PAYMENT)]
PaymentResolution = Annotated[str, _decisions()]
ReceiptStatus = Annotated[str, _states(RECEIPT, "a receipt")]
SendingBackStatus = Annotated[str, _states(SENDING_BACK, "a return of misdirected funds")]
DepositStatus = Annotated[str, _states(DEPOSIT, "a deposit")]
PayoutStatus = Annotated[str, _states(PAYOUT, "a payout")]
RefundStatus = Annotated[str, _states(REFUND, "a refund")]
OptionStatus = Annotated[str, _states(OPTION, "an option")]
SelectionStatus = Annotated[str, _states(SELECTION, "a selection")]
FundingStatus = Annotated[str, _states(FUNDING_OPERATION, "a funding operation")]
