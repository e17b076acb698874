"""Handlers and effects whose call would run nothing are refused, and so are their results."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from payments_core.webhooks.handlers import EventHandlers
from payments_core.webhooks.receiver import process_once, table_sql
from payments_core_http.testing.events import CapturedEvents

BODY = (
    '{"id":"evt_1","name":"account.created","apiVersion":"2026-09-09",'
    '"createdAt":"2026-01-01T00:00:00Z","payload":{}}'
)


async def coroutine(*_: Any) -> None: ...


async def asynchronous_generator(*_: Any) -> Any:
    yield


def generator(*_: Any) -> Any:
    yield


class Called:
    async def __call__(self, *_: Any) -> None: ...

    async def method(self, *_: Any) -> None: ...


KINDS: dict[str, Callable[..., Any]] = {
    "coroutine": coroutine,
    "asynchronous generator": asynchronous_generator,
    "generator": generator,
    "object": Called(),
    "method": Called().method,
    "partial": partial(coroutine, 1),
    "partial of an object": partial(partial(Called(), 1), 2),
}
RETURNING: dict[str, Callable[..., Any]] = {
    name: lambda *_, kind=kind: kind() for name, kind in KINDS.items()
}


def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute(table_sql())
    connection.commit()
    return connection


@pytest.mark.parametrize("kind", KINDS)
def test_what_would_run_nothing_is_refused(kind: str) -> None:
    with pytest.raises(TypeError, match="the handler must be a plain function"):
        EventHandlers().register("env_1", "handler:shop", KINDS[kind])
    connection = database()
    with pytest.raises(TypeError, match="the effect must be a plain function"):
        process_once(connection, "evt_1", KINDS[kind])
    assert process_once(connection, "evt_1", lambda: None)
    connection.close()


@pytest.mark.parametrize("kind", RETURNING)
def test_a_result_that_nobody_runs_is_a_failure(kind: str) -> None:
    handlers = EventHandlers()
    handlers.register("env_1", "handler:shop", RETURNING[kind])
    reason = handlers.call("env_1", "handler:shop", BODY, 5.0)
    assert reason == "The handler raised TypeError."
    connection = database()
    with pytest.raises(TypeError, match="the effect returned"):
        process_once(connection, "evt_1", RETURNING[kind])
    assert process_once(connection, "evt_1", lambda: None), "the id must not be kept"
    connection.close()


async def asgi(scope: Any, receive: Any, send: Any) -> None: ...


class Asgi:
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...


class Wsgi:
    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        return []


async def awaited_wsgi(environ: Any, start_response: Any) -> None: ...


NO_APPLICATION = [
    Asgi, Wsgi, None, "shop.wsgi:app", awaited_wsgi, lambda one: None, lambda a, b, c, d: None,
]  # fmt: skip


@pytest.mark.parametrize("app", NO_APPLICATION)
def test_events_are_forwarded_to_wsgi_and_asgi_only(app: Any) -> None:
    with pytest.raises(TypeError, match="needs a WSGI application, called with"):
        CapturedEvents().forward_to(app, "/hooks")


@pytest.mark.parametrize(
    "app",
    [
        Wsgi(),
        Wsgi().__call__,
        lambda environ, start: [],
        asgi,
        Asgi(),
        Asgi().__call__,
        partial(asgi),
    ],
)
def test_an_application_of_either_kind_is_accepted(app: Any) -> None:
    CapturedEvents().forward_to(app, "/hooks")
