"""The checks of a bank that receives transfers for accounts: numbers, arrivals, deliveries.

With pytest, a few lines make it run::

    class TestMyFundingBank(FundingConformance):
        @pytest.fixture(autouse=True)
        def _place(self, my_bank_sandbox):
            self.sandbox = my_bank_sandbox  # what earlier checks left there may stay

        def open(self):
            return my_package.open_url(self.sandbox.url)

        def send_transfer(self, account_key, amount_cents):
            return self.sandbox.send(account_key, amount_cents)  # the bank's id of it

        def receive(self, incoming_id):
            self.sandbox.settle(incoming_id)

        def count_deliveries(self, incoming_ids):
            return self.sandbox.count(incoming_ids)
"""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence

from payments_core.banks.incoming import (
    DeliveryOrder,
    FundingBank,
    IncomingNotice,
    IncomingTransfer,
    VirtualAccountRequest,
)
from payments_core.banks.port import BankRefused, BankUnavailable, KeyReused
from payments_core.banks.routing_numbers import find_routing_number_fault
from payments_core.conformance.remote_harness import RemoteHarness
from payments_core.entropy import system_entropy
from payments_core.evolve import evolve

AMOUNT_CENTS = 123_45
TOKEN = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
ADDRESS = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
MAX_PAGES = 1_000
MANY = 5


class FundingHarness(RemoteHarness):
    """Override the hooks, and declare what the adapter can do."""

    def open(self) -> FundingBank:
        """A handle to the bank, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def send_transfer(self, account_key: str, amount_cents: int) -> str:
        """Let somebody send an ACH transfer to a virtual account; return the bank's id of it.

        It is `scheduled`, and its first notice has come.
        """
        raise NotImplementedError  # the adapter's own test class says how

    def receive(self, incoming_id: str) -> None:
        """Let a transfer settle, and its first notice of that come."""
        raise NotImplementedError  # the adapter's own test class says how

    def count_deliveries(self, incoming_ids: Sequence[str]) -> int:
        """How many deliveries the bank has made with these transfers, by its own books."""
        raise NotImplementedError  # the adapter's own test class says how

    # Shared by the checks.

    def new_request(self) -> VirtualAccountRequest:
        """A request under a key that was never used."""
        name = system_entropy(12).hex()
        return VirtualAccountRequest(
            key=f"onramp_account_{name}",
            account_id=f"acct_{name}",
            external_user_id=f"user-{name}",
            subject_type="individual",
        )

    def new_order(self, incoming_id: str) -> DeliveryOrder:
        """An order under a key that was never used."""
        return DeliveryOrder(
            key=f"bank_txn_{system_entropy(12).hex()}",
            incoming_id=incoming_id,
            chain_id=8453,
            token_address=TOKEN,
            address=ADDRESS,
            amount_atomic=AMOUNT_CENTS * 10_000,
        )

    def new_transfer(self, bank: FundingBank) -> tuple[str, str]:
        """The key of a new virtual account, and the id of a transfer to it."""
        key = bank.open_virtual_account(self.new_request()).key
        return key, self.send_transfer(key, AMOUNT_CENTS)

    def new_received(self, bank: FundingBank) -> str:
        """The id of a transfer that has arrived."""
        _, id = self.new_transfer(bank)
        self.receive(id)
        return id

    def require_incoming(self, bank: FundingBank, id: str) -> IncomingTransfer:
        """A transfer that the bank must know."""
        found = bank.find_incoming(id)
        assert found is not None, f"the bank must know the transfer {id}"
        assert found.id == id, f"the transfer found as {id} says {found.id}"
        return found

    def require_refused(self, what: str, call: Callable[[], object]) -> None:
        """The call must raise BankRefused, and nothing else."""
        _require_raises(BankRefused, what, call)

    def require_unavailable(self, what: str, call: Callable[[], object]) -> None:
        """The call must raise BankUnavailable, and nothing else."""
        _require_raises(BankUnavailable, what, call)

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")

    def list_all(self, bank: FundingBank, limit: int = 100) -> list[IncomingNotice]:
        """All notices, page by page."""
        notices: list[IncomingNotice] = []
        after: str | None = None
        for _ in range(MAX_PAGES):
            page = bank.list_incoming_notices(limit, after)
            assert len(page.notices) <= limit, f"a page of {limit} has {len(page.notices)} notices"
            notices += page.notices
            after = page.next
            if after is None:
                return notices
        raise AssertionError("the pages of notices must end")


class FundingConformance(FundingHarness):
    """Every check of the port of a bank that receives transfers."""

    def test_a_number_can_be_paid_to(self) -> None:
        made = self.open().open_virtual_account(self.new_request())
        assert made.account_number.isdecimal(), "an account number must be digits"
        fault = find_routing_number_fault(made.routing_number)
        assert fault is None, f"the routing number {fault}"
        assert made.rails, "a number must take a rail at least"

    def test_the_same_request_has_the_same_number_for_ever(self) -> None:
        request = self.new_request()
        first = self.open().open_virtual_account(request)
        again = self.open().open_virtual_account(request)
        assert again == first, "a number must never change"

    def test_no_two_keys_share_a_number(self) -> None:
        bank = self.open()
        numbers = {
            bank.open_virtual_account(self.new_request()).account_number for _ in range(MANY)
        }
        assert len(numbers) == MANY, f"{MANY} keys have {len(numbers)} numbers"

    def test_another_request_under_the_same_key_is_refused(self) -> None:
        bank, request = self.open(), self.new_request()
        bank.open_virtual_account(request)
        other = evolve(request, account_id="acct_other")
        _require_raises(
            KeyReused, "another request under a key", lambda: bank.open_virtual_account(other)
        )

    def test_no_text_of_a_number_shows_it(self) -> None:
        made = self.open().open_virtual_account(self.new_request())
        assert made.account_number not in repr(made), "the account number must not be in texts"

    def test_a_transfer_is_found_with_its_key_and_amount(self) -> None:
        key, id = self.new_transfer(self.open())
        found = self.require_incoming(self.open(), id)
        shown = (found.account_key, found.amount_cents, found.status)
        assert shown == (key, AMOUNT_CENTS, "scheduled"), f"the transfer is shown as {shown}"
        assert self.open().find_incoming("unknown") is None, "an unknown id must find nothing"

    def test_a_transfer_that_settles_is_received(self) -> None:
        bank = self.open()
        found = self.require_incoming(bank, self.new_received(bank))
        assert found.status == "received", f"it has settled, but its status is {found.status}"
        assert found.received_at_ms is not None, "a received transfer must say since when"
        assert found.amount_cents == AMOUNT_CENTS, f"its amount became {found.amount_cents}"

    def test_a_delivery_is_made_once_for_its_key(self) -> None:
        bank = self.open()
        id = self.new_received(bank)
        order = self.new_order(id)
        for handle in (bank, bank, self.open()):
            assert handle.deliver(order).key == order.key, "a delivery must have its order's key"
        made = self.count_deliveries([id])
        assert made == 1, f"one order made {made} deliveries"

    def test_a_transfer_is_delivered_once_under_any_key(self) -> None:
        bank = self.open()
        id = self.new_received(bank)
        bank.deliver(self.new_order(id))
        self.require_refused("a second delivery", lambda: bank.deliver(self.new_order(id)))
        made = self.count_deliveries([id])
        assert made == 1, f"one transfer has {made} deliveries"

    def test_another_order_under_the_same_key_is_refused(self) -> None:
        bank = self.open()
        order = self.new_order(self.new_received(bank))
        bank.deliver(order)
        other = evolve(order, amount_atomic=1)
        _require_raises(KeyReused, "another order under a key", lambda: bank.deliver(other))

    def test_nothing_is_delivered_before_it_is_received(self) -> None:
        bank = self.open()
        _, id = self.new_transfer(bank)
        self.require_refused("an early delivery", lambda: bank.deliver(self.new_order(id)))
        assert self.count_deliveries([id]) == 0, "a refused order must deliver nothing"

    def test_what_is_sent_back_is_returned_and_stays_so(self) -> None:
        bank = self.open()
        id = self.new_received(bank)
        first = bank.return_incoming(id, "unmatched")
        assert (first.status, first.reason) == ("returned", "unmatched"), (
            f"it was sent back, but is shown as {first.status} for {first.reason}"
        )
        again = self.open().return_incoming(id, "unmatched")
        assert again.status == "returned", "to send it back again must change nothing"
        assert self.require_incoming(self.open(), id).status == "returned", (
            "a returned transfer must stay returned"
        )

    def test_the_money_of_a_transfer_leaves_once(self) -> None:
        bank = self.open()
        delivered, returned = self.new_received(bank), self.new_received(bank)
        bank.deliver(self.new_order(delivered))
        self.require_refused(
            "a return after a delivery", lambda: bank.return_incoming(delivered, "unmatched")
        )
        bank.return_incoming(returned, "unmatched")
        self.require_refused(
            "a delivery after a return", lambda: bank.deliver(self.new_order(returned))
        )
        assert self.count_deliveries([returned]) == 0, "a returned transfer must not be delivered"

    def test_after_a_lost_answer_the_same_order_delivers_no_second_time(self) -> None:
        self.require_capability("can_lose_answers")
        bank = self.open()
        id = self.new_received(bank)
        order = self.new_order(id)
        self.lose_next_answer()
        self.require_unavailable("a lost answer", lambda: bank.deliver(order))
        bank.deliver(order)
        made = self.count_deliveries([id])
        assert made == 1, f"the repeated order made {made} deliveries"

    def test_a_bank_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        bank = self.open()
        id = self.new_received(bank)
        self.fail()
        for name, call in {
            "open_virtual_account": lambda: bank.open_virtual_account(self.new_request()),
            "find_incoming": lambda: bank.find_incoming(id),
            "return_incoming": lambda: bank.return_incoming(id, "unmatched"),
            "deliver": lambda: bank.deliver(self.new_order(id)),
            "list_incoming_notices": lambda: bank.list_incoming_notices(),
            "acknowledge": lambda: bank.acknowledge(["nothing"]),
        }.items():
            self.require_unavailable(f"{name} while the bank is down", call)
        self.restore()
        assert self.require_incoming(bank, id).status == "received"

    def test_each_change_has_a_notice_with_the_key(self) -> None:
        bank = self.open()
        key, id = self.new_transfer(bank)
        self._require_notices(bank, id, key, "it was announced")
        self._acknowledge_all(bank, id)
        self.receive(id)
        self._require_notices(bank, id, key, "it was received")

    def test_a_notice_is_listed_until_it_is_acknowledged(self) -> None:
        bank = self.open()
        _, id = self.new_transfer(bank)
        self.receive(id)
        first = self._notices_of(bank, id)
        again = self._notices_of(self.open(), id)
        assert {it.id for it in first} <= {it.id for it in again}, "a notice must keep its id"
        bank.acknowledge([first[0].id])
        left = {notice.id for notice in self._notices_of(self.open(), id)}
        assert first[0].id not in left, "an acknowledged notice must not be listed"
        assert {notice.id for notice in first[1:]} <= left, "one acknowledgement must end one"
        for ids in ([first[0].id], [], ["unknown"]):
            bank.acknowledge(ids)

    def test_the_pages_have_every_notice(self) -> None:
        bank = self.open()
        ids = {self.new_transfer(bank)[1] for _ in range(MANY)}
        listed = {notice.incoming_id for notice in self.list_all(bank, limit=2)}
        missing = ids - listed
        assert not missing, f"{len(missing)} of {MANY} transfers have no notice on any page"

    def _notices_of(self, bank: FundingBank, id: str) -> list[IncomingNotice]:
        return [notice for notice in self.list_all(bank) if notice.incoming_id == id]

    def _acknowledge_all(self, bank: FundingBank, id: str) -> None:
        bank.acknowledge([notice.id for notice in self._notices_of(bank, id)])

    def _require_notices(self, bank: FundingBank, id: str, key: str, why: str) -> None:
        notices = self._notices_of(bank, id)
        assert notices, f"a transfer must have a notice when {why}"
        keys = {notice.account_key for notice in notices}
        assert keys == {key}, f"a notice must have the key {key}, not {keys}"


def _require_raises(kind: type[Exception], what: str, call: Callable[[], object]) -> None:
    try:
        answer = call()
    except kind:
        return
    except Exception as error:
        raise AssertionError(
            f"{what} must raise {kind.__name__}, not {type(error).__name__}"
        ) from error
    raise AssertionError(f"{what} must raise {kind.__name__}, and answered {answer!r}")
