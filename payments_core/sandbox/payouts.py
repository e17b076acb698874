"""Payouts at the simulated bank: settled or returned early at an integrator's request."""

from __future__ import annotations

from typing import Literal

from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.banks.return_codes import RETURN_CODES
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.engine.ports import Ports
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    ResourceConflict,
    ValidationFailed,
)
from payments_core.payments.payouts.jobs import PayoutJobs
from payments_core.payments.record import Payment

PayoutOutcome = Literal["settle", "return"]

DEFAULT_RETURN_CODE = "R03"
"""No account, or unable to locate the account: the most frequent reason of returned payouts."""


class SandboxPayouts:
    """The payouts of one sandbox. Unavailable with another bank."""

    def __init__(self, ports: Ports, bank: SimulatedBank | None) -> None:
        self._storage = ports.storage
        self._bank = bank
        self._jobs = PayoutJobs(ports, {} if bank is None else {"sandbox": bank})

    def decide(
        self, partition: str, payment_id: str, outcome: PayoutOutcome, code: str | None
    ) -> Payment:
        """Let the bank settle or return the Payment's payout now, and check it.

        A return has by default the `code` R03. Raises NotFound, InvalidState if the bank has
        no payout of this Payment, ValidationFailed, ResourceConflict if the rails do not
        allow it, CapabilityNotActive without the simulated bank, DependencyFailed.
        """
        if self._bank is None:
            raise CapabilityNotActive("the simulated bank")
        if code is not None and (outcome == "settle" or code not in RETURN_CODES):
            known = f"is for a return, and one of R01 to R{len(RETURN_CODES):02d}"
            raise ValidationFailed.at("code", known)
        payment = self._load(partition, payment_id)
        payout = payment.payout
        if payout is None:
            raise InvalidState("payment", payment.status, outcome)
        if payout.status not in ("submitted", "settled", "returned"):
            raise InvalidState("payout", payout.status, outcome)
        try:
            if outcome == "settle":
                self._bank.settle_payout(payout.key)
            else:
                self._bank.return_payout(payout.key, code or DEFAULT_RETURN_CODE)
            self._jobs.look_at_payout("sandbox", payout.key)
        except BankRefused as refusal:
            raise ResourceConflict(f"The bank refuses: {refusal}.") from refusal
        except BankUnavailable as error:
            raise DependencyFailed("bank") from error
        return self._load(partition, payment_id)

    def _load(self, partition: str, payment_id: str) -> Payment:
        payment = self._storage.read(partition, lambda snapshot: snapshot.get(Payment, payment_id))
        if payment is None:
            raise NotFound("payment")
        return payment
