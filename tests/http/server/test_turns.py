"""Owners take turns, against a model that keeps a list."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from payments_core_http.server.turns import Turns


class TurnsModel(RuleBasedStateMachine):
    """Owners by turn, each with its items in order of arrival."""

    @initialize(owners=st.none() | st.integers(1, 3), items=st.none() | st.integers(1, 3))
    def begin(self, owners: int | None, items: int | None) -> None:
        self.owners, self.items = owners, items
        self.turns: Turns[int] = Turns(owners, items)
        self.waiting: list[tuple[str, list[int]]] = []
        self.number = 0

    @rule(owner=st.sampled_from("abcd"))
    def append(self, owner: str) -> None:
        self.number += 1
        self.turns.append(owner, self.number)
        for name, items in self.waiting:
            if name == owner:
                items.append(self.number)
                if self.items is not None:
                    del items[: -self.items]
                return
        if self.owners is None or len(self.waiting) < self.owners:
            self.waiting.append((owner, [self.number]))

    @precondition(lambda self: self.waiting)
    @rule()
    def take(self) -> None:
        owner, [first, *others] = self.waiting.pop(0)
        assert self.turns.take() == first
        if others:
            self.waiting.append((owner, others))

    @precondition(lambda self: self.waiting)
    @rule()
    def take_turn(self) -> None:
        owner, items = self.turns.take_turn()
        assert (owner, list(items)) == self.waiting.pop(0)

    @rule()
    def take_all(self) -> None:
        assert self.turns.take_all() == [item for _, items in self.waiting for item in items]
        self.waiting.clear()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert len(self.turns) == sum(len(items) for _, items in self.waiting)
        assert bool(self.turns) is bool(self.waiting)


def test_owners_take_turns_as_a_list_says() -> None:
    run_state_machine_as_test(
        TurnsModel, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )


def test_nothing_is_taken_where_nothing_waits() -> None:
    with pytest.raises(StopIteration):
        Turns[int]().take()
