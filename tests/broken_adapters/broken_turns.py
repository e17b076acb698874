"""Adapters that each break one promise of claims about partitions, and about what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from payments_core.storage.claim_semantics import ready_at
from payments_core.storage.memory.transaction import StoredRow
from payments_core.storage.port import Transaction
from tests.broken_adapters.broken import Wrapped

T = TypeVar("T")

FEW_LANES = 640
FEW_JOBS = 256


class LanesSpanPartitions(Wrapped):
    """A lane has its slots in all partitions together."""

    def claim(self, queue: str, now: int, **options: Any) -> Any:
        live = {str(row.columns["lane"]) for _, row in self._iter_jobs(queue) if _leased(row, now)}
        return super().claim(
            queue, now, **{**options, "limit": 1, "lane_overrides": dict.fromkeys(live, 0)}
        )


class FirstPartitionStarvesTheOthers(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        self._rings.turns.clear()
        return super().claim(queue, now, **options)


class FullClaimKeepsTheTurn(Wrapped):
    """A partition has its turn until it has nothing left."""

    def claim(self, queue: str, now: int, **options: Any) -> Any:
        before = dict(self._rings.turns)
        claimed = super().claim(queue, now, **options)
        if len(claimed) == options["limit"] > 1:
            self._rings.turns = before
        return claimed


class LanesBeginAnewWithEachTurn(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        self._rings.lanes.clear()
        return super().claim(queue, now, **options)


class FullPartitionHoldsUpTheOthers(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        for partition in sorted({name for name, _ in self._iter_jobs(queue)}):
            rows = [row for name, row in self._iter_jobs(queue) if name == partition]
            full = {row.columns["lane"] for row in rows if _leased(row, now)}
            if any(row.columns["lane"] in full and ready_at(row) <= now for row in rows):
                return []
        return super().claim(queue, now, **options)


class _SeesFew(Wrapped):
    """Its claims look at some of the jobs."""

    now = 0

    def claim(self, queue: str, now: int, **options: Any) -> Any:
        self.now = now
        try:
            return super().claim(queue, now, **options)
        finally:
            self.now = 0

    def _iter_jobs(self, queue: str) -> Iterator[tuple[str, StoredRow]]:
        rows = list(super()._iter_jobs(queue))
        yield from self.few(rows) if self.now else rows

    def few(self, rows: list[tuple[str, StoredRow]]) -> list[tuple[str, StoredRow]]:
        return rows


class LanesWithNothingDueAreCounted(_SeesFew):
    """It looks at no more than so many lanes, due or not."""

    def few(self, rows: list[tuple[str, StoredRow]]) -> list[tuple[str, StoredRow]]:
        lanes = sorted({str(row.columns["lane"]) for _, row in rows})[:FEW_LANES]
        return [item for item in rows if item[1].columns["lane"] in lanes]


class LanesWithoutRoomAreCounted(_SeesFew):
    """It looks at no more than so many lanes with due jobs, full or not."""

    def few(self, rows: list[tuple[str, StoredRow]]) -> list[tuple[str, StoredRow]]:
        due = {str(row.columns["lane"]) for _, row in rows if ready_at(row) <= self.now}
        lanes = sorted(due)[:FEW_LANES]
        return [i for i in rows if i[1].columns["lane"] in lanes or _leased(i[1], self.now)]


class OldestJobsHideTheOthers(_SeesFew):
    """It looks at no more than so many due jobs."""

    def few(self, rows: list[tuple[str, StoredRow]]) -> list[tuple[str, StoredRow]]:
        leased = [item for item in rows if _leased(item[1], self.now)]
        due = [item for item in rows if ready_at(item[1]) <= self.now]
        return leased + sorted(due, key=lambda item: ready_at(item[1]))[:FEW_JOBS]


class HintsAreTrusted(_SeesFew):
    """It looks where a transaction has written, and nowhere else."""

    def __init__(self, record_types: Any) -> None:
        super().__init__(record_types)
        self.written: set[str] = set()

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        self.written.add(partition)
        return super().transact(partition, work)

    def few(self, rows: list[tuple[str, StoredRow]]) -> list[tuple[str, StoredRow]]:
        return [item for item in rows if item[0] in self.written]


def _leased(row: StoredRow, now: int) -> bool:
    return int(row.columns["lease_until"] or 0) > now
