"""After a restore nothing is sent until somebody has looked, and it says where to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from payments_core.chains.outbox.record import OutboundTransfer, Sender
from payments_core.chains.port import SignedTransaction, SignerRefused, TransferIntent
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.engine.audit import AuditEntry
from payments_core.maintenance.after_restore import (
    SenderBehindChain,
    find_senders_behind_chain,
    stop_sending,
)
from payments_core.maintenance.parked_jobs import list_parked_jobs, retry
from payments_core.storage.jobs import Job, ParkedJobMark
from payments_core.storage.maintenance import scan_all
from tests.maintenance.shop import Shop
from tests.service.world import BASE


class Ahead(SimulatedChain):
    """A chain on which senders have filled slots that nobody here knows of."""

    more = 0

    def final_nonce(self, sender: str) -> int:
        return 1

    def pending_nonce(self, sender: str) -> int:
        return 1 + self.more


class Unsigned(SimulatedChain):
    """A chain whose signer signs nothing: a transfer keeps its slot without bytes."""

    def prepare(self, intent: TransferIntent, slot: int) -> SignedTransaction:
        raise SignerRefused("not now")


def sent(shop: Shop) -> list[str | None]:
    return [one.record.transaction_hash for one in scan_all(shop.storage, OutboundTransfer)]


def marked(shop: Shop) -> set[str]:
    """The parked jobs that are found by their marks."""
    jobs = {one.record.id: one.record for one in scan_all(shop.storage, Job)}
    marks = [one.record for one in scan_all(shop.storage, ParkedJobMark)]
    assert all(one.is_of(jobs[one.job_id]) for one in marks)
    return {one.job_id for one in marks}


def test_nothing_is_sent_until_it_is_let_go_and_then_in_its_order(shop: Shop) -> None:
    shop.authorized("5.00")
    shop.authorized("6.00")
    stopped = stop_sending(shop.service.parts.ports, "sandbox")
    assert len(stopped) == 2
    shop.finish()
    assert sent(shop) == [None, None]
    shop.authorized("7.00")  # queues up behind
    shop.finish()
    assert sent(shop) == [None, None, None]
    assert {one.job.id for one in list_parked_jobs(shop.storage, "sandbox")} == {
        one.job.id for one in stopped
    }
    assert marked(shop) == {one.job.id for one in stopped}, "the inbox shows them"
    entries = [one.record.operation for one in scan_all(shop.storage, AuditEntry)]
    assert entries.count("jobs.stop") == 2
    for one in stopped:
        retry(shop.service.parts.ports, one.partition, one.job.id)
    shop.finish()
    assert None not in sent(shop)
    balance = shop.balance_now()
    assert (balance.reserved_atomic, shop.held()[0]) == (0, 82_000_000)


def test_a_sender_that_has_nothing_to_do_is_stopped_too(shop: Shop) -> None:
    shop.authorized("5.00")
    shop.finish()
    before = sent(shop)
    (stopped,) = stop_sending(shop.service.parts.ports, "sandbox")
    assert marked(shop) == {stopped.job.id}
    again = stop_sending(shop.service.parts.ports, "sandbox")
    assert [one.job.id for one in again] == [stopped.job.id]
    shop.authorized("6.00")
    shop.finish()
    assert [hash for hash in sent(shop) if hash] == before
    retry(shop.service.parts.ports, stopped.partition, stopped.job.id)
    shop.finish()
    assert None not in sent(shop)
    assert list_parked_jobs(shop.storage, "sandbox") == ()


def test_stopping_twice_names_the_same_and_leaves_another_mode_alone(shop: Shop) -> None:
    shop.authorized("5.00")
    assert stop_sending(shop.service.parts.ports, "production") == ()
    first = stop_sending(shop.service.parts.ports, "sandbox")
    again = stop_sending(shop.service.parts.ports, "sandbox")
    assert [one.job.id for one in first] == [one.job.id for one in again]
    assert len(first) == 1


@pytest.mark.parametrize("more", [0, 2])
def test_a_sender_that_the_chain_is_ahead_of_is_reported(shop: Shop, more: int) -> None:
    shop.authorized("5.00")
    shop.run()
    ((partition, sender),) = [(one.partition, one.record) for one in scan_all(shop.storage, Sender)]
    chain = Ahead(BASE, shop.service.parts.ports)
    chain.more = more + sender.next_slot - 1
    chains: Mapping[int, Any] = {BASE: chain}
    found = find_senders_behind_chain(shop.storage, chains, "sandbox")
    assert find_senders_behind_chain(shop.storage, chains, "production") == ()
    assert find_senders_behind_chain(shop.storage, {}, "sandbox") == ()
    if not more:
        assert found == ()
    else:
        address = sender.id.partition(":")[2]
        assert found == (
            SenderBehindChain(
                partition, BASE, address, sender.next_slot, 1, sender.next_slot + more
            ),
        )
        assert found[0].forgotten_count == more


@pytest.mark.parametrize("signed", [0, 1, 2])
@pytest.mark.parametrize("used", [0, 1, 2, 3])
def test_a_slot_that_was_unsigned_in_the_backup_and_is_used_is_reported(
    shop: Shop, signed: int, used: int
) -> None:
    """Its transfer was signed and sent after the backup: signed again, it would pay twice."""
    for _ in range(signed):
        shop.authorized("5.00")
        shop.finish()
    before = sum(one.record.next_slot for one in scan_all(shop.storage, Sender))
    shop.service = shop.restarted(chains={BASE: Unsigned(BASE, shop.service.parts.ports)})
    shop.authorized("6.00")
    shop.run()
    (sender,) = [one.record for one in scan_all(shop.storage, Sender)]
    assert sender.next_slot == before + 1
    chain = Ahead(BASE, shop.service.parts.ports)
    chain.more = before + used - 1
    found = find_senders_behind_chain(shop.storage, {BASE: chain}, "sandbox")
    assert [one.forgotten_count for one in found] == ([used] if used else [])
