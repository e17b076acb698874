"""The simulated bank's other side: virtual accounts, and transfers that arrive for them.

As with payouts, nothing runs in it: the course of a transfer is planned when it is made, and
its present state follows from the shared clock. Its books are rows of the same storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from payments_core.banks.incoming import (
    Delivery,
    DeliveryOrder,
    IncomingNotice,
    IncomingTransfer,
    NoticePage,
    VirtualAccount,
    VirtualAccountRequest,
)
from payments_core.banks.port import MAX_NOTICES, BankRefused, BankUnavailable, KeyReused
from payments_core.banks.simulated import arrivals
from payments_core.banks.simulated.books import SimulatedBooks
from payments_core.banks.simulated.incoming_records import (
    SimulatedIncoming,
    SimulatedIncomingNotice,
    SimulatedVirtualAccount,
)
from payments_core.chains.port import ChainUnavailable
from payments_core.clock import HOUR
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, StorageError, Transaction, Where

T = TypeVar("T")

FUNDING_CALLS = (
    "open_virtual_account",
    "find_incoming",
    "return_incoming",
    "deliver",
    "list_incoming_notices",
    "acknowledge",
    "lost_answer",
)
"""Failures to order. After a `lost_answer` the request was carried out without an answer."""

_DIGEST = "simulated_bank_request"


class SimulatedFundingBank:
    """One bank for a whole sandbox. `fails` is asked with one of `FUNDING_CALLS` at each call.

    `send_tokens` sends the stablecoins of a delivery, once per key, and returns the hash of
    the transaction; it raises ChainUnavailable, or as storage does.
    """

    max_notice_pause_ms = 1 * HOUR  # the sandbox's controls wake the reader

    def __init__(
        self,
        ports: Ports,
        send_tokens: Callable[[DeliveryOrder], str],
        fails: Callable[[str], bool] = lambda call: False,
    ) -> None:
        self._books = SimulatedBooks(ports, fails)
        self._clock = ports.clock
        self._key_ring = ports.key_ring
        self._send_tokens = send_tokens

    # Methods of the port.

    def open_virtual_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        self._books.require_answer("open_virtual_account")
        text = msgspec.json.encode(request).decode()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            known = tx.get(SimulatedVirtualAccount, request.key, for_update=True)
            if known is None:
                digest = self._key_ring.digest(_DIGEST, text)
                made = SimulatedVirtualAccount(id=request.key, request_digest=digest)
                return Decision(None, inserts=(made,))
            if known.request_digest not in self._key_ring.digests(_DIGEST, text):
                raise KeyReused("this key was used with another request")
            return Decision(None)

        self._books.commit(decide)
        self._books.require_answer("lost_answer")
        return arrivals.view_account(request.key)

    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        self._books.require_answer("find_incoming")
        found = self._books.read(lambda snapshot: snapshot.get(SimulatedIncoming, incoming_id))
        return None if found is None else arrivals.view_incoming(found, self._clock.now())

    def return_incoming(self, incoming_id: str, reason: str) -> IncomingTransfer:
        self._books.require_answer("return_incoming")
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedIncoming]:
            before = self._lock(tx, incoming_id)
            after = arrivals.return_now(before, reason, now)
            if after == before:
                return Decision(before)
            return Decision(after, replaces=(after,)).merge(_decide_notices(tx, before, after))

        returned = self._books.commit(decide)
        self._books.require_answer("lost_answer")
        return arrivals.view_incoming(returned, now)

    def deliver(self, order: DeliveryOrder) -> Delivery:
        self._books.require_answer("deliver")
        text = msgspec.json.encode(order).decode()
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            row = self._lock(tx, order.incoming_id)
            if row.delivery_key is None:
                if arrivals.status_of(row, now) != "received":
                    raise BankRefused("not_received", "the money of the transfer is not available")
                digest = self._key_ring.digest(_DIGEST, text)
                ordered = evolve(
                    row, delivery_key=order.key, delivery_digest=digest, end=None, ends_at_ms=None
                )
                return Decision(None, replaces=(ordered,))
            if row.delivery_key != order.key:
                raise BankRefused(
                    "delivered_already", "the transfer has a delivery with another key"
                )
            if row.delivery_digest not in self._key_ring.digests(_DIGEST, text):
                raise KeyReused("this key was used with another order")
            return Decision(None)

        self._books.commit(decide)
        try:
            hash = self._send_tokens(order)
        except (ChainUnavailable, StorageError, Unavailable) as error:
            raise BankUnavailable("the stablecoins could not be sent yet") from error
        self._books.require_answer("lost_answer")
        return Delivery(key=order.key, status="delivered", transaction_hash=hash)

    def list_incoming_notices(
        self, limit: int = MAX_NOTICES, after: str | None = None
    ) -> NoticePage:
        """The newest notice comes first, so that callers see them out of order."""
        self._books.require_answer("list_incoming_notices")
        position = None
        if after is not None:
            due_at, _, id = after.partition(":")
            position = (int(due_at), id)
        now = self._clock.now()
        page = self._books.read(
            lambda snapshot: snapshot.find(
                SimulatedIncomingNotice,
                "newest",
                where=(Where("due_at", "<=", now),),
                after=position,
                limit=limit,
            )
        )
        notices = [
            IncomingNotice(
                id=row.id,
                incoming_id=row.incoming_id,
                account_key=row.account_key,
                occurred_at_ms=row.occurred_at_ms,
            )
            for row in page.records
        ]
        next = None if page.next is None else f"{page.next[0]}:{page.next[1]}"
        return NoticePage(notices=notices, next=next)

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self._books.require_answer("acknowledge")
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            rows = (
                tx.get(SimulatedIncomingNotice, id, for_update=True)
                for id in sorted(set(notice_ids))
            )
            return Decision(
                None, deletes=tuple(row for row in rows if row and row.due_at_ms <= now)
            )

        self._books.commit(decide)

    # The sandbox's controls, which ordered failures do not affect.

    def receive(self, new: arrivals.NewArrival) -> IncomingTransfer:
        """Simulate a transfer that somebody sends now, once per id.

        Raises BankRefused if the rail could not carry it, and BankUnavailable.
        """
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedIncoming]:
            known = tx.get(SimulatedIncoming, new.id, for_update=True)
            if known is not None:
                return Decision(known)
            made = arrivals.plan_arrival(new, now)
            return Decision(made, inserts=(made, *arrivals.plan_notices(made)))

        return arrivals.view_incoming(self._books.commit(decide), now)

    def count_deliveries(self, incoming_ids: Sequence[str]) -> int:
        """How many of these transfers have a delivery in the bank's books."""

        def count(snapshot: Snapshot) -> int:
            rows = (snapshot.get(SimulatedIncoming, id) for id in set(incoming_ids))
            return sum(row is not None and row.delivery_key is not None for row in rows)

        return self._books.read(count)

    # Calls.

    def _lock(self, tx: Transaction, incoming_id: str) -> SimulatedIncoming:
        row = tx.get(SimulatedIncoming, incoming_id, for_update=True)
        if row is None:
            raise BankRefused("incoming_unknown", "the bank has no such transfer")
        return row


def _decide_notices(
    tx: Transaction, before: SimulatedIncoming, after: SimulatedIncoming
) -> Decision[None]:
    """The notices of a transfer whose course has changed. Acknowledged ones stay so."""
    planned = {notice.id: notice for notice in arrivals.plan_notices(after)}
    known = {notice.id for notice in arrivals.plan_notices(before)}
    outcome: Decision[None] = Decision(
        None, inserts=tuple(notice for id, notice in planned.items() if id not in known)
    )
    for id in sorted(known - planned.keys()):
        row = tx.get(SimulatedIncomingNotice, id, for_update=True)
        if row is not None:
            outcome = outcome.merge(Decision(None, deletes=(row,)))
    return outcome
