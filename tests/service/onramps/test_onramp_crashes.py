"""Whatever goes wrong between any two calls, a bank transfer is credited once and never lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from payments_core.clock import DAY, HOUR, SECOND
from payments_core.onramps.record import BankTransaction, FundingBooks
from payments_core.storage.memory.adapter import MemoryStorage
from tests.conftest import Opener
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyStorage,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.onramps.setting import OnrampSetting
from tests.service.world import World

CENT = 10_000
EMPTY = FundingBooks()


def spoil(setting: OnrampSetting, at: int, fault: Fault, seconds: int = 20) -> bool:
    """A worker's life on a storage whose `at`-th call goes wrong; whether it came to that."""
    world = setting.world
    storage = FaultyStorage(world.storage, at, fault)
    with contextlib.suppress(Crashed, Exception):
        worker = world.restarted(storage).worker("sandbox")
        until = world.clock.now() + seconds * SECOND
        worker.run_through(until, world.clock.advance_to)
    return storage.had_its_fault


def calm(setting: OnrampSetting) -> None:
    """A healthy worker's turn, once the leases of a dead one have ended; a wire of the evening
    waits for the next business day."""
    world = setting.world
    world.advance(200)
    newest = setting.transactions()[0]
    if newest.status == "scheduled" and newest.expected_at is not None:
        world.advance((newest.expected_at - world.clock.now()) // SECOND + 60)


@pytest.mark.parametrize("fault", [crash, commit_lost, commit_failed, storage_away])
def test_a_transfer_is_credited_once_whatever_call_goes_wrong(
    opener: Opener, fault: Callable[[Callable[[], object]], object]
) -> None:
    setting = OnrampSetting(World(opener()).open())
    step = 5 if isinstance(setting.world.storage, MemoryStorage) else 29
    expected = setting.balance()
    count = 0
    for at in range(1, 400, step):
        setting.deposit("1.00")
        count += 1
        is_over = not spoil(setting, at, fault)
        calm(setting)
        expected += 100 * CENT
        newest = setting.transactions()[0]
        assert newest.status == "settled", f"call {at}: {newest}"
        assert setting.balance() == expected, f"call {at}"
        if is_over:
            break
    else:
        raise AssertionError("the work never came to an end")
    assert count > 3
    incoming = [one.incoming_id for one in setting.transactions()]
    assert len(set(incoming)) == len(incoming)


FAULTS = st.sampled_from([crash, commit_lost, commit_failed, storage_away])
CALLS = st.sampled_from(
    ["list_incoming_notices", "acknowledge", "find_incoming", "deliver", "return_incoming",
     "lost_answer"]
)  # fmt: skip
OUTCOMES = st.sampled_from(["receive", "receive", "review", "return", "cancel", "unmatched"])


class IncomingMoney(RuleBasedStateMachine):
    """Transfers of every kind, with a bank that is down, notices that come twice, and crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.setting = OnrampSetting(World(MemoryStorage()).open())
        self.sent: dict[str, tuple[int, str, str]] = {}
        self.empty = self.setting.balance()

    @initialize()
    def begin(self) -> None:
        """The machine needs a rule to begin with."""

    @rule(
        cents=st.integers(1, 500),
        rail=st.sampled_from(["wire", "ach_push"]),
        outcome=OUTCOMES,
    )
    def send(self, cents: int, rail: str, outcome: str) -> None:
        amount = f"{cents // 100}.{cents % 100:02d}"
        made = self.setting.deposit(amount, rail, outcome=outcome)
        self.sent[made.id] = (cents, rail, outcome)

    @rule(call=CALLS, times=st.integers(1, 3))
    def fail(self, call: str, times: int) -> None:
        world = self.setting.world
        world.service.sandbox().fail(world.server, "bank", call, times)

    @rule(fault=FAULTS, at=st.integers(1, 60))
    def spoil(self, fault: Fault, at: int) -> None:
        spoil(self.setting, at, fault)

    @rule()
    def suspend(self) -> None:
        world = self.setting.world
        world.service.accounts.update(world.server, world.payer.id, status="suspended")

    @rule()
    def resume(self) -> None:
        world = self.setting.world
        world.service.accounts.update(world.server, world.payer.id, status="active")

    @rule()
    def fail_credit(self) -> None:
        self.setting.world.fail("transfer")

    @rule(seconds=st.sampled_from([1, 30, HOUR // SECOND, DAY // SECOND]))
    def wait(self, seconds: int) -> None:
        self.setting.world.advance(seconds)

    def _transactions(self) -> tuple[BankTransaction, ...]:
        world, onramp = self.setting.world, self.setting.onramp
        page = world.service.onramp_accounts.list_transactions(
            world.server, world.payer.id, onramp.id, limit=100
        )
        return page.records

    @invariant()
    def no_money_is_made_or_lost(self) -> None:
        found = {one.incoming_id: one for one in self._transactions()}
        assert len(found) == len(self._transactions())
        credited = 0
        for id, one in found.items():
            cents, _, outcome = self.sent[id]
            assert outcome != "unmatched"
            assert one.amount_cents == cents
            held = {
                "scheduled": 0,
                "failed": 0,
                "refunded": 0,
            }.get(one.status, -cents * CENT)
            assert (
                one.books.sender in (held, 0)
                if one.status == "in_review"
                else (one.books.sender == held)
            )
            credited += one.books.recipient
        assert self.setting.balance() - self.empty >= credited
        paid = sum(cents for cents, rail, _ in self.sent.values() if rail == "wire" or cents >= 100)
        assert self.setting.balance() - self.empty <= paid * CENT

    def teardown(self) -> None:
        """In the end each transfer has come to its end, and the vault has what was credited."""
        world = self.setting.world
        self.resume()
        world.advance(12 * DAY // SECOND)
        found = {one.incoming_id: one for one in self._transactions()}
        for id, (cents, rail, outcome) in self.sent.items():
            one = found.get(id)
            if outcome == "unmatched":
                shown = self.setting.bank.find_incoming(id)
                assert one is None
                assert shown is not None
                assert shown.status == "returned"
                continue
            assert one is not None, f"{id} was lost"
            micro = rail == "ach_push" and cents < 100
            ends = {"return": "refunded", "cancel": "failed"}
            expected = ends.get(outcome, "received" if micro else "settled")
            assert one.status in (expected, "refunded"), one
            if one.status == "refunded":
                assert one.reason in ("rejected_by_bank", "account_suspended"), one
        settled = sum(one.amount_atomic for one in found.values() if one.status == "settled")
        assert self.setting.balance() - self.empty == settled


IncomingMoney.TestCase.settings = settings(
    max_examples=5,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestIncomingMoney = IncomingMoney.TestCase
