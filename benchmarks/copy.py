"""Moving 100,000 Payments from an SQLite file to PostgreSQL, compared and committed as a whole.

    python -m benchmarks.copy [--payments 100000] [--real 400] [--keep FOLDER]

The first `--real` Payments are made through the service, and most of them are paid and released,
with events to an endpoint. Their environment is then cloned with fresh ids until there are enough
rows. The file is copied to a PostgreSQL of its own whose commits wait for the disk.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from payments_core.engine.identifiers import Identifiers
from payments_core.maintenance.storage_copy import copy, verify
from payments_core.payments.record import Payment
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.maintenance import RecordRow, require_maintenance_access, scan_all
from payments_core.storage.port import DIRECTORY, Storage
from payments_core.storage.sqlite import backups as sqlite_backups
from payments_core.storage_loader import open_storage
from payments_core.tenants.record import App, PartnerName
from tests.maintenance.shop import Shop
from tests.servers import Cluster

_ID = re.compile(r"\b(?!env_)([a-z]+(?:_[a-z]+)*)_([A-Za-z0-9_-]{24})(?![A-Za-z0-9_-])")
PARTNER = "bench"


@contextmanager
def timed(what: str) -> Iterator[None]:
    began, worked = time.perf_counter(), time.process_time()
    yield
    took, itself = time.perf_counter() - began, time.process_time() - worked
    print(f"{what}: {took:.1f} s, of which this process worked {itself:.1f} s", flush=True)


def make_real(storage: Storage, payments: int) -> str:
    """An environment with Payments that came by the service itself; its id."""
    shop = Shop(storage).stock(payments)
    statuses = Counter(one.record.status for one in scan_all(storage, Payment))
    print(f"Payments by the service: {dict(statuses)}")
    return shop.environment_id


@attrs.define
class Clone:
    """An environment under other ids, each of them fresh and the same wherever it stands."""

    environment_id: str
    fresh: str
    number: int
    identifiers: Identifiers
    ids: dict[str, str] = attrs.field(factory=dict)

    def row(self, kind: type[Any], row: RecordRow) -> RecordRow:
        body = self.text(row.body)
        record = attrs.evolve(row, body=body).read(kind)
        columns = kind.collection.values(record)
        return RecordRow(self.text(row.partition), record.id, row.version, columns, body)

    def text(self, text: str) -> str:
        text = text.replace(self.environment_id, self.fresh)
        text = text.replace(f'"{PARTNER}"', f'"{PARTNER}-{self.number}"')
        return _ID.sub(self._id, text)

    def _id(self, match: re.Match[str]) -> str:
        found = match[0]
        if found not in self.ids:
            self.ids[found] = self.identifiers.new(match[1])
        return self.ids[found]


def clone(storage: Storage, environment_id: str, times: int, identifiers: Identifiers) -> None:
    """Load the rows of an environment again and again, and those that say that it is there."""
    with require_maintenance_access(storage).lock_exclusively() as alone:
        rows = {
            kind: _of(alone.read_rows(kind, limit=10**7), environment_id) for kind in RECORD_TYPES
        }
        for shared in (App, PartnerName):
            rows[shared] = _of(alone.read_rows(shared, limit=10), DIRECTORY)
    for number in range(1, times + 1):
        one = Clone(environment_id, identifiers.new("env"), number, identifiers)
        with require_maintenance_access(storage).lock_exclusively() as alone:
            for kind, found in rows.items():
                alone.load(kind, [one.row(kind, row) for row in found])


def _of(rows: Sequence[RecordRow], partition: str) -> list[RecordRow]:
    return [row for row in rows if row.partition == partition]


def main() -> None:
    """Make the file, copy it, compare it, and say how long each took."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--payments", type=int, default=100_000)
    arguments.add_argument("--real", type=int, default=400)
    arguments.add_argument("--keep", type=Path, help="a folder for the file, which is then kept")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(asked.keep or Path(folder), asked.payments, asked.real)


def run(folder: Path, payments: int, real: int) -> None:
    path = folder / "payments.db"
    source = open_storage(f"sqlite:///{path}", RECORD_TYPES)
    if not path.exists():
        source.migrate()
        with timed(f"{real} Payments through the service"):
            environment_id = make_real(source, real)
        with timed(f"cloned to {payments}"):
            identifiers = Shop(source).service.parts.ports.identifiers
            clone(source, environment_id, payments // real - 1, identifiers)
    print(f"file: {path.stat().st_size / 2**20:.0f} MB")
    with timed("backup, checked"):
        made = sqlite_backups.backup(path, folder / "backup.db", RECORD_TYPES, overwrite=True)
    print(f"backup: {made.bytes / 2**20:.0f} MB, {made.rows} rows")
    with Cluster() as cluster:
        cluster.start()
        target = open_storage(cluster.url(), RECORD_TYPES)
        target.migrate()
        with timed("copied, compared and committed"):
            began = time.perf_counter()
            times: dict[str, float] = {}
            copied = copy(
                source,
                target,
                RECORD_TYPES,
                progress=lambda step, *_: times.update({step: time.perf_counter() - began}),
            )
        print(f"of which copying {times['copy']:.1f} s")
        for one in copied.differences.collections:
            if one.source_rows:
                print(f"  {one.collection}: {one.target_rows}  {one.target_digest[:16]}")
        rows = sum(copied.rows.values())
        print(f"{rows} rows, {copied.differences.count} differences")
        with timed("compared once more, by themselves"):
            assert verify(source, target, RECORD_TYPES).count == 0
        target.close()
    source.close()


if __name__ == "__main__":
    main()
