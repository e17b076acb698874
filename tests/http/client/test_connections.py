"""Whose sockets a client uses, for how long, through which proxy, and what leaves as an error."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpcore2
import httpx2
import pytest

from payments_core_http.client import (
    AccountClient,
    AccountDestination,
    AsyncAccountClient,
    AsyncClient,
    AsyncPublicClient,
    Client,
    ClientError,
    NoResponse,
    PublicClient,
    Retries,
    transports,
)
from payments_core_http.client.errors import RequestMalformed, TransportUsedElsewhere
from payments_core_http.client.transports import proxy_for

CLIENTS: list[Callable[..., Any]] = [
    lambda url, **more: Client(url, "app_1", "sk_1", **more),
    lambda url, **more: AccountClient(url, "at_1", **more),
    PublicClient,
    lambda url, **more: AsyncClient(url, "app_1", "sk_1", **more),
    lambda url, **more: AsyncAccountClient(url, "at_1", **more),
    AsyncPublicClient,
]
SYNC, ASYNC = CLIENTS[:3], CLIENTS[3:]
ONCE = Retries(attempts=1)
BOB = AccountDestination(external_user_id="bob")
REFUSAL = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[int]]]:
    """A server whose connections each run `answer` in a thread; its address and their numbers."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[int] = []

    def converse(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            answer(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            seen.append(1)
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def refuse(connection: socket.socket) -> None:
    """Answer every request with 404, and keep the connection open."""
    while connection.recv(65536):
        connection.sendall(REFUSAL)


def ask(client: Any) -> Any:
    """One read, by whichever client; the error that it raises."""
    payments = client.payments
    more = {} if isinstance(client, (Client, AsyncClient)) else {"client_secret": "s"}
    if isinstance(client, (AccountClient, AsyncAccountClient)):
        return client.account.read()
    return payments.read("payment_1", **more)


async def ask_in_loop(client: Any) -> str:
    try:
        await ask(client)
    except ClientError as error:
        return type(error).__name__
    return "an answer"


def in_child(check: Callable[[], bool]) -> bool:
    """Whether the check holds in a forked child."""
    pid = os.fork()
    if pid == 0:
        held = False
        try:
            held = check()
        finally:
            os._exit(0 if held else 1)
    return os.waitpid(pid, 0)[1] == 0


def fails_with(kind: type[Exception], act: Callable[[], Any]) -> bool:
    try:
        act()
    except kind:
        return True
    return False


@pytest.mark.parametrize("make", SYNC)
def test_a_forked_child_has_connections_of_its_own(make: Callable[..., Any]) -> None:
    with listening(refuse) as (url, seen), make(url, retries=ONCE) as client:
        for _ in range(2):
            assert fails_with(ClientError, lambda: ask(client))
        assert len(seen) == 1
        assert in_child(lambda: fails_with(ClientError, lambda: ask(client)))
        assert fails_with(ClientError, lambda: ask(client))
        assert len(seen) == 2


@pytest.mark.parametrize("make", ASYNC)
def test_each_event_loop_and_each_child_has_connections_of_its_own(
    make: Callable[..., Any],
) -> None:
    with listening(refuse) as (url, seen):
        client = make(url, retries=ONCE)
        names = {asyncio.run(ask_in_loop(client)) for _ in range(3)}
        assert names.isdisjoint({"an answer", "NoResponse"}) and len(seen) == 3
        gc.collect()  # nothing is left open: a warning would fail the test
        assert in_child(lambda: asyncio.run(ask_in_loop(client)) in names)
        assert len(seen) == 4


@pytest.mark.parametrize("make", ASYNC)
def test_cancelled_calls_make_room_for_others(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "MAX_CALLS", 2)
    answers = threading.Event()

    def refuse_later(connection: socket.socket) -> None:
        while connection.recv(65536):
            answers.wait(10)
            with suppress(OSError):
                connection.sendall(REFUSAL)

    async def cancel_some(client: Any, seen: list[int]) -> str:
        for _ in range(3):
            tasks = [asyncio.create_task(ask_in_loop(client)) for _ in range(6)]
            before = len(seen)
            while len(seen) < before + 2:
                await asyncio.sleep(0.001)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert len(seen) == 6, "two of six at a time"
        answers.set()
        both = await asyncio.gather(ask_in_loop(client), ask_in_loop(client))
        assert len(set(both)) == 1
        return both[0]

    with listening(refuse_later) as (url, seen):
        client = make(url, retries=ONCE, timeout_s=10)
        assert asyncio.run(cancel_some(client, seen)) not in {"an answer", "NoResponse"}
        gc.collect()  # nothing is left open: a warning would fail the test


def request(url: str, timeout_s: float) -> httpx2.Request:
    timeout = httpx2.Timeout(timeout_s).as_dict()
    return httpx2.Request("GET", url, extensions={"timeout": timeout})


class TimeIsUp(Exception):
    """The time limit of a task, as a signal raises it in whatever line is next."""


def stop_at(number: int, act: Callable[[], object]) -> bool:
    """Whether a time limit has stopped the call at a line of ours, before it sends."""
    lines = iter(range(number))

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != transports.__file__:
            return None
        if frame.f_code.co_name == "_send":
            sys.settrace(None)
        elif event == "line" and next(lines, None) is None:
            sys.settrace(None)
            raise TimeIsUp
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
        return False
    except TimeIsUp:
        return True
    finally:
        sys.settrace(before)


def test_a_call_that_is_stopped_before_it_sends_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transports, "MAX_CALLS", 1)

    def answer_each(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(REFUSAL)

    with listening(answer_each) as (url, _):
        transport = transports.OwnTransport(url)
        number = 0
        while stop_at(number, lambda: transport.handle_request(request(url, 10))):
            assert transport.handle_request(request(url, 1)).status_code == 404
            number += 1
        assert number > 5
        transport.close()


def test_a_call_beyond_the_limit_waits_and_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_CALLS", 1)
    answers = threading.Event()

    def refuse_later(connection: socket.socket) -> None:
        while connection.recv(65536):
            answers.wait(10)
            connection.sendall(REFUSAL)

    async def wait_behind(url: str) -> None:
        transport = transports.AsyncOwnTransport(url)
        first = asyncio.create_task(transport.handle_async_request(request(url, 10)))
        await asyncio.sleep(0)
        with pytest.raises(httpx2.PoolTimeout):
            await transport.handle_async_request(request(url, 0.05))
        answers.set()
        assert (await first).status_code == 404

    with listening(refuse_later) as (url, seen):
        transport = transports.OwnTransport(url)
        first = threading.Thread(target=lambda: transport.handle_request(request(url, 10)))
        first.start()
        while not seen:
            time.sleep(0.001)
        with pytest.raises(httpx2.PoolTimeout):
            transport.handle_request(request(url, 0.05))
        answers.set()
        first.join(10)
        assert transport.handle_request(request(url, 10)).status_code == 404
        transport.close()
        answers.clear()
        asyncio.run(wait_behind(url))
        assert len(seen) == 2


class TimeLimit(Exception):
    """As job queues raise it in a thread."""


@pytest.mark.parametrize("make", CLIENTS)
def test_a_call_that_is_stopped_leaves_no_connection_behind(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """httpcore2 has made a connection, and the call is stopped before it uses it."""
    ended = threading.Semaphore(0)
    stops = iter([True] * 3)

    def refuse_to_the_end(connection: socket.socket) -> None:
        with suppress(ConnectionError):
            refuse(connection)
        ended.release()

    def send(connection: Any, request: Any) -> Any:
        for _ in stops:
            raise TimeLimit
        return sends(connection, request)

    async def send_later(connection: Any, request: Any) -> Any:
        for _ in stops:
            raise asyncio.CancelledError
        return await sends_later(connection, request)

    async def call_four_times(client: Any) -> str:
        for _ in range(3):
            with pytest.raises(asyncio.CancelledError):
                await ask_in_loop(client)
        assert all(ended.acquire(timeout=10) for _ in range(3))
        return await ask_in_loop(client)

    sends = httpcore2.HTTP11Connection.handle_request
    sends_later = httpcore2.AsyncHTTP11Connection.handle_async_request
    monkeypatch.setattr(httpcore2.HTTP11Connection, "handle_request", send)
    monkeypatch.setattr(httpcore2.AsyncHTTP11Connection, "handle_async_request", send_later)
    monkeypatch.setattr(transports, "MAX_CALLS", 2)
    with listening(refuse_to_the_end) as (url, seen):
        client = make(url, retries=ONCE)
        if make in ASYNC:
            assert asyncio.run(call_four_times(client)) not in {"an answer", "NoResponse"}
        else:
            for _ in range(3):
                assert fails_with(TimeLimit, lambda: ask(client))
            assert all(ended.acquire(timeout=10) for _ in range(3))
            with pytest.raises(ClientError) as caught:
                ask(client)
            assert not isinstance(caught.value, NoResponse)
            client.close()
        assert len(seen) == 4


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("make", ASYNC)
def test_a_loop_that_was_only_closed_leaves_no_connection_behind(make: Callable[..., Any]) -> None:
    """As workers do that make a loop for each task: nothing there ends the loop's generators."""
    ended = threading.Semaphore(0)

    def refuse_to_the_end(connection: socket.socket) -> None:
        refuse(connection)
        ended.release()

    with listening(refuse_to_the_end) as (url, seen):
        client = make(url, retries=ONCE)
        for _ in range(3):
            loop = asyncio.new_event_loop()
            assert loop.run_until_complete(ask_in_loop(client)) not in {"an answer", "NoResponse"}
            loop.close()
        assert len(seen) == 3
        gc.collect()  # Python closes what the client has let go
        assert all(ended.acquire(timeout=10) for _ in range(2)), "the next loop lets them go"
        asyncio.run(ask_in_loop(client))
        gc.collect()


@pytest.mark.parametrize("make", SYNC)
def test_a_passed_transport_is_refused_in_a_child(make: Callable[..., Any]) -> None:
    with listening(refuse) as (url, seen), httpx2.HTTPTransport() as transport:
        client, other = (make(url, transport=transport, retries=ONCE) for _ in range(2))
        assert fails_with(ClientError, lambda: ask(client))
        assert in_child(lambda: fails_with(TransportUsedElsewhere, lambda: ask(client)))
        assert in_child(lambda: fails_with(TransportUsedElsewhere, lambda: ask(other)))
        assert fails_with(ClientError, lambda: ask(other)) and len(seen) == 1


@pytest.mark.parametrize("make", ASYNC)
def test_a_passed_transport_is_refused_in_another_loop(make: Callable[..., Any]) -> None:
    async def ask_and_close(url: str) -> None:
        async with httpx2.AsyncHTTPTransport() as transport:
            client = make(url, transport=transport, retries=ONCE)
            assert await ask_in_loop(client) != "NoResponse"
            raised = await asyncio.to_thread(
                lambda: fails_with(TransportUsedElsewhere, lambda: asyncio.run(ask_in_loop(client)))
            )
            assert raised

    with listening(refuse) as (url, _):
        asyncio.run(ask_and_close(url))


def drip_body(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.1)


def drip_head(connection: socket.socket) -> None:
    connection.recv(65536)
    for byte in b"HTTP/1.1 200 OK\r\nx-long: " + b"x" * 100:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


@pytest.mark.parametrize("drip", [drip_body, drip_head])
@pytest.mark.parametrize("passed", [False, True])
def test_a_call_ends_within_its_time_although_the_server_drips(
    drip: Callable[[socket.socket], None], passed: bool
) -> None:
    with listening(drip) as (url, seen):
        transport = httpx2.HTTPTransport() if passed else None
        began = time.monotonic()
        with PublicClient(url, transport=transport, timeout_s=0.5) as client:
            assert fails_with(NoResponse, lambda: ask(client))
        assert asyncio.run(ask_in_loop(AsyncPublicClient(url, timeout_s=0.5))) == "NoResponse"
        assert time.monotonic() - began < 4 and len(seen) == 2


def raised(error: Exception, attempts: int = 3) -> tuple[list[str], ClientError]:
    """The keys of the attempts at a create whose transport raises this, and the client's error."""
    keys: list[str] = []

    def fail(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["Idempotency-Key"])
        raise error

    client = Client(
        "https://pay.example", "app_1", "sk_1", transport=httpx2.MockTransport(fail),
        retries=Retries(attempts=attempts, first_wait_s=0.001),
    )  # fmt: skip
    with pytest.raises(ClientError) as caught:
        client.payments.receive(amount="1.00", destination=BOB)
    return keys, caught.value


def subclasses(kind: type) -> set[type]:
    return {kind} | {one for each in kind.__subclasses__() for one in subclasses(each)}


@pytest.mark.parametrize("kind", sorted(subclasses(httpx2.RequestError), key=repr))
def test_whatever_the_transport_raises_is_an_error_with_the_key(kind: Any) -> None:
    keys, error = raised(kind("it failed"))
    assert isinstance(error, NoResponse) and error.idempotency_key == keys[0]
    refused = kind in (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)
    assert isinstance(error, RequestMalformed) == refused
    assert len(keys) == (1 if refused else 3) and len(set(keys)) == 1


@pytest.mark.parametrize("host", ["pay..example", "x" * 64 + ".example"])
def test_a_host_that_names_nothing_is_an_error_with_the_key(host: str) -> None:
    with Client(f"https://{host}", "app_1", "sk_1") as client:
        for key in (None, "order-1"):
            with pytest.raises(RequestMalformed) as caught:
                client.payments.receive(amount="1.00", destination=BOB, idempotency_key=key)
            assert caught.value.idempotency_key and not caught.value.was_sent


@pytest.mark.parametrize("key", ["a\nb", " a", "a ", "é", "a\x00", "\ud800"])
def test_a_key_that_http_cannot_carry_is_refused_before_it_is_sent(key: str) -> None:
    with listening(refuse) as (url, seen), Client(url, "app_1", "sk_1") as client:
        with pytest.raises(RequestMalformed) as caught:
            client.payments.receive(amount="1.00", destination=BOB, idempotency_key=key)
        assert caught.value.idempotency_key == key and not caught.value.was_sent
        assert not seen


@pytest.mark.parametrize("make", CLIENTS)
def test_only_https_leaves_the_machine_unless_the_caller_says_so(make: Callable[..., Any]) -> None:
    for url in ("http://payments.example", "http://10.0.0.1", " http://127.0.0.1.example"):
        with pytest.raises(ValueError, match="https://"):
            make(url)
        make(url, allow_http=True)
    for url in ("http://localhost:1", "http://127.0.0.2", "http://[::1]:80", "https://pay.example"):
        make(url)


@pytest.mark.parametrize("make", CLIENTS)
def test_the_newline_of_a_file_is_no_part_of_the_address(make: Callable[..., Any]) -> None:
    assert "'http://localhost:1'" in repr(make("http://localhost:1/\n"))
    for url in ("http://local\nhost:1", "https://pay.example/a\tb", "https://pay.example:x"):
        with pytest.raises(ValueError, match="url"):
            make(url)


@pytest.mark.parametrize("make", SYNC)
def test_the_proxy_of_the_environment_is_used(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def decline(connection: socket.socket) -> None:
        assert connection.recv(65536).startswith(b"CONNECT pay.example.invalid:443")
        connection.sendall(b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n")

    with listening(decline) as (proxy, seen):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        client = make("https://pay.example.invalid", retries=ONCE)
        with pytest.raises(NoResponse) as caught:
            ask(client)
        assert len(seen) == 1 and not caught.value.was_sent


@pytest.mark.parametrize(
    ("url", "no_proxy", "proxy"),
    [
        ("https://pay.example", "", "http://proxy:3128"),
        ("http://pay.example", "", "http://plain:3128"),
        ("https://pay.example", "pay.example", None),
        ("https://a.pay.example", ".pay.example", None),
        ("https://pay.example:8443", "pay.example:8443", None),
        ("https://pay.example", "*", None),
        ("https://pay.example", "other.example", "http://proxy:3128"),
        ("http://10.1.2.3", "other.example, 10.0.0.0/8", None),
        ("http://[fd00::7]:8080", "fd00::/8", None),
        ("http://11.1.2.3", "10.0.0.0/8", "http://plain:3128"),
        ("http://pay.shops.svc", "*.shops.svc", None),
        ("http://payshops.svc", "*.shops.svc", "http://plain:3128"),
        ("http://localhost:8080", "", None),
        ("http://127.0.0.1:8080", "", None),
    ],
)
def test_no_proxy_and_loopback_go_past_the_proxy(
    url: str, no_proxy: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://plain:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert proxy_for(url) == proxy
