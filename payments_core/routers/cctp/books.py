"""Reads and writes of the router's rows, each in a transaction of its own."""

from __future__ import annotations

from typing import TypeVar

from payments_core.evolve import evolve
from payments_core.storage.port import DIRECTORY, Storage, UniqueConflict
from payments_core.storage.records import Record

R = TypeVar("R", bound=Record)


class Books:
    """The rows of all routes. Every method may raise StorageError; doing it again is harmless."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def find(self, kind: type[R], id: str) -> R | None:
        """The row, or None."""
        return self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(kind, id))

    def add(self, record: R) -> R:
        """The row of this id: the given one, unless another was there first."""
        try:
            self._storage.transact(DIRECTORY, lambda tx: tx.insert(record))
        except UniqueConflict:
            found = self.find(type(record), record.id)
            assert found is not None  # rows of routes are never deleted
            return found
        return evolve(record, version=1)

    def save(self, record: R) -> R:
        """The row, replaced. Raises VersionConflict if another process was first."""
        self._storage.transact(DIRECTORY, lambda tx: tx.replace(record))
        return evolve(record, version=record.version + 1)
