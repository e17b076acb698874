"""The simulated bank: the rails' rules on the one clock, and notices as weak as the port's."""

from __future__ import annotations

from datetime import date

import pytest

from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.banks.return_codes import RETURN_CODES
from payments_core.banks.simulated.records import SimulatedPayout
from payments_core.clock import DAY, HOUR, MINUTE, SECOND, format_iso
from payments_core.errors import Unavailable
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import SIMULATED, Storage, StorageUnavailable
from tests.service.banks.simulation import WEDNESDAY_NOON, Simulation, order


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(MemoryStorage())


def advance_to(simulation: Simulation, instant: int) -> None:
    simulation.clock.advance((instant - simulation.clock.now()) // SECOND)


def found(simulation: Simulation, key: str = "payment_1") -> BankPayout:
    payout = simulation.bank.find_payout(key)
    assert payout is not None
    return payout


def refused(simulation: Simulation, code: str) -> str:
    with pytest.raises(BankRefused) as no:
        simulation.bank.return_payout("payment_1", code)
    return no.value.reason


class TestSettlement:
    @pytest.mark.parametrize(
        ("changes", "on", "at"),
        [
            ({}, date(2026, 6, 11), "2026-06-11T12:30:00.000Z"),
            ({"same_day": True}, date(2026, 6, 10), "2026-06-10T21:00:00.000Z"),
            (
                {"same_day": True, "amount_cents": 1_000_000_01},
                date(2026, 6, 11),
                "2026-06-11T12:30:00.000Z",
            ),
        ],
    )
    def test_an_ach_payout_settles_by_its_service(
        self, simulation: Simulation, changes: dict[str, object], on: date, at: str
    ) -> None:
        made = simulation.bank.submit(order(**changes))
        assert (made.status, made.settles_on) == ("submitted", on)
        advance_to(simulation, WEDNESDAY_NOON + 3 * HOUR)
        assert found(simulation).status == "submitted"
        advance_to(simulation, WEDNESDAY_NOON + DAY)
        settled = found(simulation)
        assert (settled.status, settled.settles_on) == ("settled", on)
        assert settled.settled_at_ms is not None
        assert format_iso(settled.settled_at_ms) == at

    def test_it_settles_on_the_millisecond(self, simulation: Simulation) -> None:
        simulation.bank.submit(order())
        advance_to(simulation, WEDNESDAY_NOON + 20 * HOUR + 30 * MINUTE - SECOND)
        assert found(simulation).status == "submitted"
        simulation.clock.advance(1)
        assert found(simulation).status == "settled"

    def test_a_wire_settles_at_once_and_is_final(self, simulation: Simulation) -> None:
        made = simulation.bank.submit(order(rail="wire"))
        assert (made.status, made.settled_at_ms) == ("settled", WEDNESDAY_NOON)
        assert refused(simulation, "R02") == "wire_is_final"

    @pytest.mark.parametrize(
        ("rail", "cents"), [("ach", 99_999_999_99), ("wire", 9_999_999_999_99)]
    )
    def test_the_largest_amount_of_a_rail_passes_and_a_cent_more_does_not(
        self, simulation: Simulation, rail: str, cents: int
    ) -> None:
        simulation.bank.submit(order(rail=rail, amount_cents=cents))
        with pytest.raises(BankRefused, match="is at most") as no:
            simulation.bank.submit(order("payment_2", rail=rail, amount_cents=cents + 1))
        assert no.value.reason == "amount_out_of_range"


class TestReturns:
    @pytest.mark.parametrize("code", RETURN_CODES)
    def test_an_account_number_asks_for_each_code(self, simulation: Simulation, code: str) -> None:
        number = f"999000{code[1:]}"
        simulation.bank.submit(order(account_number=number))
        simulation.clock.advance(70 * DAY // SECOND)
        payout = found(simulation)
        assert (payout.status, payout.return_code) == ("returned", code)
        by_operator = RETURN_CODES[code].individual == "operator"
        assert (payout.settled_at_ms is None) == by_operator

    @pytest.mark.parametrize(
        ("number", "holder_type", "returned_at"),
        [
            ("99900003", "individual", "2026-06-15T12:30:00.000Z"),
            ("99900010", "individual", "2026-08-11T12:30:00.000Z"),
            ("99900010", "business", "2026-06-15T12:30:00.000Z"),
            ("99900006", "business", "2026-06-21T12:30:00.000Z"),
            ("99900013", "business", "2026-06-11T12:30:00.000Z"),
        ],
    )
    def test_it_comes_back_at_the_last_moment(
        self, simulation: Simulation, number: str, holder_type: str, returned_at: str
    ) -> None:
        simulation.bank.submit(order(account_number=number, holder_type=holder_type))
        simulation.clock.advance(70 * DAY // SECOND)
        payout = found(simulation)
        assert payout.returned_at_ms is not None
        assert format_iso(payout.returned_at_ms) == returned_at

    @pytest.mark.parametrize("number", ["99900000", "99900030", "099900003", "12345678"])
    def test_other_account_numbers_settle(self, simulation: Simulation, number: str) -> None:
        simulation.bank.submit(order(account_number=number))
        simulation.clock.advance(70 * DAY // SECOND)
        assert found(simulation).status == "settled"

    def test_a_return_ordered_within_its_time_comes_and_later_does_not(
        self, simulation: Simulation
    ) -> None:
        for key in ("payment_1", "payment_2"):
            simulation.bank.submit(order(key))
        simulation.clock.advance(5 * DAY // SECOND)  # Monday noon: past 8:30 of the second day
        assert refused(simulation, "R02") == "return_too_late"
        assert simulation.bank.return_payout("payment_2", "R10").return_code == "R10"
        simulation.clock.advance(70 * DAY // SECOND)
        assert refused(simulation, "R10") == "return_too_late"
        assert simulation.bank.return_payout("payment_1", "R06").return_code == "R06"

    def test_a_return_is_made_once(self, simulation: Simulation) -> None:
        simulation.bank.submit(order())
        first = simulation.bank.return_payout("payment_1", "R03")
        simulation.clock.advance(HOUR // SECOND)
        assert simulation.bank.return_payout("payment_1", "R03") == first
        assert refused(simulation, "R02") == "payout_returned"
        with pytest.raises(BankRefused) as no:
            simulation.bank.settle_payout("payment_1")
        assert no.value.reason == "payout_returned"

    @pytest.mark.parametrize("code", ["R00", "R30", "r03", ""])
    def test_an_unknown_code_or_payout_is_refused(self, simulation: Simulation, code: str) -> None:
        assert refused(simulation, "R03") == "payout_unknown"
        simulation.bank.submit(order())
        assert refused(simulation, code) == "return_code_unknown"


class TestNotices:
    def test_they_come_late_twice_and_out_of_order(self, simulation: Simulation) -> None:
        simulation.bank.submit(order(account_number="99900003"))
        simulation.clock.advance(4 * DAY // SECOND)
        seen = [notice.status for notice in simulation.bank.list_notices()]
        assert seen == ["settled", "settled"]
        advance_to(simulation, WEDNESDAY_NOON + 4 * DAY + 20 * HOUR + 44 * MINUTE)
        assert found(simulation).status == "returned"
        assert len(simulation.bank.list_notices()) == 2, "the notice of the return comes late"
        simulation.clock.advance(MINUTE // SECOND)
        seen = [notice.status for notice in simulation.bank.list_notices()]
        assert seen == ["returned", "settled", "settled"]

    def test_what_was_acknowledged_comes_once_more_under_another_id(
        self, simulation: Simulation
    ) -> None:
        simulation.bank.submit(order(rail="wire"))
        (first,) = simulation.bank.list_notices()
        simulation.bank.acknowledge([first.id])
        assert simulation.bank.list_notices() == []
        simulation.clock.advance(HOUR // SECOND)
        (again,) = simulation.bank.list_notices()
        assert (again.payout_key, again.status) == (first.payout_key, first.status)
        assert again.id != first.id

    def test_a_notice_that_is_not_due_cannot_be_acknowledged(self, simulation: Simulation) -> None:
        simulation.bank.submit(order())
        simulation.bank.acknowledge(["payment_1/settled/0", "payment_1/settled/1"])
        simulation.clock.advance(DAY // SECOND)
        assert len(simulation.bank.list_notices()) == 1 + 1

    def test_a_return_before_settlement_takes_the_notices_of_settlement_back(
        self, simulation: Simulation
    ) -> None:
        simulation.bank.submit(order())
        simulation.bank.return_payout("payment_1", "R03")
        simulation.clock.advance(3 * DAY // SECOND)
        assert {notice.status for notice in simulation.bank.list_notices()} == {"returned"}

    def test_a_planned_return_that_comes_early_has_its_notices_early(
        self, simulation: Simulation
    ) -> None:
        simulation.bank.submit(order(account_number="99900010"))
        simulation.bank.settle_payout("payment_1")
        simulation.bank.return_payout("payment_1", "R02")
        simulation.clock.advance(2 * DAY // SECOND)
        seen = [notice.status for notice in simulation.bank.list_notices()]
        assert sorted(seen) == ["returned", "returned", "settled", "settled"]
        assert all(
            notice.occurred_at_ms == WEDNESDAY_NOON for notice in simulation.bank.list_notices()
        )


class TestBooks:
    def test_they_hold_no_account_number(self, storage: Storage) -> None:
        simulation = Simulation(storage)
        simulation.bank.submit(order(account_number="73910264851"))
        row = storage.read(SIMULATED, lambda snapshot: snapshot.get(SimulatedPayout, "payment_1"))
        assert row is not None
        assert "73910264851" not in repr(row)

    def test_another_process_sees_the_same_bank(self, storage: Storage) -> None:
        made = Simulation(storage).bank.submit(order())
        assert found(Simulation(storage)) == made

    def test_books_out_of_reach_are_a_bank_out_of_reach(self) -> None:
        storage = MemoryStorage()
        bank = Simulation(storage).bank
        storage.close()
        for call in (
            lambda: bank.submit(order()),
            lambda: bank.find_payout("payment_1"),
            bank.list_notices,
        ):
            with pytest.raises(BankUnavailable) as no:
                call()
            assert isinstance(no.value.__cause__, (StorageUnavailable, Unavailable))
