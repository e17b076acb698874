"""Payouts under everything that can go wrong, in any order, against what must always be true.

Hypothesis chooses: sends, decisions of the partner, a bank that is down or loses its answers, wires
and ACH, settlements and returns early and late, notices again and out of order, chain failures, and
workers that die at some call to the storage. `PAYOUT_EXAMPLES=2000 pytest …` runs more of it.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from payments_core.banks.port import BankRefused
from payments_core.chains.simulated.failure_records import ArmedFailures
from payments_core.clock import MINUTE
from payments_core.errors import PaymentsError
from payments_core.payments.details import PaymentDetails
from payments_core.payments.journal.record import JOURNAL_ACCOUNTS
from payments_core.payments.payouts.record import payout_key
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import SIMULATED, CommitUnknown
from tests.service.conftest import funded
from tests.service.faults import Crashed, FaultyStorage, commit_lost, crash
from tests.service.payments.payouts.desk import DAY_S, Desk
from tests.service.world import atomic, write

STATUSES = {
    "created": {"processing", "executing"},
    "submitted": {"executing"},
    "settled": {"succeeded"},
    "returned": {"action_required", "refunded", "failed"},
    "failed": {"action_required", "refunded", "failed"},
    "cancelled": {"cancelled"},
}
"""What a Payment may be, by the status of its payout."""

HELD_BY = {"submitted": "bank", "settled": "recipient"}


class Payouts(RuleBasedStateMachine):
    """One payer, two bank accounts: an ordinary one, and one whose payouts come back with R10."""

    sent = Bundle("sent")

    @initialize()
    def begin(self) -> None:
        self.world = funded(MemoryStorage())
        self.world.fund("9900.00")
        self.desk = Desk(self.world)
        self.returning = self.desk.add_account(account_number="99900010")
        self.payments: list[PaymentDetails] = []

    @rule(
        target=sent,
        cents=st.integers(1, 2_000),
        rail=st.sampled_from(["ach", "ach", "wire"]),
        is_returning=st.booleans(),
    )
    def send(self, cents: int, rail: str, is_returning: bool) -> PaymentDetails:
        account = self.returning if is_returning else self.desk.account
        amount = f"{cents // 100}.{cents % 100:02d}"
        created = self.desk.send(amount, account=account, to={"rail": rail})
        self.payments.append(created)
        return created

    @rule()
    def run(self) -> None:
        self.world.run()

    @rule(seconds=st.sampled_from([5, 60, 3_600]))
    def let_time_pass(self, seconds: int) -> None:
        self.world.system.advance(seconds)
        self.world.run()
        self.world.system.advance(5)
        self.world.run()

    @rule(days=st.integers(1, 70))
    def let_days_pass(self, days: int) -> None:
        self.world.system.advance(days * DAY_S)
        self.world.run()

    @rule(at=st.integers(1, 60), fault=st.sampled_from([crash, commit_lost]))
    def let_a_worker_die(self, at: int, fault: Any) -> None:
        storage = FaultyStorage(self.world.storage, at, fault)
        with contextlib.suppress(Crashed, CommitUnknown):
            worker = self.world.restarted(storage).worker("sandbox")
            worker.run_through(self.world.clock.now() + MINUTE, self.world.clock.advance_to)
        self.world.system.advance(120)  # its leases

    @rule(
        call=st.sampled_from(["any", "submit", "find_payout", "lost_answer"]),
        times=st.integers(1, 4),
    )
    def let_the_bank_fail(self, call: str, times: int) -> None:
        self.desk.fail(call, times)

    @rule(operation=st.sampled_from(["transfer", "lost_answer", "broadcast"]))
    def let_the_chain_fail(self, operation: str) -> None:
        self.world.fail(operation)

    @rule(created=sent)
    def settle_at_the_bank(self, created: PaymentDetails) -> None:
        with contextlib.suppress(BankRefused):
            self.desk.bank.settle_payout(self.desk.payout(created).key)

    @rule(created=sent, code=st.sampled_from(["R02", "R10", "R06"]))
    def return_at_the_bank(self, created: PaymentDetails, code: str) -> None:
        with contextlib.suppress(BankRefused):
            self.desk.bank.return_payout(self.desk.payout(created).key, code)

    @rule(created=sent, attempt=st.integers(1, 3))
    def notice(self, created: PaymentDetails, attempt: int) -> None:
        key = payout_key(self.world.environment_id, created.payment.id, attempt)
        self.desk.look(created, key)

    @rule(
        created=sent,
        action=st.sampled_from(["retry_execution", "retry_execution", "refund", "write_off"]),
    )
    def decide(self, created: PaymentDetails, action: str) -> None:
        with contextlib.suppress(PaymentsError):
            self.world.reconcile(created, action)

    @rule(created=sent)
    def cancel(self, created: PaymentDetails) -> None:
        with contextlib.suppress(PaymentsError):
            self.world.service.payments.cancel(self.world.server, created.payment.id)

    @invariant()
    def the_books_say_where_the_money_is(self) -> None:
        for created in getattr(self, "payments", ()):
            payment, payout = self.desk.payment(created), self.desk.payout(created)
            assert payment.status in STATUSES[payout.status], (payment.status, payout.status)
            held = {name: getattr(payment.books, name) for name in JOURNAL_ACCOUNTS}
            assert sum(held.values()) == 0
            sums: Counter[str] = Counter()
            for _, postings in self.world.journal(payment.id):
                assert sum(postings.values()) == 0
                sums.update(postings)
            assert all(sums[name] == amount for name, amount in held.items())
            holder = HELD_BY.get(payout.status)
            assert held["bank"] == (payment.amount if holder == "bank" else 0)
            assert held["recipient"] == (payment.amount if holder == "recipient" else 0)
            assert payment.settled == held["recipient"]
            assert held["offramp"] in (0, payment.amount)

    @invariant()
    def nobody_is_paid_twice(self) -> None:
        for created in getattr(self, "payments", ()):
            payout = self.desk.payout(created)
            key = self.world.environment_id, created.payment.id
            found = [
                self.desk.bank.find_payout(payout_key(*key, attempt))
                for attempt in range(1, payout.attempt + 2)
            ]
            alive = [seen for seen in found if seen is not None and seen.status != "returned"]
            assert len(alive) <= 1, "two payouts of one Payment"
            assert found[payout.attempt] is None, "a payout under a key that nobody stored"
            if self.desk.payment(created).status in ("refunded", "cancelled"):
                assert not alive, "paid and refunded"

    def teardown(self) -> None:
        if not hasattr(self, "payments"):
            return

        def calm(tx: Any) -> None:
            armed = tx.get(ArmedFailures, "failures", for_update=True)
            if armed is not None:
                tx.replace(type(armed)(**{**_fields(armed), "armed": ()}))

        write(self.world.storage, SIMULATED, calm)
        self.world.system.advance(120)
        self.world.run()
        for _ in range(6):
            self.world.finish()
            self.desk.pass_days(3)
        in_vault, at_offramp = self.world.held()[0], self.desk.offramp * 10_000
        assert in_vault + at_offramp == atomic("10000")
        out = [-self.desk.payment(created).books.payer for created in self.payments]
        assert at_offramp == sum(out), "what the books have and what the address has differ"
        assert self.world.held()[1] == 0
        for created in self.payments:
            payment = self.desk.payment(created)
            assert payment.status not in ("processing", "executing"), payment.status
        self.the_books_say_where_the_money_is()
        self.nobody_is_paid_twice()


def _fields(record: Any) -> dict[str, Any]:
    return {
        field.name.lstrip("_"): getattr(record, field.name)
        for field in record.__attrs_attrs__
        if not field.name.startswith("_")
    }


Payouts.TestCase.settings = settings(
    max_examples=int(os.environ.get("PAYOUT_EXAMPLES", "8")),
    stateful_step_count=20,
    phases=[Phase.generate],  # a failing sequence is printed as it is: to shrink it takes minutes
    deadline=None,
    derandomize="PAYOUT_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
TestPayouts = Payouts.TestCase
