"""A purge takes what is over, all of it and at once, and nothing that says where money went."""

from __future__ import annotations

from collections import Counter

import pytest

from payments_core.accounts.record import WalletChallenge
from payments_core.clock import DAY, to_datetime
from payments_core.engine.audit import AuditEntry
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.events import Event, NewEvent
from payments_core.engine.idempotency.record import IdempotentRequest, Response, StoredResponse
from payments_core.errors import NotFound, Unauthorized
from payments_core.maintenance import retention as purging
from payments_core.maintenance.retention import Retention, RetentionPurge
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.maintenance import scan_all
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.storage.records import Record
from payments_core.tenants.record import ClientSession, SessionExchange
from payments_core.webhooks.feed import FeedBatch
from payments_core.webhooks.record import Delivery
from payments_core.webhooks.transports.port import TransportResult
from tests.maintenance.shop import HOOK, Answering, Shop
from tests.service.world import WALLET

GOES = {
    ClientSession,
    SessionExchange,
    WalletChallenge,
    Event,
    Delivery,
    AuditEntry,
    StoredResponse,
}
AFTER = Retention(audit_ms=60 * DAY)
DAY_S = DAY // 1_000


def purger(shop: Shop) -> RetentionPurge:
    return RetentionPurge(shop.service.parts.ports)


def count(storage: Storage, kind: type[Record]) -> int:
    return len(list(scan_all(storage, kind)))


def census(shop: Shop, kinds: set[type[Record]]) -> dict[str, int]:
    return {kind.collection.name: count(shop.storage, kind) for kind in kinds}


def filled(shop: Shop) -> Shop:
    """One of everything that is purged, reported and finished; and a Payment that was paid."""
    answered = IdempotentRequest("answer", "print", lambda _: Response(201, b"x", "2026-09-09"))
    endpoint, _ = shop.resources.webhooks.create(
        url=HOOK, subscribed_events=(), idempotency_key=answered
    )
    shop.resources.webhooks.rotate_secret(endpoint.id)
    shop.resources.wallets.create_challenge(shop.payer.id, address=WALLET, chain_type="evm")
    shop.authorized("5.00")
    shop.finish()
    return shop


@pytest.fixture
def busy(shop: Shop) -> Shop:
    """On every storage."""
    return filled(shop)


@pytest.fixture
def memory_busy() -> Shop:
    """The same on memory alone."""
    shop = Shop(MemoryStorage()).open()
    shop.fund("100.00")
    return filled(shop)


def idle(shop: Shop, days: int) -> None:
    """Time passes, and nobody works meanwhile."""
    shop.system.advance(days * DAY_S)


def test_what_is_over_goes_with_all_that_belongs_to_it_and_the_rest_stays(busy: Shop) -> None:
    others = set(RECORD_TYPES) - GOES - {FeedBatch}
    before = census(busy, GOES)
    assert all(before.values()), before
    stays = census(busy, others)
    idle(busy, 100)
    gone = dict(purger(busy).run(AFTER).records)
    assert census(busy, GOES) == dict.fromkeys(before, 0)
    assert census(busy, others) == stays
    assert list(census(busy, {FeedBatch}).values()) == [1], "the last place stays"
    places = gone.pop("event_feed")
    assert places > 0
    assert sum(gone.values()) <= sum(before.values())


def test_the_counts_are_of_what_went(memory_busy: Shop) -> None:
    before = census(memory_busy, GOES)
    [places] = census(memory_busy, {FeedBatch}).values()
    idle(memory_busy, 100)
    reported: Counter[str] = Counter()
    dry = purger(memory_busy).run(AFTER, dry_run=True)
    assert census(memory_busy, GOES) == before
    done = purger(memory_busy).run(AFTER, progress=lambda name, n: reported.update({name: n}))
    gone = {**before, "event_feed": places - 1}
    assert dict(done.records) == dict(dry.records) == gone
    assert set(reported) == set(gone)
    assert purger(memory_busy).run(AFTER).records == {}


def test_what_is_young_stays(memory_busy: Shop) -> None:
    before = census(memory_busy, GOES)
    idle(memory_busy, 6)
    assert purger(memory_busy).run(Retention(31 * DAY, 7 * DAY)).records == {}
    assert census(memory_busy, GOES) == before
    idle(memory_busy, 25)
    gone = purger(memory_busy).run(Retention(40 * DAY, 30 * DAY)).records
    assert set(gone) == {"client_sessions", "session_exchanges", "wallet_challenges", "idempotency"}


def test_more_than_a_batch_goes(memory_busy: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "BATCH", 2)
    monkeypatch.setattr(purging, "EVENTS_PER_BATCH", 2)
    for _ in range(5):
        memory_busy.client_of(memory_busy.payer)
    idle(memory_busy, 100)
    assert purger(memory_busy).run(AFTER).records["client_sessions"] == 6
    assert sum(census(memory_busy, GOES).values()) == 0


def test_an_event_that_is_still_to_be_delivered_stays_with_its_deliveries(
    memory_busy: Shop,
) -> None:
    shop = memory_busy
    known = {one.record.id for one in scan_all(shop.storage, Event)}
    shop.payment()  # nobody works, so nothing is delivered
    [created, *_] = [one for one in scan_all(shop.storage, Event) if one.record.id not in known]
    again = NewEvent(
        created.record.name, created.record.payload, created.record.api_version,
        created.record.account_id,
    )  # fmt: skip
    shop.service.parts.ports.committer.commit(  # one job reports both
        WorkerAuthority(created.partition, "sandbox"),
        lambda tx, id_sequence: Decision(None, events=(again, again)),
    )
    waiting = {one.record.id for one in scan_all(shop.storage, Event)} - known
    idle(shop, 100)
    purger(shop).run(AFTER)
    assert {one.record.id for one in scan_all(shop.storage, Event)} == waiting
    shop.run()
    assert {one.record.event_id for one in scan_all(shop.storage, Delivery)} >= waiting


@pytest.mark.parametrize("status", [404, 500])
def test_a_delivery_that_is_open_keeps_its_event_and_an_abandoned_one_does_not(
    memory_busy: Shop, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    shop = memory_busy
    monkeypatch.setattr(Answering, "send", lambda *_, **__: TransportResult(status))
    payment = shop.payment()
    shop.run()
    idle(shop, 100)
    purger(shop).run(AFTER)
    left = [one.record for one in scan_all(shop.storage, Event)]
    deliveries = [one.record.status for one in scan_all(shop.storage, Delivery)]
    if status == 404:  # not tried again
        assert (left, deliveries) == ([], [])
    else:
        assert [event.payload["paymentId"] for event in left] == [payment.payment.id]
        assert deliveries == ["failed"]


def test_an_event_that_was_sent_again_lately_stays(memory_busy: Shop) -> None:
    shop = memory_busy
    (event, *_), before = list(scan_all(shop.storage, Event)), count(shop.storage, Event)
    assert before > 1
    idle(shop, 100)
    shop.resources.events.resend(event.record.id)
    shop.run()
    purger(shop).run(AFTER)
    assert event.record.id in {one.record.id for one in scan_all(shop.storage, Event)}


def test_a_recovery_finds_nothing_to_send_of_what_was_purged(memory_busy: Shop) -> None:
    shop = memory_busy
    (delivery, *_) = scan_all(shop.storage, Delivery)
    idle(shop, 100)
    purger(shop).run(AFTER)
    since = shop.clock.now() - 30 * DAY
    shop.resources.webhooks.recover(delivery.record.endpoint_id, to_datetime(since))
    shop.run()
    assert count(shop.storage, Delivery) == 0


def test_a_session_that_went_opens_nothing(memory_busy: Shop) -> None:
    shop = memory_busy
    created = shop.resources.client_sessions.create(
        account_id=shop.payer.id, expires_in_s=60, permissions=("account:read",)
    )
    idle(shop, 100)
    purger(shop).run(AFTER)
    with pytest.raises(Unauthorized):
        shop.service.client_tokens.exchange(created.token, mode="sandbox")
    with pytest.raises(NotFound):
        shop.resources.client_sessions.revoke(created.session.id)


@pytest.mark.parametrize("short", [{"events_ms": 30 * DAY}, {"sessions_ms": DAY}])
def test_a_retention_that_would_take_what_is_still_asked_for_is_refused(
    short: dict[str, int],
) -> None:
    with pytest.raises(ValueError, match="at least"):
        Retention(**short)
