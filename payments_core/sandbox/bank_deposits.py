"""The sandbox's bank control: simulated transfers to an on-ramp bank account."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from payments_core.banks.incoming import IncomingRail, IncomingTransfer
from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.banks.simulated.arrivals import ArrivalOutcome, NewArrival
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.engine.ports import Ports
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    ValidationFailed,
)
from payments_core.onramps.record import OnrampAccount

_DOLLARS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,2}))?", re.ASCII)


class BankDeposits:
    """Lets transfers arrive at the simulated bank. Unavailable with another bank."""

    def __init__(
        self, ports: Ports, bank: SimulatedFundingBank | None, wake: Callable[[], None]
    ) -> None:
        """`wake` is called when something has happened at the bank."""
        self._storage = ports.storage
        self._bank = bank
        self._wake = wake

    def deposit(
        self,
        partition: str,
        onramp_account_id: str,
        amount: str,
        rail: IncomingRail,
        outcome: ArrivalOutcome,
        name: str,
    ) -> IncomingTransfer:
        """A transfer that is sent now, once for each `name`, and arrives by its rail's calendar.

        Raises NotFound, ValidationFailed, InvalidState until the bank has made the number,
        CapabilityNotActive if the sandbox has another bank, and DependencyFailed.
        """
        if self._bank is None:
            raise CapabilityNotActive("us_bank_funding")
        amount_cents = _parse_dollars(amount)
        onramp = self._storage.read(
            partition, lambda snapshot: snapshot.get(OnrampAccount, onramp_account_id)
        )
        if onramp is None:
            raise NotFound("on-ramp bank account")
        if onramp.instructions is None:
            raise InvalidState("on-ramp bank account", onramp.status, "send money to it")
        arrival = NewArrival(
            id=f"incoming_{hashlib.sha256(name.encode()).hexdigest()[:24]}",
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
        return made


def _parse_dollars(amount: str) -> int:
    """The cents of an amount in dollars. Raises ValidationFailed."""
    found = _DOLLARS.fullmatch(amount)
    cents = 0 if found is None else int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))
    if not cents:
        raise ValidationFailed.at("amount", "must be dollars greater than zero, such as 100.00")
    return cents
