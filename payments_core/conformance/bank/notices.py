"""Notices: they may be late and repeated, but none is early, and none is lost."""

from __future__ import annotations

from payments_core.banks.port import Bank, BankNotice
from payments_core.conformance.bank.harness import Harness

MANY = 5
_PROGRESS = ("submitted", "settled", "returned")


class NoticeChecks(Harness):
    """The facts that a caller learns without asking for a payout by its key."""

    def test_a_payout_that_was_only_submitted_has_no_notice(self) -> None:
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        found = self.find_notices(bank, order.key)
        assert found == [], f"nothing happened to the payout yet: {found}"

    def test_a_settlement_has_a_notice(self) -> None:
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.settle(order.key)
        self._require_notice(bank, order.key, "settled")

    def test_a_return_has_a_notice(self) -> None:
        self.require_capability("can_return")
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.settle(order.key)
        self._acknowledge_all(bank, order.key)
        self.return_payout(order.key, "R02")
        self._require_notice(bank, order.key, "returned")

    def test_a_notice_is_listed_until_it_is_acknowledged(self) -> None:
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.settle(order.key)
        first = self._require_notice(bank, order.key, "settled")
        again = self._require_notice(self.open(), order.key, "settled")
        assert first.id == again.id, "a notice must keep its id while it is listed"
        bank.acknowledge([first.id])
        listed = [notice.id for notice in self.open().list_notices()]
        assert first.id not in listed, "a notice must not be listed after it was acknowledged"

    def test_acknowledging_one_notice_ends_no_other(self) -> None:
        bank = self.open()
        orders = [self.new_order() for _ in range(2)]
        for order in orders:
            bank.submit(order)
            self.settle(order.key)
        notices = {notice.payout_key: notice for notice in self._drain_to(bank, orders[0].key)}
        bank.acknowledge([notices[orders[0].key].id])
        self._require_notice(bank, orders[1].key, "settled")

    def test_acknowledging_again_or_the_unknown_is_not_an_error(self) -> None:
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self.settle(order.key)
        notice = self._require_notice(bank, order.key, "settled")
        for ids in ([notice.id], [notice.id], [], ["unknown"], [notice.id, notice.id]):
            bank.acknowledge(ids)

    def test_no_list_is_longer_than_its_limit(self) -> None:
        bank = self.open()
        keys = []
        for _ in range(MANY):
            order = self.new_order()
            bank.submit(order)
            self.settle(order.key)
            keys.append(order.key)
        seen: set[str] = set()
        for _ in range(1_000):
            notices = bank.list_notices(2)
            assert len(notices) <= 2, f"a list of at most 2 has {len(notices)} notices"
            if not notices:
                break
            seen |= {notice.payout_key for notice in notices}
            bank.acknowledge([notice.id for notice in notices])
        missing = set(keys) - seen
        assert not missing, f"{len(missing)} of {MANY} settlements never had a notice"

    def test_no_notice_comes_before_what_it_says(self) -> None:
        bank, order = self.open(), self.new_order()
        bank.submit(order)
        self._require_none_is_early(bank, order.key)
        self.settle(order.key)
        self._require_none_is_early(bank, order.key)
        if self.can_return:
            self.return_payout(order.key, "R02")
            self._require_none_is_early(bank, order.key)

    def _require_none_is_early(self, bank: Bank, key: str) -> None:
        """The notices are read first: their content must already be visible."""
        notices = bank.list_notices()
        shown = self.require_payout(bank, key).status
        for notice in notices:
            if notice.payout_key == key:
                assert _PROGRESS.index(notice.status) <= _PROGRESS.index(shown), (
                    f"a notice says {notice.status}, and the payout is {shown}"
                )

    def _require_notice(self, bank: Bank, key: str, status: str) -> BankNotice:
        found = [notice for notice in self.find_notices(bank, key) if notice.status == status]
        assert found, f"a payout that is {status} must have a notice that says so"
        return found[0]

    def _acknowledge_all(self, bank: Bank, key: str) -> None:
        bank.acknowledge([notice.id for notice in self.find_notices(bank, key)])

    def _drain_to(self, bank: Bank, key: str) -> list[BankNotice]:
        """A list with a notice of this payout."""
        self.find_notices(bank, key)
        notices = list(bank.list_notices())
        assert any(notice.payout_key == key for notice in notices), (
            "a notice must be listed until it is acknowledged"
        )
        return notices
