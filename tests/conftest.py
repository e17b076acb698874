"""Fixtures for every folder of tests."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import psycopg
import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Storage
from payments_core.storage.postgres.adapter import open_url as open_postgres
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.announced_reads import AnnouncedStorage
from tests.servers import drop_schema, fresh_schema, postgres_or_skip

WEAK = f"weak-{os.environ.get('PAYMENTS_TEST_WEAK', '1')}"
"""The memory adapter as weak as the port allows, on a seed of its own: PAYMENTS_TEST_WEAK=2."""

CHOSEN = os.environ.get("PAYMENTS_TEST_STORAGES", f"{WEAK} sqlite postgresql").split()
"""The storages that tests of all storages run on.

`memory` may be named too. What holds on the weak one holds there: it does the same, and more that
the port allows.
"""

STORAGES = tuple(
    pytest.param(name, marks=pytest.mark.postgres if name == "postgresql" else ())
    for name in CHOSEN
)
LIGHT_STORAGES = tuple(name for name in CHOSEN if name != "postgresql")
"""Those of which a test may open one after another, hundreds of times."""

Opener = Callable[[], Storage]

# What is imported and collected stays until the end: to look through it again and again for what
# may be freed took a tenth of the time. A test's own garbage is looked for less often.
gc.disable()
FEWER_COLLECTIONS = (50_000, 20, 100)

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def pytest_collection_finish() -> None:
    """Set the tests themselves aside, and look for garbage from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*FEWER_COLLECTIONS)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_is_not_ignored() -> None:
    """A shell's background job ignores Ctrl-C, and so would every process that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _signals_are_put_back() -> Iterator[None]:
    """A command that runs in this process would leave its handlers to all tests behind it."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """An empty storage of every kind, in turn."""
    if request.param == "postgresql":
        opened: Storage = open_postgres(request.getfixturevalue("emptied_schema"), RECORD_TYPES)
    else:
        opened = light_storage(request.param, tmp_path)
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres_schema() -> Iterator[str]:
    """A schema with all the tables: to make them takes longer than most tests do."""
    url = fresh_schema(postgres_or_skip())
    made = open_postgres(url, RECORD_TYPES)
    made.migrate()
    made.close()
    yield url
    drop_schema(url)


@pytest.fixture(scope="session")
def _emptying(postgres_schema: str) -> Iterator[psycopg.Connection]:
    """A connection that knows the tables: to read about them takes ten times the emptying."""
    with psycopg.connect(postgres_schema, autocommit=True) as connection:
        yield connection


@pytest.fixture
def emptied_schema(postgres_schema: str, _emptying: psycopg.Connection) -> str:
    """The same schema, with no record in it."""
    emptied = (f'DELETE FROM "{kind.collection.name}"' for kind in RECORD_TYPES)
    _emptying.execute("; ".join(emptied).encode(), prepare=False)
    return postgres_schema


@pytest.fixture(params=LIGHT_STORAGES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens an empty storage at each call, of every kind but a server's."""
    places = iter(range(1_000_000))

    def opened() -> Storage:
        folder = tmp_path / str(next(places))
        folder.mkdir()
        storage = light_storage(request.param, folder)
        storage.migrate()
        return storage

    return opened


@cache
def _migrated_file() -> Path:
    """An SQLite file with all the tables: to make them takes longer than many tests do."""
    folder = tempfile.mkdtemp(prefix="payments-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    storage = SqliteStorage(Path(folder) / "data.db", RECORD_TYPES)
    storage.migrate()
    storage.close()
    return Path(folder) / "data.db"


def light_storage(name: str, folder: Path) -> Storage:
    """A storage that needs no server."""
    kind, _, seed = name.partition("-")
    if kind == "sqlite":
        shutil.copyfile(_migrated_file(), folder / "data.db")
        return SqliteStorage(folder / "data.db", RECORD_TYPES)
    return AnnouncedStorage(Weakness(seed=int(seed))) if seed else MemoryStorage()
