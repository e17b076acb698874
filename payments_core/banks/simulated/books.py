"""The books of the simulated banks: rows of the storage, read and written when the bank answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from payments_core.banks.port import BankUnavailable
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.storage.port import SIMULATED, Snapshot, StorageError, Transaction

T = TypeVar("T")

_AUTHORITY = WorkerAuthority(SIMULATED, "sandbox")


class SimulatedBooks:
    """The stored books of a simulated bank. `fails` is asked with the name of each call."""

    def __init__(self, ports: Ports, fails: Callable[[str], bool]) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._fails = fails

    def require_answer(self, call: str) -> None:
        """Return unless the call is to fail. Raises BankUnavailable."""
        if self._fails(call):
            raise BankUnavailable("the sandbox makes this call fail")

    def read(self, load: Callable[[Snapshot], T]) -> T:
        """The result of `load` on the books. Raises BankUnavailable."""
        try:
            return self._storage.read(SIMULATED, load)
        except StorageError as error:
            raise BankUnavailable("the simulated bank's books cannot be read") from error

    def commit(self, decide: Callable[[Transaction, IdSequence], Decision[T]]) -> T:
        """Write the result of `decide` into the books. Raises BankUnavailable."""
        try:
            return self._committer.commit(_AUTHORITY, decide)
        except (StorageError, Unavailable) as error:
            raise BankUnavailable("the simulated bank's books cannot be written") from error
