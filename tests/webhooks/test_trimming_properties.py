"""A recovery sends what it would have sent if nothing had been deleted, against a simple model."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.clock import DAY, SECOND
from payments_core.errors import ResourceConflict
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Storage
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.webhooks import delivered, trimming
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.transports.port import TransportResult
from payments_core.webhooks.trimming import DeliveryTrim
from tests.service.faults import Crashed, FaultyStorage, commit_failed, commit_lost, crash
from tests.webhooks.replay_bench import ReplayBench

NAMES = ("account.created", "account.updated")
URLS = ("https://a.example/hook", "https://b.example/hook")
SUBSCRIPTIONS = (NAMES, NAMES[:1], NAMES[1:])
FAULTS = (crash, commit_lost, commit_failed)
ONE_OF_TWO = st.integers(0, 1)
FEW = st.integers(0, 3)
KEPT = st.integers(0, 1)

STEPS = st.one_of(
    st.tuples(st.just("happen"), st.sampled_from(NAMES), st.integers(1, 5), st.booleans()),
    st.tuples(st.just("subscribe"), ONE_OF_TWO, st.sampled_from(SUBSCRIPTIONS)),
    st.tuples(st.just("switch"), ONE_OF_TWO),
    st.tuples(st.just("resend"), ONE_OF_TWO, FEW, st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([300, DAY // SECOND // 2, DAY // SECOND + 1])),
    st.tuples(st.just("purge"), st.integers(1, 8), st.sampled_from(FAULTS)),
    st.tuples(st.just("recover"), ONE_OF_TWO, FEW, st.booleans()),
)

RUNS = st.lists(STEPS, min_size=5, max_size=25)


@pytest.fixture(autouse=True, scope="module")
def few() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trimming, "BATCH", 2)
        patch.setattr(delivered, "MAX_MARKS", 2)
        yield


@attrs.define
class Model:
    """What each endpoint got, by what came over the wire alone: the last answer counts."""

    bench: ReplayBench
    endpoints: list[Endpoint] = attrs.field(factory=list)
    events: dict[str, tuple[str, int]] = attrs.field(factory=dict)
    accepted: dict[tuple[str, str], bool] = attrs.field(factory=dict)
    seen: int = 0

    def endpoint(self, number: int) -> Endpoint:
        return self.bench.endpoints.get(self.bench.authority, self.endpoints[number].id)

    def answer(self, accepts: bool) -> None:
        self.bench.answer(TransportResult(200 if accepts else 400))

    def look(self, accepts: bool) -> list[tuple[str, str]]:
        """What was sent since the last look: to which endpoint, and which event."""
        self.bench.settle()
        by_host = {one.url.split("/")[2]: one.id for one in self.endpoints}
        sent = [
            (by_host[request.destination.host], request.headers["x-service-event-id"])
            for request in self.bench.sent[self.seen :]
        ]
        self.seen = len(self.bench.sent)
        self.accepted.update(dict.fromkeys(sent, accepts))
        return sent

    def happen(self, name: str, times: int, accepts: bool) -> None:
        self.answer(accepts)
        for _ in range(times):
            self.events[self.bench.happen(name)] = (name, self.bench.clock.now())
        self.look(accepts)

    def subscribe(self, number: int, names: tuple[str, ...]) -> None:
        self.bench.update(self.endpoints[number], subscribed_events=names)

    def switch(self, number: int) -> None:
        active = self.endpoint(number).status == "active"
        self.bench.update(self.endpoints[number], status="disabled" if active else "active")

    def resend(self, number: int, which: int, accepts: bool) -> None:
        """Whatever became of its delivery, the event goes out again, under the same ids."""
        if not self.events:
            return
        id = sorted(self.events)[which % len(self.events)]
        endpoint = self.endpoint(number)
        self.answer(accepts)
        if endpoint.status != "active" or not endpoint.subscribes(self.events[id][0]):
            with pytest.raises(ResourceConflict):
                self.bench.resend(id, endpoint)
            return
        self.bench.resend(id, endpoint)
        assert self.look(accepts) == [(endpoint.id, id)]

    def wait(self, seconds: int) -> None:
        self.bench.clock.advance(seconds)

    def purge(self, at: int, fault: Any) -> None:
        """The process dies at a commit, or gets no answer to it; another one goes on."""
        ports = self.bench.ports
        faulty = FaultyStorage(self.bench.storage, at, fault, {"transact"})
        committer = type(ports.committer)(
            faulty, ports.clock, ports.committer._identifiers, ports.key_ring
        )
        with pytest.MonkeyPatch.context() as patch:
            dying = DeliveryTrim(ports)
            patch.setattr(dying, "_committer", committer)
            try:
                while dying.run(self.bench.authority.partition):
                    pass
            except Crashed:
                pass
        while (another := DeliveryTrim(ports)).run(self.bench.authority.partition):
            while another.run(self.bench.authority.partition):
                pass
        for one in self.endpoints:
            self.require_few(one)

    def require_few(self, endpoint: Endpoint) -> None:
        before = self.bench.clock.now() - DAY
        found = self.bench.storage.read(
            self.bench.authority.partition,
            lambda snapshot: snapshot.find(Delivery, "by_endpoint", (endpoint.id,), limit=1_000),
        ).records
        old = [one.status for one in found if one.updated_at_ms < before]
        assert len(old) == len(set(old)) <= 2, old

    def recover(self, number: int, which: int, accepts: bool) -> None:
        endpoint = self.endpoint(number)
        if not self.events or endpoint.status != "active":
            return
        since = self.events[sorted(self.events)[which % len(self.events)]][1]
        missed = {
            id
            for id, (name, at) in self.events.items()
            if at >= since
            and endpoint.subscribes(name)
            and not self.accepted.get((endpoint.id, id), False)
        }
        self.answer(accepts)
        self.bench.recover(endpoint, since)
        sent = self.look(accepts)
        assert sorted(sent) == sorted((endpoint.id, id) for id in missed)


def run_steps(storage: Storage, steps: list[tuple[Any, ...]], kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trimming, "KEPT", {"active": kept, "disabled": 0, "archived": 0})
        _live(storage, steps)


def _live(storage: Storage, steps: list[tuple[Any, ...]]) -> None:
    model = Model(ReplayBench(storage))
    for url in URLS:
        model.endpoints.append(model.bench.endpoint(url, *NAMES))
    for operation, *arguments in steps:
        getattr(model, operation)(*arguments)
    for number in range(len(URLS)):
        if model.endpoint(number).status != "active":
            model.switch(number)
        model.purge(1, crash)
        model.recover(number, 0, True)
        model.recover(number, 0, True)  # a second one has nothing to send


@settings(max_examples=40, deadline=None)
@given(steps=RUNS, kept=KEPT)
def test_recoveries_ignore_purges_in_memory(steps: list[tuple[Any, ...]], kept: int) -> None:
    run_steps(MemoryStorage(), steps, kept)


@settings(max_examples=20, deadline=None)
@given(steps=RUNS, kept=KEPT, seed=st.integers(0, 2**16))
def test_recoveries_ignore_purges_on_weak_storage(
    steps: list[tuple[Any, ...]], kept: int, seed: int
) -> None:
    run_steps(MemoryStorage(Weakness(seed=seed, clock_ahead=0)), steps, kept)


@settings(max_examples=6, deadline=None)
@given(steps=RUNS, kept=KEPT)
def test_recoveries_ignore_purges_on_sqlite(steps: list[tuple[Any, ...]], kept: int) -> None:
    with TemporaryDirectory() as folder:
        storage = SqliteStorage(Path(folder) / "data.db", RECORD_TYPES)
        storage.migrate()
        try:
            run_steps(storage, steps, kept)
        finally:
            storage.close()
