"""The statuses of responses and filters, straight from the tables that step through them."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from msgspec import Meta

from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.engine.state_machine import StateMachine, describe_states
from payments_core.misdirected.lifecycle import SENDING_BACK
from payments_core.payments.funding.lifecycle import FUNDING_OPERATION
from payments_core.payments.options.lifecycle import OPTION, SELECTION
from payments_core.payments.payouts.lifecycle import PAYOUT
from payments_core.payments.queries import PaymentStatus as PaymentStatus
from payments_core.payments.receipts.lifecycle import RECEIPT
from payments_core.payments.refunding.reconciliation_rules import ReconciliationAction
from payments_core.payments.refunds.lifecycle import REFUND
from payments_core.payments.transitions import PAYMENT


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


PaymentLabel = Annotated[str, _labels(PAYMENT)]
PaymentResolution = Annotated[str, _decisions()]
ReceiptStatus = Annotated[str, describe_states(RECEIPT, "a receipt")]
SendingBackStatus = Annotated[str, describe_states(SENDING_BACK, "a return of misdirected funds")]
DepositStatus = Annotated[str, describe_states(DEPOSIT, "a deposit")]
PayoutStatus = Annotated[str, describe_states(PAYOUT, "a payout")]
RefundStatus = Annotated[str, describe_states(REFUND, "a refund")]
OptionStatus = Annotated[str, describe_states(OPTION, "an option")]
SelectionStatus = Annotated[str, describe_states(SELECTION, "a selection")]
FundingStatus = Annotated[str, describe_states(FUNDING_OPERATION, "a funding operation")]
