"""A vault's balance: never below zero, and never reserved twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.accounts.vaults.balance import (
    StaleBalance,
    daily_spend,
    reserve,
    settle_reserved_amount,
    void_after_failure,
    void_reserved_amount,
    with_chain_total,
)
from payments_core.accounts.vaults.operations import Holding
from payments_core.accounts.vaults.record import VaultBalance, balance_id
from payments_core.clock import DAY
from payments_core.errors import InsufficientBalance
from payments_core.money import Money, MoneyError
from payments_core.storage.documents import decode, encode
from tests.core.examples import NOW, USDC, a_balance

MIDNIGHT = (NOW // DAY + 1) * DAY
Move = tuple[str, int]
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["fund", "reserve", "give_back", "spend", "fail", "wait"]),
        st.integers(0, 50),
    ),
    max_size=40,
)


def usdc(amount: int) -> Money:
    return Money(amount, USDC.id)


@given(MOVES)
def test_whatever_happens_reservations_never_pass_the_total(moves: list[Move]) -> None:
    """A model of the chain and of the day beside it: both are right to the unit at all times."""
    balance, on_chain, height, now = a_balance(), 0, 0, NOW
    live: list[tuple[int, int]] = []  # amounts, and when they were reserved
    counted: list[tuple[int, int]] = []  # the same, of those that did not fail
    for move, amount in moves:
        if move == "fund":
            on_chain, height = on_chain + amount, height + 1
        elif move == "wait":
            now += amount * DAY // 40
        elif move == "reserve":
            current = with_chain_total(balance, on_chain, height)
            if amount <= on_chain - sum(part for part, _ in live):
                balance = reserve(current, usdc(amount), now=now)
                live.append((amount, now))
                counted.append((amount, now))
            else:
                with pytest.raises(InsufficientBalance) as caught:
                    reserve(current, usdc(amount), now=now)
                free = on_chain - sum(part for part, _ in live)
                assert caught.value.available_atomic == free
        elif live and move in ("give_back", "fail"):
            gone, at = live.pop()
            counted.remove((gone, at))
            if move == "give_back":
                balance = void_reserved_amount(balance, usdc(gone), counted_at=at)
            else:
                height += 1
                balance = void_after_failure(balance, usdc(gone), on_chain, height, counted_at=at)
        elif live and move == "spend":
            gone, _ = live.pop()
            on_chain, height = on_chain - gone, height + 1
            balance = settle_reserved_amount(balance, usdc(gone), on_chain, height)
        reserved = sum(part for part, _ in live)
        assert balance.reserved_atomic == reserved
        assert 0 <= balance.available.amount_atomic == max(0, balance.total_atomic - reserved)
        assert reserved <= on_chain
        assert daily_spend(balance, now) == sum(
            part for part, at in counted if at // DAY == now // DAY
        )


def test_the_exact_balance_can_be_reserved() -> None:
    full = reserve(a_balance(total_atomic=5), usdc(5), now=NOW)
    assert full.available == usdc(0)
    with pytest.raises(InsufficientBalance):
        reserve(full, usdc(1), now=NOW)


def test_an_older_answer_of_the_chain_is_refused() -> None:
    balance = with_chain_total(a_balance(), 5, 10)
    assert (balance.total_atomic, balance.height) == (5, 10)
    assert with_chain_total(balance, 6, 10).total_atomic == 6
    with pytest.raises(StaleBalance):
        with_chain_total(balance, 6, 9)
    with pytest.raises(StaleBalance):
        settle_reserved_amount(balance, usdc(1), 4, 9)
    with pytest.raises(StaleBalance):
        void_after_failure(balance, usdc(1), 4, 9, counted_at=NOW)


def test_the_first_block_is_new_to_a_balance_never_asked_for() -> None:
    assert with_chain_total(a_balance(), 0, 0).height == 0


def test_another_assets_amount_is_not_reserved_and_ends_no_reservation() -> None:
    with pytest.raises(MoneyError):
        reserve(a_balance(total_atomic=5), Money(1, "1/USDT"), now=NOW)
    with pytest.raises(MoneyError):
        void_reserved_amount(a_balance(total_atomic=5), Money(1, "1/USDT"), counted_at=NOW)


def test_a_vault_emptied_from_outside_has_nothing_available() -> None:
    balance = with_chain_total(reserve(a_balance(total_atomic=5), usdc(5), now=NOW), 2, 1)
    assert balance.available == usdc(0)
    with pytest.raises(InsufficientBalance):
        reserve(balance, usdc(1), now=NOW)
    assert Holding(USDC, 2, 5).available_atomic == 0


def test_a_new_day_counts_from_zero_and_the_reservation_goes_on() -> None:
    balance = reserve(a_balance(total_atomic=9), usdc(5), now=MIDNIGHT - 1)
    assert (daily_spend(balance, MIDNIGHT - 1), daily_spend(balance, MIDNIGHT)) == (5, 0)
    balance = reserve(balance, usdc(3), now=MIDNIGHT)
    assert (balance.reserved_atomic, daily_spend(balance, MIDNIGHT)) == (8, 3)


def test_a_failure_of_yesterdays_authorization_leaves_todays_count() -> None:
    balance = reserve(a_balance(total_atomic=9), usdc(5), now=MIDNIGHT - 1)
    balance = reserve(balance, usdc(3), now=MIDNIGHT)
    balance = void_reserved_amount(balance, usdc(5), counted_at=MIDNIGHT - 1)
    assert (balance.reserved_atomic, daily_spend(balance, MIDNIGHT)) == (3, 3)
    balance = void_after_failure(balance, usdc(3), 9, 1, counted_at=MIDNIGHT)
    assert (balance.reserved_atomic, daily_spend(balance, MIDNIGHT)) == (0, 0)


def test_success_keeps_the_days_count() -> None:
    balance = settle_reserved_amount(
        reserve(a_balance(total_atomic=9), usdc(5), now=NOW), usdc(5), 4, 1
    )
    assert (balance.reserved_atomic, balance.total_atomic, daily_spend(balance, NOW)) == (0, 4, 5)


def test_a_clock_that_steps_back_lowers_no_newer_days_count() -> None:
    balance = reserve(a_balance(total_atomic=9), usdc(5), now=MIDNIGHT)
    assert daily_spend(balance, MIDNIGHT - 1) == 5
    balance = reserve(balance, usdc(3), now=MIDNIGHT - 1)
    assert daily_spend(balance, MIDNIGHT) == 8
    back = void_reserved_amount(balance, usdc(3), counted_at=MIDNIGHT - 1)
    assert daily_spend(back, MIDNIGHT) == 8  # when it was counted is not certain: the higher stays


def test_what_does_not_count_is_reserved_and_given_back_without_a_trace() -> None:
    before = reserve(a_balance(total_atomic=9), usdc(5), now=NOW)
    balance = reserve(before, usdc(3), now=NOW + DAY, counts=False)
    assert (balance.reserved_atomic, daily_spend(balance, NOW)) == (8, 5)
    assert void_reserved_amount(balance, usdc(3), counted_at=None) == before


def test_a_balance_stored_before_there_were_limits_reads_as_nothing_spent() -> None:
    document = b'{"id":"vault_1/USDC","asset_id":"8453/USDC","total":"5","height":3,"reserved":"2"}'
    balance = decode(VaultBalance, document.replace(b"{", b'{"version":1,"schema":1,', 1))
    assert (balance.reserved_atomic, daily_spend(balance, NOW)) == (2, 0)
    assert decode(VaultBalance, encode(reserve(balance, usdc(3), now=NOW))).spent_atomic == 3


def test_a_balance_is_named_after_its_vault_and_symbol() -> None:
    assert balance_id("vault_1", "USDC") == a_balance().id
    assert VaultBalance(id="x", asset_id=USDC.id).height < 0


@given(
    counted_days=st.lists(st.integers(-3, 9), max_size=4),
    today=st.integers(-3, 9),
    wait=st.integers(1, 3),
)
def test_whatever_a_clock_counted_a_limit_is_empty_again_in_two_days(
    counted_days: list[int], today: int, wait: int
) -> None:
    """Also after authorizations under a clock that was days ahead, or behind."""
    balance = a_balance(total_atomic=100)
    for day in counted_days:
        balance = reserve(balance, usdc(5), now=MIDNIGHT + day * DAY)
    now = MIDNIGHT + today * DAY
    balance = reserve(balance, usdc(3), now=now)
    assert 3 <= daily_spend(balance, now) <= 3 + 5 * len(counted_days)
    later = now + (1 + wait) * DAY
    assert daily_spend(balance, later) == 0
    assert daily_spend(reserve(balance, usdc(2), now=later), later) == 2
