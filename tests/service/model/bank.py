"""The bank of the model: its own side, and the line by which a process reaches it.

The simulated bank keeps its books in the same storage, on the chains' clock. What a real bank does
and the simulated one does not is added here: it refuses a payout, and lists old notices again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from payments_core.accounts.bank_accounts.fields import NewBankAccount, NewPostalAddress
from payments_core.banks.incoming import (
    Delivery,
    DeliveryOrder,
    IncomingNotice,
    IncomingTransfer,
    NoticePage,
    VirtualAccount,
    VirtualAccountRequest,
)
from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import (
    MAX_NOTICES,
    AccountRegistration,
    BankNotice,
    BankRefused,
    BankUnavailable,
    CapabilityRequest,
    PayoutOrder,
)
from payments_core.banks.reviews import BankReview
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import HOUR
from payments_core.engine.ports import Ports
from payments_core.sandbox.banks import ordered_bank_failures
from tests.service.model.mirror import Gate

NEW_ACCOUNT = NewBankAccount(
    currency="usd",
    country="US",
    account_holder_name="Ada Lovelace",
    account_holder_type="individual",
    account_number="73910264851",
    routing_number="021000021",
    account_type="checking",
    address=NewPostalAddress(
        line1="1 Main St", city="New York", state="NY", postal_code="10001", country="US"
    ),
)
ACCOUNT_NUMBERS = ("73910264851", "99900002", "99900010")
"""An ordinary account, and two whose payouts come back: with R02 soon, with R10 after weeks."""


class ModelBank:
    """The bank's own side; `payouts` and `incoming` control it, and no failure touches them."""

    def __init__(self, ports: Ports, chains: Mapping[int, SimulatedChain]) -> None:
        def send_tokens(order: DeliveryOrder) -> str:
            chain = chains[order.chain_id]
            name = f"bank/{order.key}"
            to, amount = order.address, order.amount_atomic
            return chain.transfer(order.token_address, None, to, amount, name)

        fails = ordered_bank_failures(ports)
        self.payouts = SimulatedBank(ports)
        self.incoming = SimulatedFundingBank(ports, send_tokens)
        self.failing_payouts = SimulatedBank(ports, fails)
        self.failing_incoming = SimulatedFundingBank(ports, send_tokens, fails)
        self.refusals_left = 0
        self.refused_keys: set[str] = set()
        self.given_payout_notices: dict[str, BankNotice] = {}
        self.given_incoming_notices: dict[str, IncomingNotice] = {}
        self.again: list[BankNotice | IncomingNotice] = []
        """Old notices that are listed once more."""

    def submit(self, order: PayoutOrder) -> BankPayout:
        """As the simulated bank, unless the payout is among those that the bank refuses."""
        if self.refusals_left and self.payouts.find_payout(order.key) is None:
            self.refusals_left -= 1
            self.refused_keys.add(order.key)
        if order.key in self.refused_keys:
            raise BankRefused("account_frozen", "the bank does not pay this")
        return self.failing_payouts.submit(order)

    def list_notices(self, limit: int) -> Sequence[BankNotice]:
        """The bank's notices, and old ones again."""
        notices = self.failing_payouts.list_notices(limit)
        self.given_payout_notices.update({notice.id: notice for notice in notices})
        return [*notices, *self._take_again(BankNotice)]

    def list_incoming_notices(self, limit: int, after: str | None) -> NoticePage:
        """The bank's notices, and old ones again."""
        page = self.failing_incoming.list_incoming_notices(limit, after)
        self.given_incoming_notices.update({notice.id: notice for notice in page.notices})
        return attrs.evolve(page, notices=[*self._take_again(IncomingNotice), *page.notices])

    def _take_again(self, kind: type[Any]) -> list[Any]:
        taken = [notice for notice in self.again if isinstance(notice, kind)]
        self.again = [notice for notice in self.again if not isinstance(notice, kind)]
        return taken


class BankLine:
    """The bank as one process reaches it: a crash can come between any two calls."""

    max_notice_pause_ms = 1 * HOUR

    def __init__(self, bank: ModelBank, gate: Gate) -> None:
        self._bank = bank
        self._gate = gate

    def request_capability(self, request: CapabilityRequest) -> BankReview:
        return self._through(lambda: self._bank.failing_payouts.request_capability(request))

    def find_capability(self, key: str) -> BankReview | None:
        return self._through(lambda: self._bank.failing_payouts.find_capability(key))

    def register_account(self, registration: AccountRegistration) -> BankReview:
        return self._through(lambda: self._bank.failing_payouts.register_account(registration))

    def find_account(self, key: str) -> BankReview | None:
        return self._through(lambda: self._bank.failing_payouts.find_account(key))

    def submit(self, order: PayoutOrder) -> BankPayout:
        return self._through(lambda: self._bank.submit(order))

    def find_payout(self, key: str) -> BankPayout | None:
        return self._through(lambda: self._bank.failing_payouts.find_payout(key))

    def list_notices(self, limit: int = MAX_NOTICES) -> Sequence[BankNotice]:
        return self._through(lambda: self._bank.list_notices(limit))

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """Of both kinds of notices, each of which ignores the ids of the other."""
        self._through(lambda: self._bank.failing_payouts.acknowledge(notice_ids))
        self._through(lambda: self._bank.failing_incoming.acknowledge(notice_ids))

    def open_virtual_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        return self._through(lambda: self._bank.failing_incoming.open_virtual_account(request))

    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        return self._through(lambda: self._bank.failing_incoming.find_incoming(incoming_id))

    def return_incoming(self, incoming_id: str, reason: str) -> IncomingTransfer:
        return self._through(
            lambda: self._bank.failing_incoming.return_incoming(incoming_id, reason)
        )

    def deliver(self, order: DeliveryOrder) -> Delivery:
        return self._through(lambda: self._bank.failing_incoming.deliver(order))

    def list_incoming_notices(
        self, limit: int = MAX_NOTICES, after: str | None = None
    ) -> NoticePage:
        return self._through(lambda: self._bank.list_incoming_notices(limit, after))

    def _through(self, call: Callable[[], Any]) -> Any:
        return self._gate.through(call, "bank")


def bank_away(call: Callable[[], Any]) -> Any:
    """The bank is out of reach for one call."""
    raise BankUnavailable("for the moment")


def bank_answer_lost(call: Callable[[], Any]) -> Any:
    """What was asked happens, and nobody hears of it."""
    call()
    raise BankUnavailable("the line is dead")
