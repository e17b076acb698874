"""Places that owners share, against a list of who has them."""

from __future__ import annotations

import threading

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from payments_core.engine.shares import Places, Shares


class SharesModel(RuleBasedStateMachine):
    """Any owners take and give back, as far as they may."""

    @initialize(places=st.integers(1, 12), most=st.none() | st.integers(1, 4))
    def begin(self, places: int, most: int | None) -> None:
        self.places, self.most = places, most
        self.shares = Shares(places, most)
        self.held: list[str] = []

    def may_take(self, owner: str, held: list[str]) -> bool:
        free, own = self.places - len(held), held.count(owner)
        return free > 0 and own < (free if self.most is None else self.most)

    @rule(owner=st.sampled_from("abcd"))
    def take(self, owner: str) -> None:
        after = list(self.held)
        while self.may_take(owner, after):
            after.append(owner)
        room = self.shares.measure_room(owner)
        assert max(0, room) == len(after) - len(self.held)
        if room > 0:
            self.shares.take(owner)
            self.held.append(owner)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from(self.held))
        self.held.remove(owner)
        self.shares.give_back(owner)

    @invariant()
    def no_owner_is_remembered_for_nothing(self) -> None:
        assert set(self.shares._taken) == set(self.held)
        assert self.shares._taken.total() == len(self.held) <= self.places


def test_owners_have_what_a_list_says() -> None:
    run_state_machine_as_test(
        SharesModel, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )


@given(st.integers(1, 200), st.integers(1, 6))
def test_each_owner_that_takes_all_it_may_leaves_half(places: int, owners: int) -> None:
    shares, free = Shares(places), places
    for number in range(owners):
        taken = shares.measure_room(str(number))
        shares.take(str(number), taken)
        assert taken == (free + 1) // 2
        free -= taken
    assert (shares.measure_room("another") > 0) is (free > 0)


def test_a_place_comes_back_though_its_own_thread_is_taking_another() -> None:
    """What gives it back may be a finalizer, which runs in the middle of anything."""
    places = Places(3, 1)
    give_back = places.take("env_1")
    assert give_back is not None
    assert places.take("env_1") is None
    giving = threading.Thread(target=give_back, daemon=True)
    with places._lock:
        giving.start()
        giving.join(10)
        assert not giving.is_alive()
    assert places.take("env_1") is not None
    assert places.take("env_1") is None
