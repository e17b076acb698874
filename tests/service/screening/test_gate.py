"""Every owner of a screened transfer under every verdict: nothing is signed that is not clear."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from payments_core.addresses import normalize_address
from payments_core.chains.outbox import screening as gate
from payments_core.clock import HOUR
from payments_core.evolve import evolve
from payments_core.payments import payer_totals, screening
from payments_core.screening.port import ScreeningRequest, Verdict
from payments_core.screening.record import ScreeningVerdict
from payments_core.storage.port import Storage
from payments_core.telemetry import HeldFinding, NoopTelemetry
from tests.service.notices.office import new_id, notice
from tests.service.screening.desk import Desk, case_of
from tests.service.screening.owners import OWNERS, RELEASED, Case, list_held, screened, send
from tests.service.world import World, write

Begin = Callable[[World, Desk], Case]


@pytest.fixture(params=OWNERS)
def case(request: pytest.FixtureRequest, storage: Storage) -> Case:
    world, desk = screened(storage)
    made = OWNERS[request.param](world, desk)
    desk.asked.clear()
    return made


def until(case: Case, holds: Callable[[], bool]) -> None:
    case.world.advance_until(holds, 20)


def run(case: Case) -> None:
    """Let the transfer come to its gate."""
    case.world.run()
    case.world.advance(90)


def test_what_is_clear_is_signed_after_one_call(case: Case) -> None:
    until(case, lambda: case.is_signed)
    assert case.desk.references.count(case.subject) <= 1
    assert case.held() == case.held("blocked") == []


def test_what_is_in_review_waits_until_it_is_clear(case: Case) -> None:
    case.desk.says[case.subject] = "review"
    until(case, lambda: case.in_review)
    run(case)
    assert (case.status, case.is_signed) == (case.waits_as, False)
    [held] = case.held()
    assert (held.subject.reference, held.resource) == (case.subject, case.resource)
    assert (held.case, held.reason) == (case_of(case.subject), "listed as review")
    assert case.world.event_names()["payment.in_review"] <= 1
    case.desk.says.clear()
    case.world.advance(2 * 3_600)
    assert case.is_signed
    assert not case.in_review
    assert case.held() == case.held("blocked") == []


def test_a_provider_that_does_not_answer_holds_too(case: Case) -> None:
    case.desk.is_down = True
    until(case, lambda: case.in_review)
    run(case)
    assert (case.status, case.is_signed) == (case.waits_as, False)
    assert case.held()[0].case is None
    case.desk.is_down = False
    case.world.advance(3_600)
    assert case.is_signed
    assert case.held() == []


@pytest.mark.parametrize("first", ["review", None])
def test_what_is_blocked_is_stopped(case: Case, first: Any) -> None:
    if first is not None:
        case.desk.says[case.subject] = first
        until(case, lambda: case.in_review)
    case.desk.says[case.subject] = "blocked"
    until(case, lambda: case.status == case.blocked_as)
    case.world.advance(3_600)
    assert (case.status, case.in_review) == (case.blocked_as, False)
    assert not case.is_signed
    [held] = case.held("blocked")
    assert (held.subject.reference, held.reason) == (case.subject, "listed as blocked")
    assert case.held() == []


def test_what_an_operator_clears_is_signed_though_the_provider_does_not(case: Case) -> None:
    case.desk.says[case.subject] = "review"
    until(case, lambda: case.in_review)
    case.decide("clear")
    until(case, lambda: case.is_signed)
    assert case.held() == []
    [held] = [one for one in _decisions(case) if one.decided_by is not None]
    assert (held.outcome, held.decided_by) == ("clear", "ann")


def test_what_an_operator_blocks_is_stopped_until_an_operator_clears_it(case: Case) -> None:
    case.desk.says[case.subject] = "review"
    until(case, lambda: case.in_review)
    case.decide("blocked")
    until(case, lambda: case.status == case.blocked_as)
    case.desk.says.clear()
    case.world.advance(8 * 3_600)
    assert not case.is_signed
    assert case.held() == []
    [held] = case.held("blocked")
    assert held.decided_by == "ann"
    shop = case.world.service.environment(case.world.environment_id)
    shop.screening.decide(held.id, "clear", operator="ben")
    until(case, lambda: case.held("blocked") == [])
    [decided] = [one for one in _decisions(case) if one.decided_by is not None]
    assert (decided.outcome, decided.decided_by) == ("clear", "ben")
    if case.again is not None:
        case.again()
        until(case, lambda: case.is_signed)


def test_what_was_blocked_passes_once_an_operator_clears_it(case: Case) -> None:
    case.desk.says[case.subject] = "blocked"
    until(case, lambda: case.status == case.blocked_as)
    if case.again is not None:
        case.again()
        until(case, lambda: case.status == case.blocked_as)
        assert not case.is_signed
    for held in case.held("blocked"):
        shop = case.world.service.environment(case.world.environment_id)
        shop.screening.decide(held.id, "clear", operator="ann")
    if case.again is not None:
        case.again()
    until(case, lambda: case.is_signed)
    assert case.held() == case.held("blocked") == []


def test_what_is_requested_again_has_one_hold(case: Case) -> None:
    """The operator sees one case, however often it is requested, and none once it passes."""
    case.desk.says[case.subject] = "blocked"
    until(case, lambda: case.status == case.blocked_as)
    [first] = case.held("blocked")
    if case.again is None:
        return
    transfers = {first.transfer_id}
    for _ in range(2):
        case.again()
        until(case, lambda: case.status == case.blocked_as)
        [held] = case.held("blocked")
        assert (held.id, held.created_at_ms) == (first.id, first.created_at_ms)
        transfers.add(held.transfer_id)
    assert len(transfers) == 3
    case.desk.says[case.subject] = "review"
    case.again()
    until(case, lambda: case.in_review)
    assert (len(case.held()), case.held("blocked")) == (1, [])
    case.desk.says[case.subject] = "blocked"
    until(case, lambda: case.status == case.blocked_as)
    assert (case.held(), [one.id for one in case.held("blocked")]) == ([], [first.id])
    case.desk.says.clear()
    case.again()
    until(case, lambda: case.is_signed)
    assert case.held() == case.held("blocked") == []


def test_a_verdict_that_counts_is_not_asked_for_again_and_one_that_is_late_is(case: Case) -> None:
    until(case, lambda: case.is_signed)
    case.world.finish()
    asked = len(case.desk.asked)
    other = OWNERS["send"](case.world, case.desk)
    case.world.fund("100.00")
    case.world.run()
    before = case.desk.references[asked:].count(other.subject)
    again = OWNERS["send"](case.world, case.desk)
    case.world.run()
    assert again.is_signed
    assert case.desk.references[asked:].count(other.subject) == before
    case.world.advance(HOUR // 1_000 + 1)
    late = OWNERS["send"](case.world, case.desk)
    case.world.run()
    assert late.is_signed
    assert case.desk.references[asked:].count(other.subject) == before + 1


def _decisions(case: Case) -> list[ScreeningVerdict]:
    ids = [f"{case.resource}:{way}:{kind}" for way in ("in", "out") for kind in _keys(case.subject)]
    found = case.world.storage.read(
        case.world.environment_id, lambda snapshot: snapshot.get_many(ScreeningVerdict, ids)
    )
    return list(found.values())


def _keys(reference: str) -> tuple[str, str]:
    return f"address:8453:{reference}", f"bank_account:{reference}"


def test_the_smallest_of_very_many_senders_is_screened_too(
    memory_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Payment's record keeps the largest senders alone."""
    for module in (payer_totals, screening):
        monkeypatch.setattr(module, "MAX_PAYERS", 3)
    world = memory_world
    desk = Desk(world.clock)
    world.service = world.restarted(screening=desk)
    payment = world.payment("25.00")
    senders = [f"0x000000000000000000000000000000000000000{digit}" for digit in range(1, 6)]
    desk.says[senders[0]] = "blocked"
    world.pay(payment, "0.01", senders[0])
    for sender in senders[1:]:
        world.pay(payment, "6.25", sender)
    world.finish()
    paid = world.paid(payment.payment.id)
    assert senders[0] not in {one.address for one in paid.paid_by}
    assert (paid.status, paid.failure) == ("action_required", "sender_blocked")


def test_a_verdict_for_one_request_clears_no_other_transfer(memory_world: World) -> None:
    """A provider may judge by the amount: what clears a small transfer clears no large one."""

    class ByAmount(Desk):
        def screen(self, request: ScreeningRequest) -> Verdict:
            is_large = request.amount_atomic is not None and request.amount_atomic > 5_000_000
            self.says = {RELEASED: "review"} if is_large else {}
            return super().screen(request)

    world, desk = memory_world, ByAmount(memory_world.clock)
    desk.valid_for_ms = 0
    world.service = world.restarted(screening=desk)
    world.fund("100.00")
    send(world, "2.00")
    world.finish()  # the next transfers of this sender are signed together
    small, large = (send(world, amount) for amount in ("1.00", "25.00"))
    world.finish()
    assert [world.paid(id).status for id in (small, large)] == ["succeeded", "processing"]


@attrs.frozen
class Reports(NoopTelemetry):
    """What was reported of transfers that are held."""

    held: list[HeldFinding] = attrs.field(factory=list)

    def record_held(self, finding: HeldFinding) -> None:
        self.held.append(finding)


def test_each_hold_is_reported_once(memory_world: World) -> None:
    world, desk, reports = memory_world, Desk(memory_world.clock), Reports()
    world.fund("100.00")
    world.service = world.restarted(screening=desk, telemetry=reports)
    desk.is_down = True
    id = send(world, "25.00")
    world.advance(120)
    assert reports.held == ["silent"]
    desk.is_down, desk.says = False, {RELEASED: "blocked"}
    world.advance(600)
    assert world.paid(id).status == "action_required"
    assert reports.held == ["silent", "blocked"]


class SlowDesk(Desk):
    """A desk that takes a second for each answer, which counts for its request alone."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(world.clock)
        self.valid_for_ms, self.now_s = 0, 0.0
        monkeypatch.setattr(gate, "time", SimpleNamespace(monotonic=lambda: self.now_s))

    def screen(self, request: ScreeningRequest) -> Verdict:
        self.now_s += 1.0
        answer = super().screen(request)
        return attrs.evolve(answer, case=case_of(request.subject.reference))


def begin_release_of_many(world: World, desk: Desk) -> str:
    """The id of a Payment that 45 senders have covered."""
    world.service = world.restarted(screening=desk)
    payment = world.payment("45.00")
    for number in range(45):
        world.pay(payment, "1.00", normalize_address("evm", f"0x{0xABC000 + number:040x}"))
    return payment.payment.id


def test_a_slow_provider_is_asked_once_for_each_of_very_many_senders(
    memory_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look has no time for all of them: the answers count for the transfer in the next one."""
    desk = SlowDesk(memory_world, monkeypatch)
    id = begin_release_of_many(memory_world, desk)
    memory_world.advance_until(lambda: memory_world.paid(id).status == "succeeded", 120)
    assert len(desk.asked) == len(set(desk.references)) == 46
    assert list_held(memory_world) == []


@pytest.mark.parametrize(("valid_for_ms", "kept"), [(0, 7), (HOUR, 0)])
def test_a_hold_keeps_a_bounded_number_of_answers_and_none_that_counts_by_itself(
    memory_world: World, monkeypatch: pytest.MonkeyPatch, valid_for_ms: int, kept: int
) -> None:
    """Anybody may pay from thousands of senders, and the hold must fit into a document."""
    monkeypatch.setattr(gate, "MAX_CLEARED", 7)
    world, desk = memory_world, SlowDesk(memory_world, monkeypatch)
    desk.valid_for_ms = valid_for_ms
    id = begin_release_of_many(world, desk)
    world.advance_until(lambda: "in_review" in world.paid(id).labels, 1, most=90)
    [held] = list_held(world)
    assert len(held.cleared) == kept
    if valid_for_ms:
        world.advance_until(lambda: world.paid(id).status == "succeeded", 120)
        assert len(desk.asked) == 46


def test_an_answer_of_an_earlier_look_counts_for_no_other_transfer_of_the_job(
    memory_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a reorg the owner may name another one, and the job looks at it in its next turn."""
    world, desk = memory_world, SlowDesk(memory_world, monkeypatch)
    id = begin_release_of_many(world, desk)
    world.advance_until(lambda: "in_review" in world.paid(id).labels, 1, most=90)
    earlier = len(desk.asked)
    [held] = list_held(world)
    assert held.cleared
    write(world.storage, world.environment_id, lambda tx: tx.replace(evolve(held, transfer_id="x")))
    world.advance_until(lambda: world.paid(id).status == "succeeded", 120)
    assert len(desk.asked) == earlier + 46


@pytest.mark.parametrize("ends", ["notice", "pause"])
def test_an_answer_of_an_earlier_look_counts_until_its_case_has_news_or_the_looks_pause(
    memory_world: World, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    world, desk = memory_world, SlowDesk(memory_world, monkeypatch)
    id = begin_release_of_many(world, desk)
    world.advance_until(lambda: "in_review" in world.paid(id).labels, 1, most=90)
    first = desk.references[0]
    if ends == "notice":
        desk.says[first] = "blocked"
        door = world.service.parts.provider_notices
        door.receive("sandbox", "screening", "desk", *notice((new_id(), case_of(first))))
        world.advance(120)
        assert world.paid(id).status == "action_required"
        return
    desk.is_down = True
    world.advance(4 * 3_600)  # its looks are now further apart than its answers count
    desk.is_down = False
    desk.asked.clear()
    world.advance(4 * 3_600)
    assert world.paid(id).status == "succeeded"
    assert first in desk.references
