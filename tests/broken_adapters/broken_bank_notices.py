"""Banks that each break one promise about notices."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.banks.payouts import BankPayout, BankPayoutStatus
from payments_core.banks.port import (
    MAX_NOTICES,
    BankNotice,
    PayoutOrder,
)
from tests.broken_adapters.broken_banks import Plain


class NotifiesOfSubmission(Plain):
    def _make(self, order: PayoutOrder) -> BankPayout:
        made = super()._make(order)
        self._notify(order.key, "submitted")
        return made


class NotifiesBeforeItSettles(Plain):
    def _make(self, order: PayoutOrder) -> BankPayout:
        made = super()._make(order)
        self._notify(order.key, "settled")
        return made


class NeverNotifies(Plain):
    def _notify(self, key: str, status: BankPayoutStatus) -> None:
        """Callers ask by themselves."""


class NotifiesOfSettlementsAlone(Plain):
    def _notify(self, key: str, status: BankPayoutStatus) -> None:
        if status == "settled":
            super()._notify(key, status)


class ListsANoticeOnce(Plain):
    def list_notices(self, limit: int = MAX_NOTICES) -> Sequence[BankNotice]:
        listed = super().list_notices(limit)
        self.acknowledge([notice.id for notice in listed])
        return listed


class ListsForEver(Plain):
    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """They may be of use to somebody."""


class AcknowledgesAll(Plain):
    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        if notice_ids:
            self.books.notices.clear()


class AcknowledgesOnce(Plain):
    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        for id in notice_ids:
            del self.books.notices[id]


class ListsWithoutALimit(Plain):
    def list_notices(self, limit: int = MAX_NOTICES) -> Sequence[BankNotice]:
        return super().list_notices()


class DropsWhatIsBeyondTheLimit(Plain):
    def list_notices(self, limit: int = MAX_NOTICES) -> Sequence[BankNotice]:
        listed = super().list_notices(limit)
        kept = {notice.id for notice in listed}
        for id in list(self.books.notices):
            if id not in kept:
                del self.books.notices[id]
        return listed
