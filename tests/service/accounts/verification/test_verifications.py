"""Verifications: one at a time, hosted by a provider, decided once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.accounts.record import Account
from payments_core.accounts.verification.operations import Verifications
from payments_core.accounts.verification.port import (
    KycCase,
    KycFinding,
    KycRequest,
    KycUnavailable,
)
from payments_core.accounts.verification.record import Verification
from payments_core.accounts.verification.simulated import SimulatedKyc
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    ValidationFailed,
)
from payments_core.service import PaymentsService
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import RING, NoTransport, World, once


class Provider:
    """A provider that remembers whom it was asked about, and does as the test says in between."""

    def __init__(self) -> None:
        self.asked: list[KycRequest] = []
        self.meanwhile: Callable[[], Any] = lambda: None
        self._simulated = SimulatedKyc()

    def start(self, request: KycRequest) -> KycCase:
        self.asked.append(request)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return self._simulated.start(request)

    def look(self, reference: str) -> KycFinding:
        return self._simulated.look(reference)


def refuse() -> None:
    raise KycUnavailable("no route to host")


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def verifications(world: World, provider: Provider) -> Verifications:
    """Those of a service with the provider above."""
    service = PaymentsService(
        world.storage,
        KeyRing.parse(RING),
        clock=world.clock,
        transport=NoTransport(),
        kyc=provider,
    )
    return service.parts.verifications


def kyc_of(world: World, account: Account | None = None) -> str:
    return world.get(Account, (account or world.payer).id).kyc_status


def listed(world: World) -> list[Verification]:
    return list(world.resources.verifications.list(world.payer.id, limit=100).records)


def test_a_verification_is_hosted_by_the_provider(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    world.resources.accounts.change(world.payer.id, email="p@example.com")
    made = verifications.start(world.server, world.payer.id, return_url="https://acme.example/")
    assert (made.status, made.account_id) == ("pending", world.payer.id)
    assert made.hosted_url == f"https://kyc.invalid/simulated_{made.id}"
    assert made.reference == f"simulated_{made.id}"
    assert provider.asked == [
        KycRequest(
            key=made.id,
            account_id=world.payer.id,
            external_user_id="payer",
            subject_type="individual",
            email="p@example.com",
            return_url="https://acme.example/",
        )
    ]
    assert kyc_of(world) == "pending"
    assert [item.id for item in listed(world)] == [made.id]
    assert verifications.get(world.server, made.id).hosted_url == made.hosted_url
    assert world.event_names()["account.updated"] == 2


def test_one_verification_at_a_time(world: World) -> None:
    world.resources.verifications.start(world.payer.id)
    with pytest.raises(InvalidState) as caught:
        world.resources.verifications.start(world.payer.id)
    assert caught.value.status == "pending"
    world.resources.sandbox.decide_kyc(world.payer.id, "approved")
    with pytest.raises(InvalidState):
        world.resources.verifications.start(world.payer.id)
    world.resources.verifications.start(world.merchant.id)
    assert len(listed(world)) == 1


def test_of_many_starts_at_once_one_succeeds(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    calls = [lambda: verifications.start(world.server, world.payer.id)] * 5
    assert kinds(at_once(calls)) == {"Verification": 1, "InvalidState": 4}
    assert len({request.key for request in provider.asked}) == 1  # one case, however often asked
    assert len(listed(world)) == 1
    assert world.event_names()["account.updated"] == 1


def test_when_the_provider_is_out_of_reach_nothing_is_changed(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    provider.meanwhile = refuse
    before = world.resources.accounts.read(world.payer.id).account
    with pytest.raises(DependencyFailed) as caught:
        verifications.start(world.server, world.payer.id, idempotency_key=once("k"))
    assert caught.value.details == {"dependency": "kyc", "retryable": True}
    after = world.get(Account, world.payer.id)
    assert (after.kyc_status, after.updated_at_ms) == ("not_started", before.updated_at_ms)
    assert not listed(world)
    assert world.event_names()["account.updated"] == 0
    with pytest.raises(NotFound):
        verifications.get(world.server, provider.asked[0].key)


@pytest.mark.parametrize(
    ("reference", "hosted_url"),
    [
        ("", "https://kyc.example/1"),
        ("r" * 501, "https://kyc.example/1"),
        ("case\n1", "https://kyc.example/1"),
        (None, "https://kyc.example/1"),
        ("case-1", "javascript:alert(1)"),
        ("case-1", "https://kyc.example/" + "x" * 5_000),
    ],
)
def test_a_case_that_nobody_could_use_is_not_stored(
    world: World, verifications: Verifications, provider: Provider, reference: Any, hosted_url: str
) -> None:
    opened = KycCase(reference=reference, hosted_url=hosted_url)
    provider.start = lambda request: opened  # type: ignore[method-assign]
    with pytest.raises(DependencyFailed):
        verifications.start(world.server, world.payer.id)
    assert world.get(Account, world.payer.id).kyc_status == "not_started"


def test_what_is_no_case_is_not_stored(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    for answer in (None, {}, "case-1"):
        provider.start = lambda request, it=answer: it  # type: ignore[method-assign,misc]
        with pytest.raises(DependencyFailed):
            verifications.start(world.server, world.payer.id)


def test_a_start_that_failed_is_taken_up_under_its_key(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    provider.meanwhile = refuse
    with pytest.raises(DependencyFailed):
        verifications.start(world.server, world.payer.id, idempotency_key=once("k"))
    world.system.advance(60)
    made = verifications.start(world.server, world.payer.id, idempotency_key=once("k"))
    assert {request.key for request in provider.asked} == {made.id}
    assert made.created_at_ms == world.clock.now()
    with pytest.raises(AlreadyResponded):
        verifications.start(world.server, world.payer.id, idempotency_key=once("k"))
    assert len(listed(world)) == 1


def test_a_repeat_under_its_key_is_answered_from_the_store(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    start, server, payer = verifications.start, world.server, world.payer.id

    def twin() -> None:
        start(server, payer, idempotency_key=once("k"))

    provider.meanwhile = twin
    with pytest.raises(AlreadyResponded):
        start(server, payer, idempotency_key=once("k"))
    verifications.simulate_decision(server, payer, "rejected")
    asked = len(provider.asked)
    with pytest.raises(AlreadyResponded):
        start(server, payer, idempotency_key=once("k"))
    assert len(provider.asked) == asked
    assert kyc_of(world) == "rejected"


@pytest.mark.parametrize("status", ["pending", "approved", "rejected"])
def test_a_decision_during_the_call_stands(
    world: World, verifications: Verifications, provider: Provider, status: Any
) -> None:
    decide, start = verifications.simulate_decision, verifications.start
    provider.meanwhile = lambda: decide(world.server, world.payer.id, status)
    with pytest.raises(InvalidState):
        start(world.server, world.payer.id)
    assert kyc_of(world) == status
    assert [item.status for item in listed(world)] == [status]


def test_another_start_during_the_call_stands(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    server, payer = world.server, world.payer.id
    others: list[Verification] = []

    def meanwhile() -> None:
        verifications.simulate_decision(server, payer, "rejected")
        provider.meanwhile = refuse
        with pytest.raises(DependencyFailed):
            verifications.start(server, payer)
        others.extend(listed(world))

    provider.meanwhile = meanwhile
    with pytest.raises(InvalidState):
        verifications.start(server, payer)
    assert [item.id for item in listed(world)] == [item.id for item in others]
    assert kyc_of(world) == "rejected"


def test_an_account_suspended_during_the_call_is_not_verified(
    world: World, verifications: Verifications, provider: Provider
) -> None:
    server = world.server
    provider.meanwhile = lambda: world.service.acting_as(server).accounts.change(
        world.payer.id, status="suspended"
    )
    with pytest.raises(AccountSuspended):
        verifications.start(server, world.payer.id)
    with pytest.raises(AccountSuspended):
        verifications.start(server, world.payer.id)
    assert kyc_of(world) == "not_started"
    with pytest.raises(NotFound):
        verifications.start(server, "acct_none")


def test_a_rejected_account_may_be_verified_again(world: World) -> None:
    first = world.resources.verifications.start(world.payer.id)
    rejected = world.resources.sandbox.decide_kyc(world.payer.id, "rejected")
    assert (rejected.id, rejected.status, rejected.hosted_url) == (first.id, "rejected", None)
    assert kyc_of(world) == "rejected"
    world.system.advance(1)
    second = world.resources.verifications.start(world.payer.id)
    assert second.id != first.id
    assert kyc_of(world) == "pending"
    approved = world.resources.sandbox.decide_kyc(world.payer.id, "approved")
    assert (approved.id, approved.hosted_url) == (second.id, None)
    assert [(item.id, item.status) for item in listed(world)] == [
        (second.id, "approved"), (first.id, "rejected"),
    ]  # fmt: skip
    assert world.event_names()["account.updated"] == 4


@pytest.mark.parametrize("status", ["pending", "approved", "rejected"])
def test_a_decision_without_a_verification_makes_one(world: World, status: Any) -> None:
    made = world.resources.sandbox.decide_kyc(world.payer.id, status)
    assert (made.status, made.hosted_url, made.reference) == (status, None, None)
    again = world.resources.sandbox.decide_kyc(world.payer.id, status)
    assert (again.id, again.status) == (made.id, status)
    assert (kyc_of(world), len(listed(world))) == (status, 1)
    assert world.event_names()["account.updated"] == 1
    with pytest.raises(NotFound):
        world.resources.sandbox.decide_kyc("acct_none", status)


@pytest.mark.parametrize("status", ["pending", "approved"])
def test_another_decision_after_a_rejection_makes_a_new_verification(
    world: World, status: Any
) -> None:
    first = world.resources.sandbox.decide_kyc(world.payer.id, "rejected")
    world.system.advance(1)
    second = world.resources.sandbox.decide_kyc(world.payer.id, status)
    assert [item.id for item in listed(world)] == [second.id, first.id]
    assert kyc_of(world) == status


def test_what_is_approved_stays_so(world: World) -> None:
    world.resources.sandbox.decide_kyc(world.payer.id, "approved")
    for status in ("pending", "rejected"):
        with pytest.raises(InvalidState):
            world.resources.sandbox.decide_kyc(world.payer.id, status)  # type: ignore[arg-type]
    assert kyc_of(world) == "approved"


def test_a_decision_is_one_of_three(memory_world: World) -> None:
    for status in ("not_started", "done", ""):
        with pytest.raises(ValidationFailed) as caught:
            memory_world.resources.sandbox.decide_kyc(
                memory_world.payer.id,
                status,  # type: ignore[arg-type]
            )
        assert [field.path for field in caught.value.fields] == ["status"]


def test_the_simulated_provider_fails_when_asked_to() -> None:
    answers = iter([True, False])
    provider = SimulatedKyc(lambda: next(answers))
    request = KycRequest(
        key="verification_1", account_id="a", external_user_id="u", subject_type="business"
    )
    with pytest.raises(KycUnavailable):
        provider.start(request)
    assert provider.start(request).reference == "simulated_verification_1"


def test_production_has_no_provider_unless_it_is_given_one(
    memory_world: World, provider: Provider
) -> None:
    from payments_core.accounts.operations import NewAccount

    world = memory_world
    production = world.service.tenants.system_authority(world.app.environments["production"])
    new = NewAccount(external_user_id="payer", subject_type="business")
    account = world.service.acting_as(production).accounts.create(new).account
    with pytest.raises(CapabilityNotActive):
        world.service.acting_as(production).verifications.start(account.id)
    given = PaymentsService(
        world.storage, KeyRing.parse(RING), clock=world.clock, transport=NoTransport(),
        kyc=provider,
    )  # fmt: skip
    assert given.acting_as(production).verifications.start(account.id).status == "pending"
    assert provider.asked[0].account_id == account.id
    with pytest.raises(NotFound):
        given.acting_as(world.server).verifications.list(account.id)


def test_the_hosted_url_shows_in_no_repr(memory_world: World) -> None:
    world = memory_world
    made = world.resources.verifications.start(world.payer.id)
    assert made.hosted_url
    assert made.hosted_url not in repr(made)
    shown = repr(KycCase(reference="r", hosted_url="https://kyc.invalid/x"))
    assert "kyc.invalid" not in shown
    assert "kyc.invalid" not in repr(attrs.evolve(made, status="pending"))


class TestDecisionsOfTheProvider:
    """A decision names its verification; one that comes late decides no later one."""

    def test_a_late_approval_of_a_rejected_verification_does_not_approve_the_next(
        self, world: World
    ) -> None:
        server, payer = world.server, world.payer.id
        first = world.service.acting_as(server).verifications.start(payer)
        world.service.acting_as(server).verifications.decide(
            payer, "rejected", verification_id=first.id
        )
        world.system.advance(1)
        second = world.service.acting_as(server).verifications.start(payer)
        for named in ({"verification_id": first.id}, {"reference": first.reference}):
            with pytest.raises(InvalidState):
                world.service.acting_as(server).verifications.decide(payer, "approved", **named)  # type: ignore[arg-type]
        assert kyc_of(world) == "pending"
        assert world.service.acting_as(server).verifications.read(second.id).status == "pending"
        again = world.service.acting_as(server).verifications.decide(
            payer, "rejected", reference=first.reference
        )
        assert (again.id, again.status) == (first.id, "rejected")
        assert kyc_of(world) == "pending"
        world.service.acting_as(server).verifications.decide(
            payer, "approved", reference=second.reference
        )
        assert kyc_of(world) == "approved"

    def test_a_decision_names_one_verification_of_the_account(self, world: World) -> None:
        server = world.server
        started = world.service.acting_as(server).verifications.start(world.payer.id)
        for named in ({}, {"verification_id": started.id, "reference": started.reference}):
            with pytest.raises(ValidationFailed):
                world.service.acting_as(server).verifications.decide(
                    world.payer.id, "approved", **named
                )  # type: ignore[arg-type]
        with pytest.raises(ValidationFailed):
            world.service.acting_as(server).verifications.decide(
                world.payer.id, "pending", verification_id=started.id
            )
        for account_id, named in (
            (world.merchant.id, {"verification_id": started.id}),
            (world.merchant.id, {"reference": started.reference}),
            (world.payer.id, {"verification_id": "verification_none"}),
            (world.payer.id, {"reference": "none"}),
        ):
            with pytest.raises(NotFound):
                world.service.acting_as(server).verifications.decide(
                    account_id, "approved", **named
                )  # type: ignore[arg-type]
        assert kyc_of(world) == "pending"

    def test_a_decision_that_names_nothing_decides_nothing(self, world: World) -> None:
        """An empty text was no name, and what had no reference yet was decided in its place."""
        server = world.server
        world.service.acting_as(server).sandbox.decide_kyc(world.payer.id, "pending")
        for named in ({"verification_id": ""}, {"reference": ""}):
            with pytest.raises(ValidationFailed):
                world.service.acting_as(server).verifications.decide(
                    world.payer.id, "approved", **named
                )
        assert kyc_of(world) == "pending"
