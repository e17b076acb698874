"""The law of screening, under any verdicts at any times: nothing is signed to or from somebody
without a clear verdict that counts then, of the provider or of an operator."""

from __future__ import annotations

import contextlib

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.outbox.screening import ANSWERS_COUNT_MS
from payments_core.clock import Instant
from payments_core.errors import InvalidState
from payments_core.screening.judging import Decided
from payments_core.screening.port import Outcome, ScreeningRequest, Verdict
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.conftest import funded
from tests.service.screening.desk import Desk
from tests.service.screening.owners import OWNERS, RELEASED, Case, list_held
from tests.service.world import WALLET, World

OWNERS_HERE = ("release", "send", "refund", "return of a receipt")
SUBJECTS = (RELEASED, WALLET)
CONCERNED = {"release": (RELEASED, WALLET), "send": (RELEASED,)}
"""Whom a transfer concerns; the others go back to the wallet."""


@attrs.frozen
class Answer:
    """What was said of somebody, when, and until when it counts."""

    reference: str
    outcome: str
    at: Instant
    until: Instant


class LoggingDesk(Desk):
    """A desk that remembers what it has said."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock)
        self.said: list[Answer] = []

    def screen(self, request: ScreeningRequest) -> Verdict:
        verdict = super().screen(request)
        reference, now = request.subject.reference, self.clock.now()
        self.said.append(Answer(reference, verdict.outcome, now, verdict.valid_until_ms))
        return verdict


class Play:
    """A world under any operations; `check` looks at what has been signed since."""

    def __init__(self) -> None:
        self.world = funded(MemoryStorage())
        self.world.fund("900.00")
        self.desk = LoggingDesk(self.world)
        self.world.service = self.world.restarted(screening=self.desk)
        self.cases: list[tuple[Case, tuple[str, ...]]] = []
        self.decided: dict[tuple[str, str], str] = {}
        self.checked: set[str] = set()

    def begin(self, owner: str) -> None:
        with contextlib.suppress(InvalidState):  # what is held cannot be refunded
            case = OWNERS[owner](self.world, self.desk)
            self.cases.append((case, CONCERNED.get(owner, (WALLET,))))
        self.check()

    def say(self, subject: str, outcome: Outcome) -> None:
        self.desk.says[subject] = outcome

    def answer(self, is_down: bool, valid_for_s: int) -> None:
        self.desk.is_down, self.desk.valid_for_ms = is_down, valid_for_s * 1_000

    def advance(self, seconds: int) -> None:
        self.world.advance(seconds)
        self.check()

    def decide(self, place: int, outcome: Decided) -> None:
        held = [*list_held(self.world), *list_held(self.world, "blocked")]
        if held:
            one = held[place % len(held)]
            shop = self.world.service.environment(self.world.environment_id)
            shop.screening.decide(one.id, outcome, operator="ann")
            self.decided[one.resource, one.subject.reference] = outcome
        self.check()

    def check(self) -> None:
        for case, concerned in self.cases:
            id = case.read().transfer_id
            if id is None or id in self.checked or not case.is_signed:
                continue
            self.checked.add(id)
            signed_at = self.world.get(OutboundTransfer, id).signed_at_ms
            assert signed_at is not None
            for reference in concerned:
                self.require_clear(case.resource, reference, signed_at)

    def require_clear(self, resource: str, reference: str, signed_at: Instant) -> None:
        if self.decided.get((resource, reference)) == "clear":
            return
        said = [one for one in self.desk.said if one.reference == reference and one.at <= signed_at]
        assert said, f"nobody was asked about {reference}"
        last = said[-1]
        assert last.outcome == "clear"
        counts_until = max(last.until, last.at + 5 * ANSWERS_COUNT_MS)  # for its own transfer
        assert signed_at <= counts_until


STEPS = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from(OWNERS_HERE)),
    st.tuples(
        st.just("say"), st.sampled_from(SUBJECTS), st.sampled_from(["clear", "review", "blocked"])
    ),
    st.tuples(st.just("answer"), st.booleans(), st.sampled_from([0, 30, 3_600])),
    st.tuples(st.just("advance"), st.sampled_from([1, 40, 400, 4_000, 30_000])),
    st.tuples(st.just("decide"), st.integers(0, 5), st.sampled_from(["clear", "blocked"])),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, min_size=4, max_size=16))
def test_nothing_is_signed_without_a_clear_verdict_that_counts(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    play = Play()
    for name, *arguments in steps:
        getattr(play, name)(*arguments)
    play.desk.says.clear()
    play.answer(is_down=False, valid_for_s=3_600)
    play.advance(30_000)
    assert list_held(play.world) == []  # all that is clear now has gone
