"""What waits for a person in an environment: counted, and listed.

Each kind has an index of its own, which has only what waits, so that neither depends on how much an
environment has stored. What only the operator of the deployment can mend is shown to the log-ins
that the settings name (`Settings.deployment_operators`), and to nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar

import attrs

from payments_core.accounts.verification.record import Verification
from payments_core.chains.gas import FEW_TRANSFERS, ReportsGas, follow_operator
from payments_core.chains.port import Chain
from payments_core.clock import DAY, Instant
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.notices.record import StoredNotice
from payments_core.payments.record import Payment
from payments_core.screening.record import HeldTransfer
from payments_core.storage.jobs import Job, ParkedJobMark
from payments_core.storage.port import DIRECTORY, Snapshot, Where
from payments_core.storage.records import Record, Value
from payments_core.tenants.authorization import Authority
from payments_core.webhooks.record import Endpoint

T = TypeVar("T")

Kind = Literal["payments", "transfers", "verifications", "endpoints", "jobs", "notices", "senders"]

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


@attrs.frozen
class WaitingJob:
    """A parked job, its partition, and since when it is parked."""

    partition: str
    job: Job
    parked_at_ms: Instant


@attrs.frozen
class LowSender:
    """A sender of the environment that has coins for the fees of only so many transfers."""

    chain_id: int
    address: str
    transfers: int


@attrs.frozen(kw_only=True)
class Waiting:
    """What waits: of each kind the oldest few, and how many there are, at most MOST_COUNTED.

    Kinds of products that the environment does not have are empty. `jobs`, the newest first,
    `notices` and `senders` are for operators of the deployment: jobs of the environment and of the
    deployment's directory, notices of the mode.
    """

    payments: Sequence[Payment] = ()
    transfers: Sequence[HeldTransfer] = ()
    verifications: Sequence[Verification] = ()
    endpoints: Sequence[Endpoint] = ()
    jobs: Sequence[WaitingJob] = ()
    notices: Sequence[StoredNotice] = ()
    senders: Sequence[LowSender] = ()
    counts: Mapping[Kind, int]


class Inbox:
    """What waits for a person in an environment."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, Chain],
        deployment_operators: Collection[str],
    ) -> None:
        self._storage = ports.storage
        self._clock = ports.clock
        self._chains = chains
        self._deployment_operators = deployment_operators

    def count(self, authority: Authority) -> Mapping[Kind, int]:
        """How many of each kind wait, at most MOST_COUNTED; a query for each kind."""
        now = self._clock.now()
        counts = self._storage.read(
            authority.partition, lambda snapshot: _count(snapshot, _find_matters(authority), now)
        )
        if not self.is_of_deployment(authority):
            return counts
        return {
            **counts,
            "jobs": len(self._find_jobs(authority)),
            "notices": self._read_notices(
                authority, lambda snapshot, at: snapshot.count(*at, limit=MOST_COUNTED)
            ),
            "senders": len(self._find_senders(authority)),
        }

    def is_of_deployment(self, authority: Authority) -> bool:
        """Whether the caller operates the deployment, and not only an environment of it."""
        operator = authority.operator
        return operator is not None and operator.username in self._deployment_operators

    def list(self, authority: Authority) -> Waiting:
        """What waits, of each kind the oldest LISTED; two queries for each kind that has some.

        A record that cannot be read is skipped with an alarm.
        """
        now, matters = self._clock.now(), _find_matters(authority)
        of_deployment = self._list_of_deployment(authority)

        def load(snapshot: Snapshot) -> Waiting:
            counts = _count(snapshot, matters, now)
            found: dict[str, Any] = {
                name: _find(snapshot, matters[name], now) for name, count in counts.items() if count
            }
            return Waiting(counts=counts, **found)

        waiting = self._storage.read(authority.partition, load)
        found: Mapping[str, Sequence[Any]] = {
            name: records[:LISTED] for name, records in of_deployment.items()
        }
        counts = {name: len(records) for name, records in of_deployment.items()}
        return evolve(waiting, counts={**waiting.counts, **counts}, **found)

    def _list_of_deployment(self, authority: Authority) -> Mapping[Kind, Sequence[Any]]:
        """All of each kind that is for operators of the deployment, at most MOST_COUNTED."""
        if not self.is_of_deployment(authority):
            return {}
        return {
            "jobs": self._find_jobs(authority),
            "notices": self._read_notices(
                authority,
                lambda snapshot, at: (
                    snapshot.find(*at, limit=MOST_COUNTED, skip_damaged=True).records
                ),
            ),
            "senders": self._find_senders(authority),
        }

    def _find_jobs(self, authority: Authority) -> Sequence[WaitingJob]:
        """The newest parked jobs: a query by the marks, and one of their jobs if there are any."""

        def load(snapshot: Snapshot) -> Sequence[tuple[Job, Instant]]:
            marks = snapshot.find(
                ParkedJobMark, "newest", limit=MOST_COUNTED, skip_damaged=True
            ).records
            jobs = snapshot.get_many(Job, [one.job_id for one in marks]) if marks else {}
            return [
                (jobs[one.job_id], one.parked_at)
                for one in marks
                if one.is_of(jobs.get(one.job_id))
            ]

        return [
            WaitingJob(partition, job, at)
            for partition in (authority.partition, DIRECTORY)
            for job, at in self._storage.read(partition, load)
            if job.queue.startswith(f"{authority.mode}.")
        ][:MOST_COUNTED]

    def _read_notices(
        self, authority: Authority, read: Callable[[Snapshot, tuple[Any, ...]], T]
    ) -> T:
        at = (StoredNotice, "by_status", (authority.mode, "unknown"))
        return self._storage.read(DIRECTORY, lambda snapshot: read(snapshot, at))

    def _find_senders(self, authority: Authority) -> Sequence[LowSender]:
        """The environment's senders with few coins, as this process last read them: no node is
        asked. What was read ten minutes ago or before is not known any more."""
        found = []
        for chain_id, chain in self._chains.items():
            sender = follow_operator(chain, authority.partition)
            if sender is None or not isinstance(chain, ReportsGas):
                continue
            transfers = chain.list_affordable().get(sender)
            if transfers is not None and transfers < FEW_TRANSFERS:
                found.append(LowSender(chain_id, sender, transfers))
        return found


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
