"""Notices of providers: verified, stored once, routed to their case, kept if it is unknown."""

from __future__ import annotations

import logging

import pytest

from payments_core.accounts.record import Account
from payments_core.accounts.verification.port import KycFinding
from payments_core.accounts.verification.record import Verification
from payments_core.engine.audit import PROGRAM
from payments_core.errors import (
    InvalidState,
    NotFound,
    ProviderSignatureInvalid,
    ValidationFailed,
)
from payments_core.notices import jobs
from payments_core.notices.operations import ProviderNotices
from payments_core.notices.record import StoredNotice
from tests.service.notices.office import Office, notice
from tests.service.world import World

HOUR = 3_600


@pytest.fixture
def office(world: World) -> Office:
    """The provider of the world's service."""
    office = Office()
    world.service = world.restarted(kyc=office)
    return office


@pytest.fixture
def door(world: World, office: Office) -> ProviderNotices:
    return world.service.parts.provider_notices


def start(world: World) -> Verification:
    return world.resources.verifications.start(world.payer.id)


def receive(door: ProviderNotices, *pairs: tuple[str, str]) -> None:
    door.receive("sandbox", "kyc", "office", *notice(*pairs))


def statuses(door: ProviderNotices) -> dict[str, str]:
    return {
        one.notice_id: one.status
        for status in ("received", "routed", "unknown")
        for one in door.list("sandbox", status).records
    }


def kyc_of(world: World) -> str:
    return world.get(Account, world.payer.id).kyc_status


@pytest.mark.parametrize("finding", ["approved", "rejected"])
def test_a_notice_has_the_decision_stored(
    world: World, office: Office, door: ProviderNotices, finding: KycFinding
) -> None:
    started = start(world)
    office.findings[str(started.reference)] = finding
    receive(door, ("n1", str(started.reference)))
    world.run()
    assert world.get(Verification, started.id).status == finding
    assert kyc_of(world) == finding
    assert office.looks == [started.reference]
    assert statuses(door) == {"n1": "routed"}


def test_without_a_notice_the_provider_is_asked_less_and_less_often(
    world: World, office: Office
) -> None:
    started = start(world)
    world.advance(HOUR)
    asked = len(office.looks)
    assert 5 <= asked <= 20
    world.advance(24 * HOUR)
    assert len(office.looks) - asked <= 20
    office.findings[str(started.reference)] = "approved"
    world.advance(7 * HOUR)
    assert kyc_of(world) == "approved"
    ended = len(office.looks)
    world.advance(24 * HOUR)
    assert len(office.looks) == ended


def test_repeats_and_old_notices_change_nothing(
    world: World, office: Office, door: ProviderNotices
) -> None:
    started = start(world)
    office.findings[str(started.reference)] = "approved"
    for _ in range(3):
        receive(door, ("n1", str(started.reference)), ("n1", str(started.reference)))
    world.run()
    receive(door, ("n1", str(started.reference)))
    receive(door, ("n2", str(started.reference)))  # it reports an earlier state, later
    world.run()
    assert world.event_names()["account.updated"] == 2  # pending, approved
    assert statuses(door) == {"n1": "routed", "n2": "routed"}
    assert len(office.looks) == 1


def test_what_is_not_signed_stores_nothing(world: World, door: ProviderNotices) -> None:
    started = start(world)
    headers, body = notice(("n1", str(started.reference)))
    for wrong, sent in (({}, body), (headers, body + b" "), ({"office-signature": "0"}, body)):
        with pytest.raises(ProviderSignatureInvalid):
            door.receive("sandbox", "kyc", "office", wrong, sent)
    assert statuses(door) == {}


@pytest.mark.parametrize(
    ("mode", "kind", "name"),
    [("sandbox", "kyc", "other"), ("sandbox", "bank", "office"), ("sandbox", "nothing", "office")],
)
def test_other_doors_are_closed(door: ProviderNotices, mode: str, kind: str, name: str) -> None:
    with pytest.raises(NotFound):
        door.receive(mode, kind, name, *notice(("n1", "case")))


@pytest.mark.parametrize(
    ("pairs", "path"),
    [
        ([("", "case")], "notices[0].id"),
        ([("n", "case"), ("n2", "")], "notices[1].reference"),
        ([("n", "x" * 501)], "notices[0].reference"),
        ([("n\x00", "case")], "notices[0].id"),
        ([(f"n{number}", "case") for number in range(101)], "notices"),
    ],
)
def test_what_cannot_be_stored_is_refused_whole(
    door: ProviderNotices, pairs: list[tuple[str, str]], path: str
) -> None:
    with pytest.raises(ValidationFailed) as refused:
        receive(door, *pairs)
    assert [fault.path for fault in refused.value.fields] == [path]
    assert statuses(door) == {}


def test_a_notice_that_comes_before_its_case_waits_for_it(
    world: World, office: Office, door: ProviderNotices
) -> None:
    receive(door, ("early", "case-7"))
    world.advance(30)
    assert statuses(door) == {"early": "received"}
    office.next_reference, office.findings["case-7"] = "case-7", "approved"
    start(world)
    world.advance(60)
    assert statuses(door) == {"early": "routed"}
    assert kyc_of(world) == "approved"


def test_an_unknown_case_is_kept_with_an_alarm_and_found_on_a_retry(
    world: World, office: Office, door: ProviderNotices, caplog: pytest.LogCaptureFixture
) -> None:
    receive(door, ("n1", "case-of-nobody"))
    with caplog.at_level(logging.ERROR):
        world.advance(20 * 60)
    assert statuses(door) == {"n1": "unknown"}
    assert sum("ALARM: a notice of kyc/office" in line for line in caplog.messages) == 1
    [kept] = door.list("sandbox").records
    world.advance(2 * 24 * HOUR)
    assert door.list("sandbox").records == (kept,)
    office.next_reference, office.findings["case-of-nobody"] = "case-of-nobody", "rejected"
    start(world)
    door.retry("sandbox", kept.id)
    with pytest.raises(InvalidState):
        door.retry("sandbox", kept.id)
    world.run()
    assert statuses(door) == {"n1": "routed"}
    assert kyc_of(world) == "rejected"
    [entry] = world.service.parts.audit_trail.list_deployment().records
    assert (entry.operation, entry.actor, entry.object_id) == ("notices.retry", PROGRAM, kept.id)
    with pytest.raises(NotFound):
        door.retry("sandbox", "sandbox:kyc:office:none")
    with pytest.raises(NotFound):
        door.retry("production", kept.id)


def test_routed_notices_are_deleted_after_a_while(
    world: World, office: Office, door: ProviderNotices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "KEPT_MS", 2 * HOUR * 1_000)
    started = start(world)
    office.findings[str(started.reference)] = "approved"
    receive(door, ("n1", str(started.reference)))
    world.advance(HOUR)
    assert statuses(door) == {"n1": "routed"}
    world.advance(2 * HOUR)
    assert statuses(door) == {}


def test_a_silent_provider_is_asked_again(
    world: World, office: Office, door: ProviderNotices
) -> None:
    started = start(world)
    office.is_down = True
    receive(door, ("n1", str(started.reference)))
    world.advance(300)
    assert len(office.looks) > 5
    assert kyc_of(world) == "pending"
    office.is_down, office.findings[str(started.reference)] = False, "approved"
    world.advance(61)
    assert kyc_of(world) == "approved"


def test_what_an_operator_decided_meanwhile_stands(
    world: World, office: Office, door: ProviderNotices
) -> None:
    started = start(world)
    office.findings[str(started.reference)] = "approved"
    looked = office.look

    def decide_first(reference: str) -> KycFinding:
        world.resources.verifications.decide(world.payer.id, "rejected", verification_id=started.id)
        return looked(reference)

    office.look = decide_first  # type: ignore[method-assign]
    receive(door, ("n1", str(started.reference)))
    world.run()
    assert kyc_of(world) == "rejected"


def test_a_provider_that_reports_before_it_knows_itself_is_asked_once_more(
    world: World, office: Office, door: ProviderNotices
) -> None:
    started = start(world)
    world.advance(48 * HOUR)  # by now it is polled every six hours
    receive(door, ("n1", str(started.reference)))
    world.run()
    asked = len(office.looks)
    office.findings[str(started.reference)] = "approved"
    world.advance(90)
    assert (kyc_of(world), len(office.looks)) == ("approved", asked + 1)
    world.advance(HOUR)
    assert len(office.looks) == asked + 1


def test_what_is_no_finding_decides_nothing_and_is_asked_for_again(
    world: World, office: Office, door: ProviderNotices
) -> None:
    started = start(world)
    office.findings[str(started.reference)] = "Approved"  # type: ignore[assignment]
    receive(door, ("n1", str(started.reference)))
    world.advance(30)
    assert kyc_of(world) == "pending"
    assert len(office.looks) > 1
    office.findings[str(started.reference)] = "approved"
    world.advance(120)
    assert kyc_of(world) == "approved"


def test_a_case_that_cannot_be_looked_at_keeps_no_other_waiting(
    world: World, office: Office, door: ProviderNotices
) -> None:
    started = start(world)
    office.findings[str(started.reference)] = "Approved"  # type: ignore[assignment]
    other = world.resources.verifications.start(world.merchant.id)
    office.findings[str(other.reference)] = "rejected"
    receive(door, ("n1", str(started.reference)))
    world.run()
    receive(door, ("n2", str(other.reference)))
    world.run()
    assert world.get(Verification, other.id).status == "rejected"


def test_one_request_twice_at_once_is_stored_once(world: World, door: ProviderNotices) -> None:
    request = notice(("n1", str(start(world).reference)))
    first, second = (door.read_new("sandbox", "kyc", "office", *request) for _ in range(2))
    door.store("sandbox", first)
    door.store("sandbox", second)
    assert statuses(door) == {"n1": "received"}
    assert door.read_new("sandbox", "kyc", "office", *request) == []


def test_stored_notices_hold_no_secret(world: World, door: ProviderNotices) -> None:
    receive(door, ("n1", "case"))
    [stored] = door.list("sandbox", "received").records
    assert isinstance(stored, StoredNotice)
    assert "signature" not in repr(stored)
