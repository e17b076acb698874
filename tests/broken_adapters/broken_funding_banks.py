"""Banks that each break one promise of the port of incoming transfers, made out of a sound one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs

from payments_core.banks.incoming import (
    Delivery,
    DeliveryOrder,
    IncomingNotice,
    IncomingTransfer,
    NoticePage,
    VirtualAccount,
    VirtualAccountRequest,
)
from payments_core.banks.port import MAX_NOTICES, BankRefused, BankUnavailable, KeyReused

NOW = 1_790_000_000_000


class FundingBooks:
    """What the bank keeps for all who open it."""

    def __init__(self) -> None:
        self.requests: dict[str, VirtualAccountRequest] = {}
        self.accounts: dict[str, VirtualAccount] = {}
        self.incoming: dict[str, IncomingTransfer] = {}
        self.orders: dict[str, DeliveryOrder] = {}
        self.delivered: list[str] = []
        self.notices: dict[str, IncomingNotice] = {}
        self.numbers = itertools.count(100_000_000_001)
        self.loses_answer = False
        self.down = False


class Plain:
    """Sound, in memory."""

    max_notice_pause_ms = 60_000

    def __init__(self, books: FundingBooks) -> None:
        self.books = books

    def open_virtual_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        self._require_up()
        known = self.books.requests.setdefault(request.key, request)
        self._require_same(known, request)
        if request.key not in self.books.accounts:
            self.books.accounts[request.key] = self._make_account(request)
        return self.books.accounts[request.key]

    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        self._require_up()
        return self.books.incoming.get(incoming_id)

    def return_incoming(self, incoming_id: str, reason: str) -> IncomingTransfer:
        self._require_up()
        known = self._require_known(incoming_id)
        if known.status != "returned":
            if self._is_delivered(incoming_id):
                raise BankRefused("delivered", "it was delivered")
            self._change(attrs.evolve(known, status="returned", reason=reason))
        return self.books.incoming[incoming_id]

    def deliver(self, order: DeliveryOrder) -> Delivery:
        self._require_up()
        known = self.books.orders.get(order.key)
        if known is None:
            self._require_deliverable(order)
            self.books.orders[order.key] = order
            self.books.delivered.append(order.incoming_id)
        else:
            self._require_same(known, order)
        if self.books.loses_answer:
            self.books.loses_answer = False
            self._lose_answer(order)
        return Delivery(key=order.key, status="delivered")

    def list_incoming_notices(
        self, limit: int = MAX_NOTICES, after: str | None = None
    ) -> NoticePage:
        self._require_up()
        start = int(after or 0)
        notices = list(self.books.notices.values())
        end = start + limit
        return NoticePage(notices=notices[start:end], next=str(end) if end < len(notices) else None)

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self._require_up()
        for id in notice_ids:
            self.books.notices.pop(id, None)

    # The hooks of the suite.

    def send(self, account_key: str, amount_cents: int) -> str:
        id = f"in_{next(self.books.numbers)}"
        self._change(
            IncomingTransfer(
                id=id,
                account_key=account_key,
                rail="ach_push",
                amount_cents=amount_cents,
                status="scheduled",
            )
        )
        return id

    def receive(self, incoming_id: str) -> None:
        known = self.books.incoming[incoming_id]
        self._change(attrs.evolve(known, status="received", received_at_ms=NOW))

    # The parts.

    def _make_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        return VirtualAccount(
            key=request.key,
            bank_name="Plain Bank",
            bank_address="1 Main St",
            beneficiary_name="Ada",
            beneficiary_address="1 Main St",
            account_number=str(next(self.books.numbers)),
            routing_number="021000021",
            reference="ref",
        )

    def _change(self, incoming: IncomingTransfer) -> None:
        self.books.incoming[incoming.id] = incoming
        notice = IncomingNotice(
            id=f"{incoming.id}/{incoming.status}",
            incoming_id=incoming.id,
            account_key=incoming.account_key,
            occurred_at_ms=NOW,
        )
        self.books.notices[notice.id] = notice

    def _require_known(self, incoming_id: str) -> IncomingTransfer:
        return self.books.incoming[incoming_id]

    def _is_delivered(self, incoming_id: str) -> bool:
        return incoming_id in self.books.delivered

    def _require_deliverable(self, order: DeliveryOrder) -> None:
        known = self._require_known(order.incoming_id)
        if known.status != "received" or self._is_delivered(order.incoming_id):
            raise BankRefused("not_deliverable", "its money is not there")

    def _require_same(self, known: object, asked: object) -> None:
        if known != asked:
            raise KeyReused("the key came with something else")

    def _require_up(self) -> None:
        if self.books.down:
            raise BankUnavailable("down")

    def _lose_answer(self, order: DeliveryOrder) -> None:
        raise BankUnavailable("the answer was lost")


class MakesNumbersOfLetters(Plain):
    def _make_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        return attrs.evolve(super()._make_account(request), account_number="DE89")


class MakesANumberForEachCall(Plain):
    def open_virtual_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        self.books.accounts.pop(request.key, None)
        return super().open_virtual_account(request)


class HasOneNumberForAll(Plain):
    def _make_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        return attrs.evolve(super()._make_account(request), account_number="123456789")


class TakesAnythingForARepeat(Plain):
    def _require_same(self, known: object, asked: object) -> None:
        """All is the same to it."""


class SaysTheNumberInItsName(Plain):
    def _make_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        made = super()._make_account(request)
        return attrs.evolve(made, beneficiary_name=f"Ada {made.account_number}")


class ForgetsTheKey(Plain):
    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        found = super().find_incoming(incoming_id)
        return found and attrs.evolve(found, account_key=None)


class NeverReceives(Plain):
    def receive(self, incoming_id: str) -> None:
        self._change(self.books.incoming[incoming_id])


class DeliversAtEachCall(Plain):
    def deliver(self, order: DeliveryOrder) -> Delivery:
        if order.key in self.books.orders:
            self.books.delivered.append(order.incoming_id)
        return super().deliver(order)


class DeliversForEachKey(Plain):
    def _is_delivered(self, incoming_id: str) -> bool:
        return False


class DeliversOnCredit(Plain):
    def _require_deliverable(self, order: DeliveryOrder) -> None:
        """It trusts every sender."""


class SaysReceivedAfterAReturn(Plain):
    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        found = super().find_incoming(incoming_id)
        returned = found is not None and found.status == "returned"
        return attrs.evolve(found, status="received") if found and returned else found


class SendsBackWhatItDelivered(Plain):
    def return_incoming(self, incoming_id: str, reason: str) -> IncomingTransfer:
        known = self._require_known(incoming_id)
        self._change(attrs.evolve(known, status="returned", reason=reason))
        return self.books.incoming[incoming_id]


class RepeatsWhatWasNotAnswered(Plain):
    def _lose_answer(self, order: DeliveryOrder) -> None:
        del self.books.orders[order.key]
        self.books.incoming[order.incoming_id] = attrs.evolve(
            self.books.incoming[order.incoming_id], status="received"
        )
        raise BankUnavailable("the answer was lost")

    def _is_delivered(self, incoming_id: str) -> bool:
        return any(order.incoming_id == incoming_id for order in self.books.orders.values())


class RaisesTimeouts(Plain):
    def _require_up(self) -> None:
        if self.books.down:
            raise TimeoutError


class NeverNotifies(Plain):
    def _change(self, incoming: IncomingTransfer) -> None:
        self.books.incoming[incoming.id] = incoming


class NotifiesWithoutAKey(Plain):
    def _change(self, incoming: IncomingTransfer) -> None:
        super()._change(incoming)
        id = f"{incoming.id}/{incoming.status}"
        self.books.notices[id] = attrs.evolve(self.books.notices[id], account_key=None)


class ListsForEver(Plain):
    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self._require_up()


class AcknowledgesAll(Plain):
    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        super().acknowledge(list(self.books.notices) if notice_ids else [])


class EndsAfterOnePage(Plain):
    def list_incoming_notices(
        self, limit: int = MAX_NOTICES, after: str | None = None
    ) -> NoticePage:
        return attrs.evolve(super().list_incoming_notices(limit, after), next=None)
