"""The adapter of the examples, held to what our own adapters are held to."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

import lmdb
import pytest

from examples.custom_storage import LmdbStorage
from payments_core import KeyRing, NewAccount, NewPayment, PaymentsService, ToAccount
from payments_core.conformance.storage import AdapterLocation, StorageConformance
from payments_core.conformance.storage.harness import fetch_all_pages
from payments_core.conformance.storage.records import RECORD_TYPES as SUITE_KINDS
from payments_core.conformance.storage.records import Counter, IndexedParcel, Note, Parcel
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.jobs import Job
from payments_core.storage.port import Storage, StorageError, StorageUnavailable, Transaction
from payments_core.storage.records import Record
from tests.storage.test_model import compare

ROOT = Path(__file__).resolve().parents[2]
ADAPTER = ROOT / "examples" / "custom_storage.py"
PAGE = ROOT / "docs" / "how-to" / "write-a-storage-adapter.md"
HERE = "here"


class TestLmdb(StorageConformance):
    persistent = True
    multi_process = True
    can_lose_commits = True

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.url = f"lmdb:///{tmp_path}/data.lmdb"

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return LmdbStorage(self.url, record_types)

    def location(self) -> AdapterLocation:
        return AdapterLocation("examples.custom_storage:LmdbStorage", self.url)

    def lose_next_commit(self, storage: Storage, *, applied: bool) -> None:
        assert isinstance(storage, LmdbStorage)
        storage._env = FailingDisk(storage._env, applied)  # type: ignore[assignment,arg-type]


class FailingDisk:
    """An environment of LMDB whose next commit ends with an error, done or not done."""

    def __init__(self, env: lmdb.Environment, applied: bool) -> None:
        self._env, self._applied, self._armed = env, applied, True

    def begin(self, write: bool = False) -> lmdb.Transaction[bytes] | FailingCommit:
        txn = self._env.begin(write=write)
        if not (write and self._armed):
            return txn
        self._armed = False
        return FailingCommit(txn, self._applied)


class FailingCommit:
    def __init__(self, txn: lmdb.Transaction[bytes], applied: bool) -> None:
        self._txn, self._applied = txn, applied

    def __enter__(self) -> lmdb.Transaction[bytes]:
        return self._txn

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is None and self._applied:
            self._txn.commit()
        else:
            self._txn.abort()
        if kind is None:
            raise lmdb.DiskError("mdb_txn_commit: Input/output error")


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[LmdbStorage]:
    opened = LmdbStorage(f"lmdb:///{tmp_path}/data.lmdb", SUITE_KINDS)
    opened.migrate()
    yield opened
    opened.close()


def test_the_adapter_is_as_short_as_it_says() -> None:
    assert len(ADAPTER.read_text(encoding="utf-8").splitlines()) <= 290


@pytest.mark.parametrize("letter", ["a", "\N{GRINNING FACE}"])
def test_texts_longer_than_a_key_of_lmdb_keep_their_order(
    storage: LmdbStorage, letter: str
) -> None:
    names = [letter * 499 + end for end in ("", "z", "b", "c")] + [letter * 120, letter * 119]
    notes = [Note(id=f"n{at}", name=name, rank=1) for at, name in enumerate(names)]

    def insert(tx: Transaction) -> None:
        for note in notes:
            tx.insert(note)

    storage.transact(HERE, insert)
    found = fetch_all_pages(storage, Note, "by_name", ("one",), limit=1, partition=HERE)
    assert [note.name for note in found] == sorted(names)


def test_a_full_file_is_an_error_and_loses_nothing(storage: LmdbStorage) -> None:
    assert storage._env is not None
    storage._env.set_mapsize(1 << 18)
    written = itertools.count()

    def put(note: Note, tx: Transaction) -> None:
        tx.insert(note)

    def fill() -> None:
        while True:
            note = Note(id=f"n{next(written)}", text="x" * 2_000)
            storage.transact(HERE, partial(put, note))

    with pytest.raises(StorageError):  # StorageUnavailable, or CommitUnknown at the very end
        fill()
    storage._env.set_mapsize(1 << 24)
    answered = next(written) - 1
    assert answered > 0
    kept = fetch_all_pages(storage, Note, "all", partition=HERE)
    assert {note.id for note in kept} >= {f"n{number}" for number in range(answered)}
    storage.transact(HERE, lambda tx: tx.insert(Note(id="more")))


def test_a_damaged_job_stops_no_queue(
    storage: LmdbStorage, caplog: pytest.LogCaptureFixture
) -> None:
    def add(tx: Transaction) -> None:
        for id in ("a", "b"):
            tx.insert(Job(id=id, queue="q", lane="one", kind="k", due_at=1, subject="s"))

    storage.transact(HERE, add)
    assert storage._env is not None
    with storage._env.begin(write=True) as txn:
        for place, row in txn.cursor():
            if b'"id":"a"' in row:
                txn.put(place, row.replace(b'"due_at":', b'"due_at"X'))
    claimed = storage.claim("q", 5, lease_ms=10, limit=9, lane_concurrency=9)
    assert [item.job.id for item in claimed] == ["b"]
    assert "ALARM: a of here in jobs cannot be read" in caplog.text


def test_the_release_before_removes_all_that_leads_to_a_record(tmp_path: Path) -> None:
    url = f"lmdb:///{tmp_path}/data.lmdb"
    before, after = LmdbStorage(url, [Parcel]), LmdbStorage(url, [IndexedParcel])
    before.migrate()
    after.migrate()
    after.transact(HERE, lambda tx: tx.insert(IndexedParcel(id="old", label="taken")))
    old = before.read(HERE, lambda rows: rows.get(Parcel, "old"))
    assert old is not None
    before.transact(HERE, lambda tx: tx.delete(old))
    after.transact(HERE, lambda tx: tx.insert(IndexedParcel(id="new", label="taken")))
    found = fetch_all_pages(after, IndexedParcel, "by_state", ("packed",), partition=HERE)
    assert [parcel.id for parcel in found] == ["new"]
    before.close()
    after.close()


def test_handles_of_one_file_close_one_by_one(tmp_path: Path) -> None:
    url = f"lmdb:///{tmp_path}/data.lmdb"
    one, other = LmdbStorage(url, SUITE_KINDS), LmdbStorage(url, SUITE_KINDS)
    one.migrate()
    one.close()
    other.transact(HERE, lambda tx: tx.insert(Counter(id="c", total=1)))
    with pytest.raises(StorageUnavailable):
        one.read(HERE, lambda rows: rows.get(Counter, "c"))
    other.close()
    again = LmdbStorage(url, SUITE_KINDS)
    assert again.read(HERE, lambda rows: rows.get(Counter, "c")) is not None
    again.close()


def test_it_does_as_memory_does(tmp_path: Path) -> None:
    compare(LmdbStorage(f"lmdb:///{tmp_path}/data.lmdb", SUITE_KINDS), 60)


def test_a_place_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    for url in (f"lmdb:///{tmp_path}", f"lmdb:///{tmp_path}/absent/data.lmdb", "lmdb:"):
        with pytest.raises(StorageUnavailable):
            LmdbStorage(url, SUITE_KINDS)


def test_a_whole_payment_on_the_simulated_chains(tmp_path: Path) -> None:
    url = f"lmdb:///{tmp_path}/shop.lmdb"
    storage = LmdbStorage(url, RECORD_TYPES)
    storage.migrate()
    ring = KeyRing.generate()
    service = PaymentsService(storage, KeyRing.parse(ring))
    app = service.tenants.create_app("Shop", "shop")
    shop = service.environment(app.environments["sandbox"])
    merchant = shop.accounts.create(NewAccount(external_user_id="s", subject_type="business"))
    order = NewPayment(amount="25.00", destination=ToAccount(account_id=merchant.account.id))
    payment = shop.payments.receive(order).payment
    assert payment.escrow_address is not None
    shop.sandbox.transfer(8453, "USDC", "25.00", to=payment.escrow_address)
    shop.sandbox.advance_clock(60)
    assert shop.payments.read(payment.id).payment.status == "succeeded"
    service.close()

    reopened = PaymentsService(LmdbStorage(url, RECORD_TYPES), KeyRing.parse(ring))
    stored = reopened.environment(app.environments["sandbox"]).payments.read(payment.id).payment
    assert stored.settled_atomic == 25_000_000
    reopened.close()


def test_a_package_registers_its_scheme_by_an_entry_point(tmp_path: Path) -> None:
    package, site = tmp_path / "package", tmp_path / "site"
    package.mkdir()
    (package / "custom_storage.py").write_text(ADAPTER.read_text(encoding="utf-8"))
    shown = re.search(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert shown is not None
    (package / "pyproject.toml").write_text(shown[1])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([*pip, str(package)], check=True, cwd=tmp_path)

    script = f"""
import sys
sys.path.insert(0, {str(site)!r})
from payments_core import open_storage
storage = open_storage("lmdb:///shop.lmdb")
storage.migrate()
storage.close()
print(type(storage).__module__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "custom_storage\n"
    assert (tmp_path / "shop.lmdb").is_file()
