"""A turn of the key ring: all that is sealed rests on the new key, and nobody notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.engine.idempotency.record import AlreadyResponded, IdempotentRequest, Response
from payments_core.errors import NotFound, Unauthorized
from payments_core.maintenance.reseal import SEALED_FIELDS, MasterKeyUsage, Resealer
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.payments.record import Payment, PaymentLink
from payments_core.storage.maintenance import BATCH, PrimaryKey, scan_all
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import LocatedRecord, Storage
from payments_core.storage.records import R
from payments_core.tenants.authorization import Authority, Requirement
from payments_core.tenants.record import CredentialIndexEntry
from payments_core.webhooks.dispatch.attempt import open_secrets
from payments_core.webhooks.record import Endpoint
from tests.maintenance.shop import HOOK, Shop
from tests.service.world import RING

OLD = RING
NEW = KeyRing.generate(name="k2")
OTHER = KeyRing.generate(name="k3")
SEALED = {"webhook_endpoints", "payments", "idempotency"}


def resealing(shop: Shop) -> Resealer:
    service = shop.service
    return Resealer(service.parts.ports)


def report(shop: Shop) -> MasterKeyUsage:
    return resealing(shop).report()


def request() -> IdempotentRequest:
    return IdempotentRequest(
        "answer", "print", lambda result: Response(201, b"the answer", "2026-09-09")
    )


def new_payment(shop: Shop) -> NewPayment:
    return NewPayment(amount="5.00", destination=ToAccount(account_id=shop.merchant.id))


@attrs.define
class Sealed:
    """One of everything that is sealed, and how it looks from outside."""

    shop: Shop
    code: str
    secrets: list[str]

    def assert_all_opens(self) -> None:
        service, shop = self.shop.service, self.shop
        (payment,) = [one.record for one in scan_all(shop.storage, Payment)]
        url = service.parts.links.build_url(payment)
        assert url is not None
        assert url.endswith(self.code)
        assert service.checkout.exchange_link(self.code, mode="sandbox").payment_id == payment.id
        (endpoint,) = [one.record for one in scan_all(shop.storage, Endpoint)]
        assert [
            secret for secret, _ in open_secrets(service.parts.ports.key_ring, endpoint)
        ] == self.secrets
        with pytest.raises(AlreadyResponded) as replayed:
            service.acting_as(shop.server).payments.receive(
                new_payment(shop), idempotency_key=request()
            )
        assert replayed.value.response.body == b"the answer"


@pytest.fixture
def sealed(shop: Shop) -> Sealed:
    return seal(shop)


def seal(shop: Shop) -> Sealed:
    details = shop.resources.payments.receive(new_payment(shop), idempotency_key=request())
    url = shop.service.parts.links.build_url(details.payment)
    assert url is not None
    endpoint, first = shop.resources.webhooks.create(url=HOOK, subscribed_events=())
    _, second = shop.resources.webhooks.rotate_secret(endpoint.id, overlap_s=3_600)
    return Sealed(shop, url.rpartition("/")[2], [second, first])


def test_everything_opens_before_and_after_and_without_the_old_key(sealed: Sealed) -> None:
    shop = sealed.shop
    assert set(report(shop).counts) == {"k1"}
    shop.start_again(NEW, OLD)
    sealed.assert_all_opens()
    before = report(shop)
    assert before.current == "k2"
    assert before.needed_old_keys == {"k1"}
    assert set(before.counts["k1"]) == SEALED
    done = resealing(shop).run()
    assert done.changed == {"webhook_endpoints": 1, "payments": 1, "idempotency": 1}
    assert set(done.usage.counts) == {"k2"}
    assert done.usage.needed_old_keys == frozenset()
    assert done.usage.broken_count == 0
    sealed.assert_all_opens()
    shop.start_again(NEW)
    sealed.assert_all_opens()


def test_resealing_again_changes_nothing(sealed: Sealed) -> None:
    sealed.shop.start_again(NEW, OLD)
    resealing(sealed.shop).run()
    versions = {kind: versions_of(sealed.shop.storage, kind) for kind in kinds()}
    assert resealing(sealed.shop).run().changed == {}
    assert {kind: versions_of(sealed.shop.storage, kind) for kind in kinds()} == versions


def kinds() -> list[type]:
    return [sealed.kind for sealed in SEALED_FIELDS]


def versions_of(storage: Storage, kind: type) -> dict[str, int]:
    return {one.record.id: one.record.version for one in scan_all(storage, kind)}


def test_one_link_has_one_row_whatever_key_found_it(sealed: Sealed) -> None:
    shop = sealed.shop
    (before,) = scan_all(shop.storage, PaymentLink)
    shop.start_again(NEW, OLD)
    resealing(shop).run()
    (after,) = scan_all(shop.storage, PaymentLink)
    assert after.record.id != before.record.id
    assert after.record.id in shop.service.parts.links.candidate_digests(sealed.code)[:1]
    assert (after.record.payment_id, after.record.mode) == (
        before.record.payment_id, before.record.mode,
    )  # fmt: skip


def test_a_second_factor_opens_under_the_new_key_alone(shop: Shop) -> None:
    made = shop.service.operators.create(shop.environment_id, "ann")
    begun = shop.service.operator_sessions.begin("ann", made.password, mode="sandbox")
    authority = Authority(
        requirement=Requirement("operator"),
        environment=shop.environment,
        operator=begun.session,
        api_version=shop.environment.api_version,
    )
    shop.service.parts.second_factors.begin(authority, made.password)
    before = shop.service.parts.second_factors.read(authority).enrolment
    shop.start_again(NEW, OLD)
    assert resealing(shop).run().changed == {"operator_second_factors": 1}
    shop.start_again(NEW)
    assert shop.service.parts.second_factors.read(authority).enrolment == before is not None


def test_a_payment_without_a_link_and_one_made_since_are_left_alone(shop: Shop) -> None:
    shop.payment()
    shop.start_again(NEW, OLD)
    late = shop.paid(shop.payment().payment.id)
    assert resealing(shop).run().changed["payments"] == 1
    assert shop.paid(late.id) == late


def test_what_no_key_opens_is_reported_and_left_as_it_is(sealed: Sealed) -> None:
    shop = sealed.shop
    (before,) = scan_all(shop.storage, Endpoint)
    shop.start_again(NEW, OTHER)
    done = resealing(shop).run()
    assert done.changed == {}
    assert {broken.collection for broken in done.usage.broken} == SEALED
    assert done.usage.broken_count == 3
    assert done.usage.needed_old_keys == {"k1"}
    assert [one.record for one in scan_all(shop.storage, Endpoint)] == [before.record]


class Racing(MemoryStorage):
    """A storage in which something happens between a walk and the transactions after it."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], object]] = []

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        found = super().scan_page(kind, after=after, limit=limit)
        if found and self.meanwhile:
            self.meanwhile.pop()()
        return found


@pytest.fixture
def racing() -> Sealed:
    sealed = seal(Shop(Racing()).open())
    sealed.shop.start_again(NEW, OLD)
    return sealed


def test_what_changes_meanwhile_is_looked_at_again_and_wins(racing: Sealed) -> None:
    shop = racing.shop
    (endpoint,) = scan_all(shop.storage, Endpoint)

    def rotate() -> None:
        _, secret = shop.resources.webhooks.rotate_secret(endpoint.record.id)
        racing.secrets = [secret]

    assert isinstance(shop.storage, Racing)
    shop.storage.meanwhile = [rotate]
    assert "webhook_endpoints" not in resealing(shop).run().changed
    racing.assert_all_opens()
    assert set(report(shop).counts) == {"k2"}


def test_what_is_gone_meanwhile_is_not_made_again(racing: Sealed) -> None:
    storage, environment_id = racing.shop.storage, racing.shop.environment_id
    (endpoint,) = scan_all(storage, Endpoint)
    assert isinstance(storage, Racing)
    storage.meanwhile = [
        lambda: storage.transact(environment_id, lambda tx: tx.delete(endpoint.record))
    ]
    resealing(racing.shop).run()
    assert list(scan_all(storage, Endpoint)) == []


# The secrets of server keys, of which only digests are stored.


def test_a_key_that_is_used_ends_on_the_new_master_key(shop: Shop) -> None:
    idle, idle_secret = shop.service.tenants.create_key(shop.environment_id, "restricted", "idle")
    shop.start_again(NEW, OLD)
    resting = {key.key_id: key for key in report(shop).keys}
    assert set(resting) == {shop.key.id, idle.id}
    assert resting[shop.key.id].master_key == "k1"
    assert resting[idle.id].last_used_at_ms is None
    assert shop.server
    (left,) = report(shop).keys
    assert (left.key_id, left.name, left.kind) == (idle.id, "idle", "restricted")
    shop.start_again(NEW)
    assert shop.server
    with pytest.raises(Unauthorized):
        shop.service.tenants.authenticate(shop.app.id, idle_secret, mode="sandbox")


def test_a_process_with_the_old_order_goes_on_letting_the_key_in(shop: Shop) -> None:
    old_order, only_old = Shop(shop.storage), Shop(shop.storage)
    shop.start_again(NEW, OLD)
    old_order.start_again(OLD, NEW)
    only_old.start_again(OLD)
    tenants = [each.service.tenants for each in (old_order, only_old, shop, old_order, only_old)]
    for _ in range(2):
        for each in tenants:
            assert each.authenticate(shop.app.id, shop.secret, mode="sandbox")[1].id == shop.key.id
            assert each.authenticate_bearer(shop.secret, mode="sandbox")[1].id == shop.key.id


def test_a_key_may_outlive_many_master_keys(shop: Shop) -> None:
    for ring in ([NEW, OLD], [OTHER, NEW], [KeyRing.generate(name="k4"), OTHER]):
        shop.start_again(*ring)
        assert shop.server
        assert report(shop).keys == ()
    assert len(list(scan_all(shop.storage, CredentialIndexEntry))) == 4


def test_a_revoked_key_opens_nothing_under_any_master_key_and_leaves_no_row(shop: Shop) -> None:
    shop.start_again(NEW, OLD)
    assert shop.server
    shop.service.tenants.revoke_key(shop.environment_id, shop.key.id)
    assert list(scan_all(shop.storage, CredentialIndexEntry)) == []
    assert report(shop).keys == ()
    for ring in ([NEW, OLD], [OLD], [NEW]):
        shop.start_again(*ring)
        with pytest.raises(Unauthorized):
            assert shop.server


def test_tokens_and_client_secrets_open_as_long_as_their_key_is_in_the_ring(shop: Shop) -> None:
    payment = shop.payment()
    secret = payment.client_secret
    assert secret is not None
    shop.start_again(NEW, OLD)
    resealing(shop).run()
    assert shop.service.checkout.authenticate(secret, mode="sandbox")
    shop.start_again(NEW)
    with pytest.raises(Unauthorized):
        shop.service.checkout.authenticate(secret, mode="sandbox")
    with pytest.raises(NotFound):
        shop.service.checkout.exchange_link("x" * 48, mode="sandbox")


def test_neither_secrets_nor_digests_show(shop: Shop) -> None:
    shop.start_again(NEW, OLD)
    reported = f"{report(shop)!r} {resealing(shop).run()!r}"
    assert shop.secret not in reported
    assert shop.key.digest not in reported
