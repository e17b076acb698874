"""The sandbox's bank control: simulated transfers to an on-ramp bank account."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from payments_core.banks.incoming import IncomingRail, IncomingTransfer
from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.banks.simulated.arrivals import ArrivalOutcome, NewArrival
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.ports import Ports
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    ValidationFailed,
)
from payments_core.onramps.record import OnrampAccount
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key

_DOLLARS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,2}))?", re.ASCII)


class BankDeposits:
    """Lets transfers arrive at the simulated bank."""

    def __init__(
        self,
        ports: Ports,
        bank: SimulatedFundingBank | None,
        wake: Callable[[], None],
        *,
        require_new_key: Callable[[Authority, IdempotencyKey], None],
        operation_id: Callable[[str, IdempotencyKey], str],
    ) -> None:
        """`wake` is called when something has happened at the bank. `require_new_key` admits only
        the sandbox's app, `operation_id` names an operation that happens once per idempotency
        key."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._bank = bank
        self._wake = wake
        self._require_new_key = require_new_key
        self._operation_id = operation_id

    @once_per_key
    def deposit(
        self,
        authority: Authority,
        onramp_account_id: str,
        amount: str,
        rail: IncomingRail,
        *,
        outcome: ArrivalOutcome = "receive",
        idempotency_key: IdempotencyKey = None,
    ) -> IncomingTransfer:
        """A transfer that is sent now, and arrives by its rail's calendar.

        `amount` is in dollars, with at most two decimals. Raises NotFound, ValidationFailed,
        InvalidState until the bank has made the number, CapabilityNotActive if the sandbox has
        another bank, and DependencyFailed.
        """
        self._require_new_key(authority, idempotency_key)
        if self._bank is None:
            raise CapabilityNotActive("us_bank_funding")
        amount_cents = _parse_dollars(amount)
        onramp = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(OnrampAccount, onramp_account_id)
        )
        if onramp is None:
            raise NotFound("on-ramp bank account")
        if onramp.instructions is None:
            raise InvalidState("on-ramp bank account", onramp.status, "send money to it")
        arrival = NewArrival(
            id=_incoming_id(self._operation_id("incoming", idempotency_key)),
            account_key=onramp.bank_key,
            rail=rail,
            amount_cents=amount_cents,
            outcome=outcome,
        )
        try:
            made = self._bank.receive(arrival)
        except BankRefused as error:
            raise ValidationFailed.at("amount", str(error)) from error
        except BankUnavailable as error:
            raise DependencyFailed("bank") from error
        self._wake()
        if idempotency_key is None:
            return made
        return self._committer.commit(
            authority, lambda tx, id_sequence: Decision(made), idempotent=idempotency_key
        )


def _incoming_id(name: str) -> str:
    return f"incoming_{hashlib.sha256(name.encode()).hexdigest()[:24]}"


def _parse_dollars(amount: str) -> int:
    """The cents of an amount in dollars. Raises ValidationFailed."""
    found = _DOLLARS.fullmatch(amount)
    cents = 0 if found is None else int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))
    if not cents:
        raise ValidationFailed.at("amount", "must be dollars greater than zero, such as 100.00")
    return cents
