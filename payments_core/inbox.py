"""What waits for a person in an environment: counted, and listed.

Each kind has an index of its own, which has only what waits, so that neither depends on how much an
environment has stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from payments_core.accounts.verification.record import Verification
from payments_core.clock import DAY, Instant
from payments_core.engine.ports import Ports
from payments_core.payments.record import Payment
from payments_core.screening.record import HeldTransfer
from payments_core.storage.port import Snapshot, Where
from payments_core.storage.records import Record, Value
from payments_core.tenants.authorization import Authority
from payments_core.webhooks.record import Endpoint

Kind = Literal["payments", "transfers", "verifications", "endpoints"]

MOST_COUNTED = 100
"""So many of a kind, or more, are counted as this."""

LISTED = 10
"""How many of a kind are listed, the oldest first."""

VERIFICATION_WAITS_MS = DAY
"""After this time somebody should look at a verification: until then, its user may be at it."""


@attrs.frozen
class _Matter:
    """A kind: the product that it belongs to, and the index that has what waits.

    Younger ones than `age_ms` do not wait yet.
    """

    product: str
    record: type[Record]
    index: str
    key: tuple[Value, ...]
    age_ms: int | None = None

    def read_where(self, now: Instant) -> Sequence[Where]:
        """The comparisons of its query."""
        return () if self.age_ms is None else (Where("created_at", "<=", now - self.age_ms),)


_MATTERS: Mapping[Kind, _Matter] = {
    "payments": _Matter("payments", Payment, "by_attention", ("needed",)),
    "transfers": _Matter("payments", HeldTransfer, "by_status", ("in_review",)),
    "verifications": _Matter("kyc", Verification, "by_status", ("pending",), VERIFICATION_WAITS_MS),
    "endpoints": _Matter("webhooks", Endpoint, "by_attention", ("needed",)),
}


@attrs.frozen(kw_only=True)
class Waiting:
    """What waits: of each kind the oldest few, and how many there are, at most MOST_COUNTED.

    Kinds of products that the environment does not have are empty.
    """

    payments: Sequence[Payment] = ()
    transfers: Sequence[HeldTransfer] = ()
    verifications: Sequence[Verification] = ()
    endpoints: Sequence[Endpoint] = ()
    counts: Mapping[Kind, int]


class Inbox:
    """What waits for a person in an environment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._clock = ports.clock

    def count(self, authority: Authority) -> Mapping[Kind, int]:
        """How many of each kind wait, at most MOST_COUNTED; a query for each kind."""
        now = self._clock.now()
        return self._storage.read(
            authority.partition, lambda snapshot: _count(snapshot, _find_matters(authority), now)
        )

    def list(self, authority: Authority) -> Waiting:
        """What waits, of each kind the oldest LISTED; two queries for each kind that has some.

        A record that cannot be read is skipped with an alarm.
        """
        now, matters = self._clock.now(), _find_matters(authority)

        def load(snapshot: Snapshot) -> Waiting:
            counts = _count(snapshot, matters, now)
            found: dict[str, Any] = {
                name: _find(snapshot, matters[name], now) for name, count in counts.items() if count
            }
            return Waiting(counts=counts, **found)

        return self._storage.read(authority.partition, load)


def _find_matters(authority: Authority) -> Mapping[Kind, _Matter]:
    products = authority.environment.products
    return {name: one for name, one in _MATTERS.items() if one.product in products}


def _count(snapshot: Snapshot, matters: Mapping[Kind, _Matter], now: Instant) -> Mapping[Kind, int]:
    return {
        name: snapshot.count(
            one.record, one.index, one.key, where=one.read_where(now), limit=MOST_COUNTED
        )
        for name, one in matters.items()
    }


def _find(snapshot: Snapshot, matter: _Matter, now: Instant) -> Sequence[Record]:
    return snapshot.find(
        matter.record,
        matter.index,
        matter.key,
        where=matter.read_where(now),
        limit=LISTED,
        skip_damaged=True,
    ).records
