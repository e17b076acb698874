"""Sessions and disputes, on every storage."""

from __future__ import annotations

import attrs
import pytest

from payments_core.clock import to_datetime
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.errors import (
    EntitlementRequired,
    InvalidState,
    NotFound,
    Unauthorized,
    ValidationFailed,
)
from payments_core.payments.disputes.record import Dispute
from payments_core.payments.record import Payment
from payments_core.storage.port import Storage
from payments_core.tenants.authorization import Authority, Requirement
from tests.service.faults import FaultyStorage, commit_failed, commit_lost
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import World, answer_of, authority_of, once, write

NO_SESSION = "ses_" + "A" * 24
THREADS = 8


def settled(world: World) -> Payment:
    """A Payment whose release is final."""
    payment_id = world.authorized().payment.id
    world.finish()
    paid = world.paid(payment_id)
    assert paid.status == "succeeded"
    return paid


def change(world: World, payment: Payment, **changes: object) -> None:
    """Put a Payment where no operation of these tests brings it."""

    def work(tx: object) -> None:
        found = tx.get(Payment, payment.id, for_update=True)  # type: ignore[attr-defined]
        tx.replace(attrs.evolve(found, **changes))  # type: ignore[attr-defined]

    write(world.storage, world.environment_id, work)


def disputes(world: World) -> list[str]:
    """The events about disputes, by name and status; those of one instant have no order."""
    return sorted(
        f"{event.name}: {event.payload['status']}"
        for event in world.events()
        if event.name.startswith("dispute.")
    )


def test_a_session_follows_its_payment(world: World) -> None:
    option = world.option(world.payment())
    payment = world.paid(option.option.payment_id)
    assert world.resources.sessions.read(payment.session_id).status == "open"
    world.authorize(option)
    assert world.resources.sessions.read(payment.session_id).status == "pending"
    world.finish()
    session = world.resources.sessions.read(payment.session_id)
    assert (session.status, session.id) == ("settled", payment.session_id)
    assert (session.payment, session.dispute) == (world.paid(payment.id), None)


def test_a_settled_session_is_disputed_and_stays_settled(world: World) -> None:
    payment = settled(world)
    session = world.resources.sessions.flag_dispute(
        payment.session_id, reason="not delivered", description="Nothing came."
    )
    assert session.status == "settled"
    dispute = session.dispute
    assert dispute is not None
    assert (dispute.id, dispute.payment_id) == (payment.session_id, payment.id)
    assert (dispute.status, dispute.reason) == ("flagged", "not delivered")
    assert (dispute.description, dispute.created_at_ms) == ("Nothing came.", world.clock.now())
    stored = world.resources.sessions.read(payment.session_id)
    assert stored.dispute is not None
    assert stored.dispute == attrs.evolve(dispute, version=1, schema=stored.dispute.schema)
    assert stored.status == "settled"
    assert world.paid(payment.id) == payment  # its money and its history are as they were
    [event] = [event for event in world.events() if event.name == "dispute.flagged"]
    assert event.payload == {
        "sessionId": payment.session_id, "paymentId": payment.id, "status": "flagged",
    }  # fmt: skip
    assert (event.account_id, event.external_user_id) == (world.merchant.id, "merchant")
    assert event.api_version == payment.api_version


@pytest.mark.parametrize("resolution", ["won", "lost", "withdrawn"])
def test_a_dispute_is_resolved_once(world: World, resolution: str) -> None:
    session_id = settled(world).session_id
    service = world.resources.sessions
    service.flag_dispute(session_id, reason="r")
    world.advance(60)
    ended = service.resolve_dispute(session_id, resolution=resolution, note="done")  # type: ignore[arg-type]
    dispute = ended.dispute
    assert dispute is not None
    assert (dispute.status, dispute.resolution, dispute.note) == ("resolved", resolution, "done")
    assert dispute.resolved_at_ms == world.clock.now() == dispute.created_at_ms + 60_000
    assert ended.status == "settled"
    for call in (
        lambda: service.resolve_dispute(session_id, resolution="won"),
        lambda: service.flag_dispute(session_id, reason="again"),
    ):
        with pytest.raises(InvalidState) as caught:
            call()
        assert (caught.value.resource, caught.value.status) == ("dispute", "resolved")
    assert disputes(world) == ["dispute.flagged: flagged", "dispute.resolved: resolved"]


def test_what_is_not_settled_cannot_be_disputed(world: World) -> None:
    option = world.option(world.payment())
    session_id = world.paid(option.option.payment_id).session_id
    for status in ("open", "pending"):
        with pytest.raises(InvalidState) as caught:
            world.resources.sessions.flag_dispute(session_id, reason="r")
        assert caught.value.details == {
            "resource": "session", "status": status, "action": "dispute",
        }  # fmt: skip
        if status == "open":
            world.authorize(option)
    cancelled = world.payment().payment
    world.resources.payments.cancel(cancelled.id)
    with pytest.raises(InvalidState) as caught:
        world.resources.sessions.flag_dispute(cancelled.session_id, reason="r")
    assert caught.value.status == "expired"
    assert not disputes(world)


def test_a_session_without_a_dispute_has_none_to_resolve(world: World) -> None:
    session_id = settled(world).session_id
    with pytest.raises(InvalidState) as caught:
        world.resources.sessions.resolve_dispute(session_id, resolution="won")
    assert caught.value.status == "undisputed"
    assert not disputes(world)


def test_a_dispute_outlives_the_refund_of_its_payment(world: World) -> None:
    payment = settled(world)
    service = world.resources.sessions
    service.flag_dispute(payment.session_id, reason="r")
    change(world, payment, status="refunded")
    session = service.resolve_dispute(payment.session_id, resolution="lost")
    assert session.status == "refunded"
    assert session.dispute is not None
    assert session.dispute.status == "resolved"


@pytest.mark.parametrize("intent", ["send", "collect"])
def test_only_a_receive_payment_has_a_session(world: World, intent: str) -> None:
    payment = settled(world)
    change(world, payment, intent=intent)
    service, session_id = world.resources.sessions, payment.session_id
    for call in (
        lambda: service.read(session_id),
        lambda: service.flag_dispute(session_id, reason="r"),
        lambda: service.resolve_dispute(session_id, resolution="won"),
    ):
        with pytest.raises(NotFound) as caught:
            call()
        assert caught.value.resource == "session"


def test_another_tenants_session_looks_like_none(storage: Storage) -> None:
    world = World(storage).open()
    session_id = world.payment().payment.session_id
    stranger = World(storage).open("other")
    service = stranger.service.acting_as(stranger.server).sessions
    for id in (session_id, NO_SESSION):
        for call in (
            lambda id=id: service.read(id),
            lambda id=id: service.flag_dispute(id, reason="r"),
            lambda id=id: service.resolve_dispute(id, resolution="won"),
        ):
            with pytest.raises(NotFound) as caught:
                call()
            assert caught.value.resource == "session"
    assert world.resources.sessions.read(session_id).id == session_id


def test_faults_are_reported_at_once_and_nothing_is_stored(memory_world: World) -> None:
    world = memory_world
    session_id = settled(world).session_id
    service = world.resources.sessions
    for reason, description, paths in (
        ("", None, ["reason"]),
        ("x" * 513, "", ["reason"]),
        ("x" * 512, "x" * 2_049, ["description"]),
        ("", "x" * 2_049, ["reason", "description"]),
    ):
        with pytest.raises(ValidationFailed) as caught:
            service.flag_dispute(session_id, reason=reason, description=description)
        assert [fault.path for fault in caught.value.fields] == paths
    assert service.read(session_id).dispute is None
    service.flag_dispute(session_id, reason="x" * 512, description="x" * 2_048)
    for resolution, note, paths in (
        ("draw", None, ["resolution"]),
        ("won", "x" * 1_025, ["note"]),
        ("", "x" * 1_025, ["resolution", "note"]),
    ):
        with pytest.raises(ValidationFailed) as caught:
            service.resolve_dispute(session_id, resolution=resolution, note=note)  # type: ignore[arg-type]
        assert [fault.path for fault in caught.value.fields] == paths
    assert disputes(world) == ["dispute.flagged: flagged"]
    service.resolve_dispute(session_id, resolution="won", note="x" * 1_024)


def test_of_many_at_once_one_flags_and_one_resolves(world: World) -> None:
    session_id = settled(world).session_id
    sessions = world.resources.sessions
    outcomes = at_once([lambda: sessions.flag_dispute(session_id, reason="r")] * THREADS)
    assert kinds(outcomes) == {"PaymentSession": 1, "InvalidState": THREADS - 1}
    outcomes = at_once([lambda: sessions.resolve_dispute(session_id, resolution="won")] * THREADS)
    assert kinds(outcomes) == {"PaymentSession": 1, "InvalidState": THREADS - 1}
    assert disputes(world) == ["dispute.flagged: flagged", "dispute.resolved: resolved"]


@pytest.mark.parametrize("fault", [commit_lost, commit_failed])
def test_a_commit_without_an_answer_is_not_made_twice(world: World, fault: object) -> None:
    session_id = settled(world).session_id
    for resolving in (False, True):
        faulty = FaultyStorage(world.storage, 1, fault, ("transact",))  # type: ignore[arg-type]
        sessions = world.restarted(faulty).acting_as(world.server).sessions
        if resolving:
            session = sessions.resolve_dispute(session_id, resolution="won")
        else:
            session = sessions.flag_dispute(session_id, reason="r")
        assert faulty.had_its_fault
        assert session.dispute is not None
    assert disputes(world) == ["dispute.flagged: flagged", "dispute.resolved: resolved"]


def test_a_retry_with_its_key_is_answered_from_the_store(world: World) -> None:
    session_id = settled(world).session_id
    service = world.resources.sessions
    first = once("flag")
    service.flag_dispute(session_id, reason="r", idempotency_key=first)
    service.resolve_dispute(session_id, resolution="won")
    again = answer_of(
        lambda: service.flag_dispute(session_id, reason="r", idempotency_key=once("flag"))
    )
    assert again == first.response
    assert len(disputes(world)) == 2


def test_a_refusal_stores_no_answer(world: World) -> None:
    session_id = world.payment().payment.session_id
    with pytest.raises(InvalidState):
        world.resources.sessions.flag_dispute(session_id, reason="r", idempotency_key=once("f"))

    def look(snapshot: object) -> tuple[object, object]:
        get = snapshot.get  # type: ignore[attr-defined]
        return get(StoredResponse, "f"), get(Dispute, session_id)

    assert world.storage.read(world.environment_id, look) == (None, None)


def test_a_key_that_lost_its_rights_meanwhile_commits_nothing(world: World) -> None:
    session_id = settled(world).session_id
    requirement = Requirement("server", scopes=("v2:payments",))
    before: Authority = authority_of(world.environment, world.key, requirement=requirement)
    world.service.tenants.set_products(world.environment_id, ["accounts"])
    with pytest.raises(EntitlementRequired):
        world.service.acting_as(before).sessions.flag_dispute(session_id, reason="r")
    world.service.tenants.revoke_key(world.environment_id, world.key.id)
    with pytest.raises(Unauthorized):
        world.service.acting_as(before).sessions.flag_dispute(session_id, reason="r")
    assert not disputes(world)


class TestASecretThatComesAlone:
    """The credential of the dispute route: the directory says whose it is."""

    def opened(self, world: World, secret: str, mode: str = "sandbox") -> str:
        environment, key = world.service.tenants.authenticate_bearer(secret, mode=mode)
        assert environment.id == world.environment_id
        return key.id

    def test_opens_its_environment(self, world: World) -> None:
        assert self.opened(world, world.secret) == world.key.id
        key, secret = world.service.tenants.create_key(
            world.environment_id, "restricted", "narrow", scopes=["v2:payments"]
        )
        assert self.opened(world, secret) == key.id

    def test_opens_no_other_mode(self, world: World) -> None:
        _, live = world.service.tenants.create_key(
            world.app.environments["production"], "standard", "live"
        )
        for secret, mode in ((world.secret, "production"), (live, "sandbox")):
            with pytest.raises(Unauthorized):
                self.opened(world, secret, mode)

    def test_is_not_a_publishable_key(self, world: World) -> None:
        _, secret = world.service.tenants.create_key(world.environment_id, "publishable", "sdk")
        with pytest.raises(Unauthorized):
            self.opened(world, secret)

    def test_opens_nothing_once_it_is_revoked_or_over(self, world: World) -> None:
        tenants = world.service.tenants
        _, short = tenants.create_key(
            world.environment_id, "standard", "s", expires_at=to_datetime(world.clock.now() + 1_000)
        )
        assert self.opened(world, short)
        world.system.advance(1)
        with pytest.raises(Unauthorized):
            self.opened(world, short)
        tenants.revoke_key(world.environment_id, world.key.id)
        with pytest.raises(Unauthorized):
            self.opened(world, world.secret)

    def test_is_not_guessed(self, world: World) -> None:
        made_up = World(world.storage).restarted().tenants
        wrong = ["", "x", world.secret[:-1], world.secret + "x", world.secret[:-9] + "A" * 9]
        for secret in wrong:
            with pytest.raises(Unauthorized):
                made_up.authenticate_bearer(secret, mode="sandbox")
