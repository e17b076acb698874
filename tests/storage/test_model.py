"""SQLite and PostgreSQL beside the memory adapter, which is the model, on drawn histories."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from payments_core.conformance.storage.records import RECORD_TYPES, Note
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage, Transaction, Where
from payments_core.storage.postgres.adapter import open_url as open_postgres
from payments_core.storage.records import Record
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.servers import drop_schema, fresh_schema

TEXTS = ("", "Z", "a", "é", "😀")
SIZES = (None, -1, 0, 2**63 - 1)
NOW = 5_000_000_000

ids = st.sampled_from("abcdefgh")
texts = st.sampled_from(TEXTS)
nullable = st.sampled_from((None, "a", "é", "Z"))
notes = st.builds(
    Note,
    id=ids,
    group=st.sampled_from(("one", "one", "one", "two")),
    rank=st.integers(-1, 2),
    name=texts,
    tag=nullable,
    size=st.sampled_from(SIZES),
    code=nullable,
    left=nullable,
    right=nullable,
)
comparisons = st.one_of(
    st.builds(Where, st.just("name"), st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), texts),
    st.builds(
        Where,
        st.just("size"),
        st.sampled_from(("=", "!=", "<", "<=", ">", ">=")),
        st.integers(-1, 1),
    ),
)
questions = st.tuples(
    st.sampled_from(("by_rank", "newest", "by_name", "by_name_and_rank", "by_tag", "all")),
    nullable,
    st.sampled_from(("one", "two")),
    st.lists(comparisons, max_size=2),
    st.integers(1, 4),
)
keys = st.lists(
    st.tuples(nullable, st.sampled_from(SIZES)) | st.sampled_from([("\0", 0), ("a", 2**63)]),
    max_size=5,
)
steps = st.one_of(
    st.tuples(st.just("insert"), notes),
    st.tuples(st.sampled_from(("replace", "delete", "hold", "get")), notes),
    st.tuples(st.just("find"), questions),
)
ends = st.one_of(  # most works end well, or there would be nothing to find
    st.none(),
    st.none(),
    st.none(),
    st.tuples(st.just("insert"), notes),
    st.tuples(st.sampled_from(("replace stale", "delete stale", "hold stale")), notes),
    st.tuples(st.just("fail"), st.none()),
)
instants = st.sampled_from((0, NOW - 2**21, NOW - 1, NOW, NOW + 10, NEVER))


class Refusal(Exception):
    """What a work raises of its own."""


class Comparison(RuleBasedStateMachine):
    """Does the same to both, and compares what comes of it."""

    subject: ClassVar[Storage]
    runs = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.model = MemoryStorage()
        run = next(self.runs)  # partitions and queues of its own stand for a fresh database
        # No earlier run's partition comes behind: what is located crosses all of them.
        self.start = (f"run {run:06d}", "")
        self.partitions = [f"{self.start[0]} one", f"{self.start[0]} two"]
        self.queue = f"queue {run}"

    def both(self, call: Callable[[Storage], Any]) -> Any:
        outcomes = [_outcome(call, storage) for storage in (self.model, self.subject)]
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    @initialize(
        some=st.lists(notes, min_size=4, max_size=6, unique_by=lambda note: note.id),
        lanes=st.lists(st.sampled_from("xyz"), min_size=5, max_size=9),
    )
    def begin(self, some: list[Note], lanes: list[str]) -> None:
        """With rows, or most questions would find none."""
        for note in some:
            bare = attrs.evolve(note, code=None, left=None)
            for partition in self.partitions:
                self.both(partial(_insert, partition, bare))
        for number, lane in enumerate(lanes):
            self.add_job(self.partitions[number % 2], str(number), lane=lane, due_at=NOW - number)

    @rule(there=st.booleans(), work=st.lists(steps, min_size=1, max_size=4), end=ends)
    def transact(self, there: bool, work: list[tuple[str, Any]], end: Any) -> None:
        whole = [*work, end] if end else work

        def run(tx: Transaction) -> list[Any]:
            return [_step(tx, name, what) for name, what in whole]

        self.both(lambda storage: storage.transact(self.partitions[there], run))

    @rule(there=st.booleans(), question=questions)
    def page_through(self, there: bool, question: Any) -> None:
        after = None
        for _ in range(10):
            page = self.both(
                lambda storage, after=after: storage.read(
                    self.partitions[there], lambda snapshot: _find(snapshot, question, after)
                )
            )
            after = page.next
            if after is None:
                return
        raise AssertionError("the pages do not end")

    @rule(keys=keys, where=st.lists(comparisons, max_size=2), limit=st.integers(1, 5))
    def locate(self, keys: Any, where: Any, limit: int) -> None:
        self.go_through("tagged", keys, where, limit)

    @rule(names=st.lists(texts, max_size=3), limit=st.integers(1, 5))
    def locate_by_name(self, names: list[str], limit: int) -> None:
        self.go_through("named", [(name,) for name in names], (), limit)

    def go_through(self, lookup: str, keys: Any, where: Any, limit: int) -> None:
        after, found = self.start, []
        for _ in range(20):
            some = self.both(
                lambda storage, after=after: list(
                    storage.locate(Note, lookup, keys, where=where, after=after, limit=limit)
                )
            )
            found.extend(some)
            if len(some) < limit:
                assert len({(item.partition, item.record.id) for item in found}) == len(found)
                return
            after = (some[-1].partition, some[-1].record.id)
        raise AssertionError("it does not end")

    @rule(there=st.booleans(), id=ids)
    def look(self, there: bool, id: str) -> None:
        self.both(lambda storage: storage.read(self.partitions[there], lambda s: s.get(Note, id)))

    @rule(
        there=st.booleans(),
        id=ids,
        lane=st.sampled_from("xyz"),
        due_at=instants,
        ordinal=st.integers(0, 1),
        lease_until=st.sampled_from((0, 0, NOW, NEVER)),
    )
    def put_job(self, there: bool, id: str, **fields: Any) -> None:
        self.add_job(self.partitions[there], id, **fields)

    def add_job(self, partition: str, id: str, **fields: Any) -> None:
        job = Job(id=f"{partition} {id}", queue=self.queue, kind="k", subject="s", **fields)
        self.both(partial(_insert, partition, job))

    @rule(there=st.booleans(), id=ids)
    def end_job(self, there: bool, id: str) -> None:
        def work(tx: Transaction) -> None:
            job = tx.get(Job, f"{self.partitions[there]} {id}", for_update=True)
            if job is not None:
                tx.delete(job)

        self.both(lambda storage: storage.transact(self.partitions[there], work))

    @rule(now=instants, limit=st.integers(1, 4), lane_concurrency=st.integers(1, 3))
    def claim(self, now: int, limit: int, lane_concurrency: int) -> None:
        self.both(
            lambda storage: list(
                storage.claim(
                    self.queue, now, lease_ms=20, limit=limit, lane_concurrency=lane_concurrency
                )
            )
        )

    @rule(there=st.integers(0, 1), after=st.none() | ids, limit=st.integers(1, 4))
    def measure(self, there: int, after: str | None, limit: int) -> None:
        kind = Note if there else Job
        self.both(lambda storage: _sum_pages(storage, self.partitions[there], kind, after, limit))

    @rule(after=st.none() | instants)
    def next_due(self, after: int | None) -> None:
        self.both(lambda storage: storage.next_due(self.queue, after))


def _outcome(call: Callable[[Storage], Any], storage: Storage) -> Any:
    try:
        return call(storage)
    except Exception as error:
        return type(error)


def _sum_pages(
    storage: Storage, partition: str, kind: type[Record], after: str | None, limit: int
) -> int:
    page = storage.measure(partition, kind, after, limit)
    rest = 0 if page.next is None else _sum_pages(storage, partition, kind, page.next, limit)
    return page.bytes + rest


def _insert(partition: str, record: Record, storage: Storage) -> None:
    storage.transact(partition, lambda tx: tx.insert(record))


def _step(tx: Transaction, name: str, what: Any) -> Any:
    if name == "fail":
        raise Refusal
    if name == "insert" and tx.get(Note, what.id) is None:
        return tx.insert(what)
    if name == "find":
        return _find(tx, what, None)
    found = tx.get(Note, what.id, for_update=name == "replace")
    if name in ("get", "insert"):
        return found
    verb, _, stale = name.partition(" ")
    if found is None and not stale:
        return None
    version = (found.version if found else 1) - bool(stale)
    return getattr(tx, verb)(attrs.evolve(what, version=version))


def _find(tx: Any, question: Any, after: Any) -> Any:
    index, tag, group, where, limit = question
    key = {"all": (), "by_tag": (tag,)}.get(index, (group,))
    return tx.find(Note, index, key, where=where, after=after, limit=limit)


def compare(storage: Storage, examples: int) -> None:
    class Machine(Comparison):
        subject = storage

    storage.migrate()
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=30,
                deadline=None,
                derandomize=True,
                database=None,
            ),
        )
    finally:
        storage.close()


def test_sqlite_does_as_memory_does(tmp_path: Path) -> None:
    compare(SqliteStorage(tmp_path / "data.db", RECORD_TYPES), 60)


@pytest.mark.postgres
def test_postgres_does_as_memory_does(postgres_server: str) -> None:
    url = fresh_schema(postgres_server)
    try:
        compare(open_postgres(url, RECORD_TYPES), 30)
    finally:
        drop_schema(url)
