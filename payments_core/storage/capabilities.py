"""What a storage may offer beyond the port; callers test for it with `isinstance`.

`storage/maintenance.py` declares what operators' commands need besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import attrs


@runtime_checkable
class FinishesMigrations(Protocol):
    """A storage whose rows the previous release may have written without the newest columns."""

    def finish_migration(self) -> int:
        """Give every row the columns of its record, when that release no longer runs.

        Returns how many rows were corrected. It may be repeated, and run beside the service.
        """


@runtime_checkable
class ReportsMissingTables(Protocol):
    """A storage that knows, without changing anything, whether `migrate` has to run first."""

    def missing_tables(self) -> Sequence[str]:
        """The tables that this release needs and the storage lacks, and columns as `table.column`.

        A storage that a newer release has migrated lacks nothing. Raises StorageUnavailable.
        """


@runtime_checkable
class ChecksWritability(Protocol):
    """A storage that can detect, without writing, that writes are about to fail."""

    def require_writable(self) -> None:
        """Return unless writes are known to fail, now or soon. Raises StorageUnavailable.

        It takes no lock and waits for no disk: readiness probes call it at any rate.
        """


@attrs.frozen
class Integrity:
    """The faults that a database found in its own files. Unless it is complete, time was up."""

    faults: tuple[str, ...]
    is_complete: bool


@runtime_checkable
class ChecksIntegrity(Protocol):
    """A storage that can check its files, beyond the rows that it reads."""

    def check_integrity(self, limit_s: float) -> Integrity:
        """The faults found within that many seconds. Raises StorageUnavailable."""


@runtime_checkable
class ReportsConfigProblems(Protocol):
    """A storage whose database may be set up so that the port's promises do not hold."""

    def config_errors(self) -> Sequence[str]:
        """The settings that would lose or hide committed data, each in a sentence for operators.

        Raises StorageUnavailable.
        """

    def config_warnings(self) -> Sequence[str]:
        """The settings that may do so, depending on the deployment. Raises StorageUnavailable."""
