"""The whole way: worker threads, the default transport and resolver, a real receiver."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import attrs
import pytest

from payments_core.clock import SystemClock
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Storage
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.webhooks import WebhookRefused, process_once, verify
from payments_core.webhooks.receiver import table_sql
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.resolver import SystemResolver
from payments_core.webhooks.transports.sockets import SocketTransport
from tests.webhooks.webhook_bench import Bench


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


class Server(WSGIServer):
    request_queue_size = 64  # more than are sent at once: Linux drops the others for a second


@attrs.define
class Receiver:
    """A WSGI application that verifies, applies once, and first answers as set."""

    path: Path
    secret: str = ""
    trouble: list[str] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list)
    expected: int = 0
    done: threading.Event = attrs.field(factory=threading.Event)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        self.headers.append({name: value for name, value in environ.items() if "SERVICE" in name})
        if self.trouble:
            start_response(self.trouble.pop(), [("Retry-After", "0")])
            return []
        try:
            event = verify(body, environ, self.secret)
        except WebhookRefused as refused:
            start_response("400 Bad Request", [])
            return [refused.code.encode()]
        connection = sqlite3.connect(self.path)
        connection.execute(table_sql())
        process_once(connection, event.id, lambda: None)
        count = connection.execute("SELECT count(*) FROM webhook_events_applied").fetchone()[0]
        connection.close()
        start_response("200 OK", [])
        if count == self.expected:
            self.done.set()
        return []


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[Receiver, str]]:
    application = Receiver(tmp_path / "receiver.db")
    server = make_server("127.0.0.1", 0, application, Server, Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield application, f"http://localhost:{server.server_port}/hook"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["memory", "weak", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    opened: Storage
    if request.param == "sqlite":
        opened = SqliteStorage(tmp_path / "service.db", RECORD_TYPES)
        opened.migrate()
    else:
        opened = MemoryStorage(Weakness(seed=4) if request.param == "weak" else None)
    yield opened
    opened.close()


def test_every_event_reaches_a_real_receiver_through_its_troubles(
    receiver: tuple[Receiver, str], storage: Storage, request: pytest.FixtureRequest
) -> None:
    application, url = receiver
    bench = Bench(
        storage,
        clock=SystemClock(),  # type: ignore[arg-type]
        wire=SocketTransport(),
        names=SystemResolver(),  # type: ignore[arg-type]
        settings=WebhookSettings(local_allowed=True),
    )
    endpoint, application.secret = bench.endpoints.create(bench.authority, url=url)
    application.trouble += ["503 Busy", "429 Too Many", "500 Broken"]
    application.expected = 10
    bench.worker.start(3)
    for _ in range(10):
        bench.happen()
        bench.worker.wake()
    assert application.done.wait(30)
    assert bench.worker.stop()
    bench.run()
    deliveries = bench.deliveries(endpoint)
    assert {delivery.status for delivery in deliveries} == {"delivered"}
    attempts = sum(delivery.attempts for delivery in deliveries)
    # A claim by a clock that runs ahead may repeat an attempt; nothing else may.
    assert attempts == 13 or "weak" in request.node.name
    assert all("HTTP_X_SERVICE_SIGNATURE" in headers for headers in application.headers)


def test_a_wrong_secret_is_refused_by_the_receiver_and_abandoned(
    receiver: tuple[Receiver, str],
) -> None:
    application, url = receiver
    bench = Bench(
        clock=SystemClock(),  # type: ignore[arg-type]
        wire=SocketTransport(),
        names=SystemResolver(),  # type: ignore[arg-type]
        settings=WebhookSettings(local_allowed=True),
    )
    endpoint, old = bench.endpoints.create(bench.authority, url=url)
    application.secret = old
    bench.endpoints.rotate_secret(bench.authority, endpoint.id)
    bench.happen()
    bench.run()
    (delivery,) = bench.deliveries(endpoint)
    assert (delivery.status, delivery.response_body) == ("abandoned", "signature_wrong")
