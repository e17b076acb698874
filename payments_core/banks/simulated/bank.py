"""The simulated bank: submits, settles and returns by the rules of the rails, by the shared clock.

Nothing runs in it: a payout's whole course is planned when it is submitted, and its present state
follows from the clock. Its books are rows of the same storage, so that a restart or a second
process sees the same bank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import (
    MAX_NOTICES,
    AccountRegistration,
    BankNotice,
    BankRefused,
    CapabilityRequest,
    KeyReused,
    PayoutOrder,
)
from payments_core.banks.reviews import BankReview
from payments_core.banks.simulated import outcomes
from payments_core.banks.simulated.books import SimulatedBooks
from payments_core.banks.simulated.records import (
    SimulatedBankNotice,
    SimulatedPayout,
    SimulatedReview,
)
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction

T = TypeVar("T")

BANK_CALLS = (
    "request_capability",
    "find_capability",
    "register_account",
    "find_account",
    "submit",
    "find_payout",
    "list_notices",
    "acknowledge",
    "lost_answer",
)
"""Failures to order. After a `lost_answer` the request was carried out without an answer."""

_DIGEST = "simulated_bank_request"


class SimulatedBank:
    """One bank for a whole sandbox. `fails` is asked with one of `BANK_CALLS` at each call.

    Account numbers 99900001 to 99900029 have their ACH payouts returned with that code, at the
    last moment that the rails allow (`outcomes.RETURNING_ACCOUNT`).
    """

    def __init__(self, ports: Ports, fails: Callable[[str], bool] = lambda call: False) -> None:
        self._books = SimulatedBooks(ports, fails)
        self._clock = ports.clock
        self._key_ring = ports.key_ring

    # Methods of the port.

    def request_capability(self, request: CapabilityRequest) -> BankReview:
        self._books.require_answer("request_capability")
        return self._review("capability", request.key, request)

    def find_capability(self, key: str) -> BankReview | None:
        self._books.require_answer("find_capability")
        return self._find_review("capability", key)

    def register_account(self, registration: AccountRegistration) -> BankReview:
        self._books.require_answer("register_account")
        outcomes.require_valid_account(registration.account)
        rejected = registration.account.account_number == outcomes.REJECTED_ACCOUNT
        reason = "The bank does not pay this account." if rejected else None
        return self._review("account", registration.key, registration, reason)

    def find_account(self, key: str) -> BankReview | None:
        self._books.require_answer("find_account")
        return self._find_review("account", key)

    def submit(self, order: PayoutOrder) -> BankPayout:
        self._books.require_answer("submit")
        outcomes.require_acceptable(order)
        text = msgspec.json.encode(order).decode()
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedPayout]:
            known = _lock_payout(tx, order.key)
            if known is not None:
                if known.order_digest not in self._key_ring.digests(_DIGEST, text):
                    raise KeyReused("this key was used with another order")
                return Decision(known)
            made = outcomes.plan_payout(order, self._key_ring.digest(_DIGEST, text), now)
            return Decision(made, inserts=(made, *outcomes.plan_notices(made)))

        made = self._books.commit(decide)
        self._books.require_answer("lost_answer")
        return outcomes.view_payout(made, self._clock.now())

    def find_payout(self, key: str) -> BankPayout | None:
        self._books.require_answer("find_payout")
        found = self._books.read(lambda snapshot: snapshot.get(SimulatedPayout, key))
        return None if found is None else outcomes.view_payout(found, self._clock.now())

    def list_notices(self, limit: int = MAX_NOTICES) -> Sequence[BankNotice]:
        """The newest notice comes first, so that callers see them out of order."""
        self._books.require_answer("list_notices")
        now = self._clock.now()
        rows = self._books.read(
            lambda snapshot: snapshot.find(SimulatedBankNotice, "by_due", limit=limit).records
        )
        return [
            BankNotice(
                id=row.id,
                payout_key=row.payout_key,
                status=row.status,
                occurred_at_ms=row.occurred_at_ms,
            )
            for row in reversed(rows)
            if row.due_at_ms <= now
        ]

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self._books.require_answer("acknowledge")

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            rows = (
                tx.get(SimulatedBankNotice, id, for_update=True) for id in sorted(set(notice_ids))
            )
            return Decision(
                None, deletes=tuple(row for row in rows if row and row.due_at_ms <= now)
            )

        self._books.commit(decide)

    # The sandbox's controls, which ordered failures do not affect.

    def settle_payout(self, key: str) -> BankPayout:
        """Let a payout settle now. Raises BankRefused if it cannot, BankUnavailable."""
        return self._change_payout(key, outcomes.settle_now)

    def return_payout(self, key: str, code: str) -> BankPayout:
        """Return a payout now. Raises BankRefused for what the rails would also refuse, and
        BankUnavailable."""
        return self._change_payout(key, lambda payout, now: outcomes.return_now(payout, code, now))

    def count_payouts(self, keys: Sequence[str]) -> int:
        """How many of these keys have a payout in the bank's books."""
        return self._books.read(
            lambda snapshot: sum(
                snapshot.get(SimulatedPayout, key) is not None for key in set(keys)
            )
        )

    def _review(
        self, kind: str, key: str, request: object, rejection: str | None = None
    ) -> BankReview:
        text = msgspec.json.encode(request).decode()
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedReview]:
            known = tx.get(SimulatedReview, f"{kind}:{key}", for_update=True)
            if known is not None:
                if known.request_digest not in self._key_ring.digests(_DIGEST, text):
                    raise KeyReused("this key was used with another request")
                return Decision(known)
            made = SimulatedReview(
                id=f"{kind}:{key}",
                request_digest=self._key_ring.digest(_DIGEST, text),
                decides_at_ms=now + outcomes.REVIEW_TAKES,
                rejection=rejection,
            )
            return Decision(made, inserts=(made,))

        made = self._books.commit(decide)
        self._books.require_answer("lost_answer")
        return outcomes.view_review(made, self._clock.now())

    def _find_review(self, kind: str, key: str) -> BankReview | None:
        found = self._books.read(lambda snapshot: snapshot.get(SimulatedReview, f"{kind}:{key}"))
        return None if found is None else outcomes.view_review(found, self._clock.now())

    def _change_payout(
        self, key: str, change: Callable[[SimulatedPayout, Instant], SimulatedPayout]
    ) -> BankPayout:
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedPayout]:
            before = _lock_payout(tx, key)
            if before is None:
                raise BankRefused("payout_unknown", "the bank has no payout with this key")
            after = change(before, now)
            if after == before:
                return Decision(before)
            return Decision(after, replaces=(after,)).merge(_decide_notices(tx, before, after))

        return outcomes.view_payout(self._books.commit(decide), self._clock.now())


def _lock_payout(tx: Transaction, key: str) -> SimulatedPayout | None:
    return tx.get(SimulatedPayout, key, for_update=True)


def _decide_notices(
    tx: Transaction, before: SimulatedPayout, after: SimulatedPayout
) -> Decision[None]:
    """The notices of a payout whose course has changed. Acknowledged notices stay acknowledged."""
    planned = {notice.id: notice for notice in outcomes.plan_notices(after)}
    known = {notice.id for notice in outcomes.plan_notices(before)}
    outcome: Decision[None] = Decision(
        None, inserts=tuple(notice for id, notice in planned.items() if id not in known)
    )
    for id in sorted(known):
        row = tx.get(SimulatedBankNotice, id, for_update=True)
        if row is None:
            continue
        notice = planned.get(id)
        if notice is None:
            outcome = outcome.merge(Decision(None, deletes=(row,)))
        elif notice.due_at_ms != row.due_at_ms:
            changed = evolve(row, occurred_at_ms=notice.occurred_at_ms, due_at_ms=notice.due_at_ms)
            outcome = outcome.merge(Decision(None, replaces=(changed,)))
    return outcome
