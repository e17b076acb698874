"""The storage suite: the checks for an adapter before it is trusted with money.

With pytest, a few lines make it run::

    class TestMyStorage(StorageConformance):
        persistent = True
        multi_process = True

        @pytest.fixture(autouse=True)
        def _place(self, tmp_path):
            self.url = f"mine:///{tmp_path}/data"

        def open(self, kinds):
            return my_package.open_url(self.url, kinds)

        def location(self):
            return AdapterLocation("my_package:open_url", self.url)

Any other runner calls `setup_method`, a `test_...` method and `teardown_method` on an instance;
a check of what the adapter does not declare raises `unittest.SkipTest`.

Other processes import `AdapterLocation`'s module, with this one's `sys.path`. The usual cause of a
failing check is in docs/how-to/write-a-storage-adapter.md.
"""

from payments_core.conformance.storage.bulk import BulkChecks
from payments_core.conformance.storage.crashes import CrashChecks, MigrationChecks
from payments_core.conformance.storage.documents import DocumentChecks
from payments_core.conformance.storage.harness import AdapterLocation, Harness
from payments_core.conformance.storage.job_partitions import JobPartitionChecks
from payments_core.conformance.storage.jobs import JobChecks
from payments_core.conformance.storage.leases import LeaseChecks
from payments_core.conformance.storage.locks import LockChecks
from payments_core.conformance.storage.lookups import LookupChecks
from payments_core.conformance.storage.maintenance import MaintenanceChecks
from payments_core.conformance.storage.measures import MeasureChecks
from payments_core.conformance.storage.pages import PageChecks
from payments_core.conformance.storage.snapshots import SnapshotChecks
from payments_core.conformance.storage.transactions import TransactionChecks
from payments_core.conformance.storage.uniqueness import UniquenessChecks

__all__ = ["StorageConformance", "AdapterLocation", "Harness"]


class StorageConformance(
    TransactionChecks,
    LockChecks,
    UniquenessChecks,
    SnapshotChecks,
    PageChecks,
    MeasureChecks,
    LookupChecks,
    DocumentChecks,
    BulkChecks,
    JobChecks,
    JobPartitionChecks,
    LeaseChecks,
    CrashChecks,
    MigrationChecks,
    MaintenanceChecks,
):
    """Every check of the storage port; override `open` and declare what the adapter can do."""
