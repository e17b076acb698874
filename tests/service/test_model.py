"""Any order of public operations and mishaps: the money is where the books say, after each of them.

The rules, what must hold, and the world are in `model/`; `make soak` plays a million steps of it.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.service.model.episode import Episode, length_of, run
from tests.service.model.mishaps import RULES
from tests.service.model.rules import Act

STEPS = 1_000
"""Of each test of seeds; with the nine fixed ones and the one of chance that is 10,000."""

FIXED = range(0, 9_000, 1_000)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", FIXED)
def test_every_invariant_holds_after_every_step_of_known_seeds(first: int) -> None:
    play(first)


@pytest.mark.timeout(300)
def test_every_invariant_holds_after_every_step_of_a_new_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = random.SystemRandom().randrange(10**9)
    with capsys.disabled():
        print(f" seed {first} ", end="")
    play(first)


def test_a_seed_plays_the_same_again() -> None:
    assert run(5).tally == run(5).tally


def play(first: int) -> None:
    """Episodes of this seed and the next ones, until there were enough steps."""
    seed, left = first, STEPS
    while left > 0:
        run(seed, most=left)
        left -= length_of(seed)
        seed += 1


class Model(RuleBasedStateMachine):
    """The same rules in orders that Hypothesis chooses, and makes short where one is wrong."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.episode = Episode(seed)
        self.steps = 0

    @rule(
        act=st.sampled_from([act for weight, act in RULES for _ in range(weight)]),
        rng=st.randoms(use_true_random=False),
    )
    def step(self, act: Act, rng: random.Random) -> None:
        self.episode.step(self.steps, act, rng)
        self.steps += 1

    def teardown(self) -> None:
        if hasattr(self, "episode"):
            self.episode.end()


Model.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestModel = pytest.mark.timeout(300)(Model.TestCase)
