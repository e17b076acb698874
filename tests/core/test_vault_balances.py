"""A vault's balance: never below zero, and never reserved twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.errors import InsufficientBalance, PolicyInactive
from payments_core.money import Money, MoneyError
from payments_core.vaults.lifecycle import (
    BalanceOutdated,
    check_policy,
    give_back,
    observed,
    reserve,
    spent,
)
from payments_core.vaults.operations import Holding
from payments_core.vaults.record import Policy, VaultBalance, balance_id
from tests.core.examples import NOW, USDC, a_balance

Move = tuple[str, int]
MOVES = st.lists(
    st.tuples(st.sampled_from(["fund", "reserve", "give_back", "spend"]), st.integers(0, 50)),
    max_size=40,
)


def usdc(amount: int) -> Money:
    return Money(amount, USDC.id)


@given(MOVES)
def test_whatever_happens_reservations_never_pass_the_total(moves: list[Move]) -> None:
    """A model of the chain beside it: what is reserved is covered, to the unit, at all times."""
    balance, on_chain, height, live = a_balance(), 0, 0, []
    for move, amount in moves:
        if move == "fund":
            on_chain, height = on_chain + amount, height + 1
        elif move == "reserve":
            current = observed(balance, on_chain, height)
            if amount <= on_chain - sum(live):
                balance = reserve(current, usdc(amount))
                live.append(amount)
            else:
                with pytest.raises(InsufficientBalance) as caught:
                    reserve(current, usdc(amount))
                assert caught.value.available_atomic == on_chain - sum(live)
        elif live and move == "give_back":
            balance = give_back(balance, usdc(live.pop()))
        elif live and move == "spend":
            gone = live.pop()
            on_chain, height = on_chain - gone, height + 1
            balance = spent(balance, usdc(gone), on_chain, height)
        assert balance.reserved == sum(live)
        assert 0 <= balance.available.amount_atomic == max(0, balance.total - sum(live))
        assert sum(live) <= on_chain


def test_the_exact_balance_can_be_reserved() -> None:
    full = reserve(a_balance(total=5), usdc(5))
    assert full.available == usdc(0)
    with pytest.raises(InsufficientBalance):
        reserve(full, usdc(1))


def test_an_older_answer_of_the_chain_is_refused() -> None:
    balance = observed(a_balance(), 5, 10)
    assert (balance.total, balance.height) == (5, 10)
    assert observed(balance, 6, 10).total == 6
    with pytest.raises(BalanceOutdated):
        observed(balance, 6, 9)
    with pytest.raises(BalanceOutdated):
        spent(balance, usdc(1), 4, 9)


def test_the_first_block_is_new_to_a_balance_never_asked_for() -> None:
    assert observed(a_balance(), 0, 0).height == 0


def test_another_assets_amount_is_not_reserved() -> None:
    with pytest.raises(MoneyError):
        reserve(a_balance(total=5), Money(1, "1/USDT"))


def test_a_vault_emptied_from_outside_has_nothing_available() -> None:
    balance = observed(reserve(a_balance(total=5), usdc(5)), 2, 1)
    assert balance.available == usdc(0)
    with pytest.raises(InsufficientBalance):
        reserve(balance, usdc(1))
    assert Holding(USDC, 2, 5).available_atomic == 0


def test_a_paused_policy_lets_nothing_out() -> None:
    active = Policy(id="policy_1", vault_id="vault_1", created_at=NOW, updated_at=NOW)
    check_policy(active)
    paused = Policy(
        id="policy_1", vault_id="vault_1", status="paused", created_at=NOW, updated_at=NOW
    )
    with pytest.raises(PolicyInactive):
        check_policy(paused)


def test_a_balance_is_named_after_its_vault_and_symbol() -> None:
    assert balance_id("vault_1", "USDC") == a_balance().id
    assert VaultBalance(id="x", asset_id=USDC.id).height < 0
