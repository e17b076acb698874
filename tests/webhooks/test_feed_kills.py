"""Processes write events with commits that overtake each other, and are killed; a reader polls all
the time: it gets exactly the events that were committed, each once.

`PAYMENTS_KILL_SEED` repeats a run's moments, as far as time repeats; `PAYMENTS_KILLS` asks for
more of them.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.engine.events import Event
from payments_core.service import PaymentsService
from payments_core.storage.port import Position
from payments_core.storage_loader import open_storage
from payments_core_http.cli.child_processes import ChildProcess
from tests.servers import drop_schema, fresh_schema, postgres_or_skip
from tests.webhooks.feed_victim import authority, end_leases, service_over

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("PAYMENTS_KILLS") or 1)
LIFE_S = 0.8
PAUSE_S = 0.002


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The files that say where the service is."""
    monkeypatch.chdir(ROOT)  # where the children find themselves as modules
    on_server = request.param == "postgres"
    url = fresh_schema(postgres_or_skip()) if on_server else f"sqlite:///{tmp_path / 'data.db'}"
    (tmp_path / "url").write_text(url)
    (tmp_path / "keys").write_text(KeyRing.generate())
    with closing(open_storage(url)) as storage:
        storage.migrate()
    service = service_over(tmp_path)
    app = service.tenants.create_app("Acme", "acme")
    (tmp_path / "environment").write_text(app.environments["sandbox"])
    service.close()
    yield tmp_path
    if on_server:
        drop_schema(url)


class Reader:
    """Polls in a thread of its own, until it has read the feed to its end."""

    def __init__(self, service: PaymentsService, folder: Path) -> None:
        self._events = service.acting_as(authority(service, folder)).events
        self._stopping = threading.Event()
        self.read: list[str] = []
        self.polls = 0
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        after: Position | None = None
        while True:
            was_last = self._stopping.is_set()
            page = self._events.poll(after=after, limit=7)
            after = page.next
            self.polls += 1
            self.read += [event.id for event in page.events]
            if was_last and not page.has_more:
                return
            self._stopping.wait(PAUSE_S)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@pytest.mark.slow
@pytest.mark.timeout(60 + 10 * KILLS)
def test_a_reader_gets_exactly_the_committed_events(folder: Path) -> None:
    seed = int(os.environ.get("PAYMENTS_KILL_SEED") or random.randrange(2**32))
    print(f"PAYMENTS_KILL_SEED={seed}")
    chance = random.Random(seed)
    service = service_over(folder)
    reader = Reader(service, folder)
    try:
        for _ in range(KILLS):
            live_and_die(folder, chance)
        end_leases(service)
        service.worker("sandbox").run_until_idle()
    finally:
        reader.stop()
    stored = list_stored(service, folder)
    in_time_order = sorted(stored, key=stored.__getitem__)
    service.close()
    print(f"{len(stored)} events, {reader.polls} polls")
    assert len(stored) > 20
    assert len(reader.read) == len(set(reader.read)), "an event came twice"
    assert set(reader.read) == set(stored)
    if "postgres" in (folder / "url").read_text():  # SQLite has one writer at a time
        assert reader.read != in_time_order, "no commit overtook another: nothing is shown"


def live_and_die(folder: Path, chance: random.Random) -> None:
    """Two processes at once, killed at random moments."""
    seeds = [str(chance.randrange(2**32)) for _ in range(2)]
    victims = [
        ChildProcess("victim", "tests.webhooks.feed_victim", [str(folder), seed]) for seed in seeds
    ]
    try:
        for victim in victims:
            victim.wait_until_ready()
        for victim in victims:
            time.sleep(LIFE_S * chance.uniform(0.5, 1))
            victim.kill()
    finally:
        for victim in victims:
            victim.end()


def list_stored(service: PaymentsService, folder: Path) -> dict[str, tuple[int, str]]:
    """The times and ids of the events that were committed, by their ids."""
    partition = (folder / "environment").read_text()
    found: dict[str, tuple[int, str]] = {}
    after: Position | None = None
    while True:
        page = service.parts.ports.storage.read(
            partition,
            lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                Event, "by_created", after=after, limit=1_000
            ),
        )
        found |= {event.id: (event.created_at_ms, event.id) for event in page.records}
        after = page.next
        if after is None:
            return found
