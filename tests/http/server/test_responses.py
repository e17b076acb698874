"""What an application returns is framed as HTTP, whatever it does."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from wsgiref.validate import validator

import pytest

from payments_core_http.server.framing import IncomingRequest
from payments_core_http.server.hosting import HostedApp, Refusal
from payments_core_http.server.responses import ClientGone, answer

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

BASE: Mapping[str, Any] = {
    "SCRIPT_NAME": "", "SERVER_NAME": "h", "SERVER_PORT": "80", "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http", "wsgi.errors": io.StringIO(), "wsgi.multithread": True,
    "wsgi.multiprocess": True, "wsgi.run_once": False,
}  # fmt: skip
TYPE = ("Content-Type", "text/plain")
GET = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
GET_1_0 = "GET / HTTP/1.0\r\n\r\n"
KEPT_1_0 = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
HEAD = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


class Learner:
    """Names nobody, and counts who was answered."""

    def __init__(self) -> None:
        self.learned: list[Mapping[str, Any]] = []

    def name(self, headers: Mapping[str, str], peer: str) -> str:
        return peer

    def learn(self, headers: Mapping[str, str], environ: Mapping[str, Any]) -> None:
        self.learned.append(environ)


class Answered:
    """One request to an application, and what was sent for it."""

    def __init__(
        self, app: WSGIApplication, raw: str = GET, *, stops: bool = False, takes: int = 2**30
    ) -> None:
        self.sent = b""
        self.learner = Learner()
        self._takes = takes
        request = IncomingRequest(1_000)
        assert request.receive(raw.encode()) == b""
        hosted = HostedApp(
            app=app,
            refuse=lambda status: Refusal(status, [TYPE], b"no"),
            callers=self.learner,
            max_body_bytes=1_000,
        )
        self.is_kept = answer(hosted, request, BASE, self._send, lambda: stops)
        head, _, self.body = self.sent.partition(b"\r\n\r\n")
        self.line, *lines = head.decode().split("\r\n")
        pairs = (line.partition(": ") for line in lines)
        self.headers = {name.lower(): value for name, _, value in pairs}

    def _send(self, data: bytes) -> None:
        if len(self.sent) + len(data) > self._takes:
            raise ClientGone
        self.sent += data

    def outline(self) -> tuple[str, str | None, bytes, bool]:
        """The line, what Connection says, the body, and whether the connection is kept."""
        return self.line, self.headers.get("connection"), self.body, self.is_kept


def says(*pieces: bytes, status: str = "200 OK", headers: Iterable[tuple[str, str]] = (TYPE,),
         as_: Callable[[Any], Any] = list) -> WSGIApplication:  # fmt: skip
    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response(status, list(headers))
        return as_(pieces)  # type: ignore[no-any-return]

    return app


def lengths(size: int) -> list[tuple[str, str]]:
    return [TYPE, ("Content-Length", str(size))]


OK = "HTTP/1.1 200 OK"
FRAMED: dict[str, tuple[WSGIApplication, str, tuple[str, str | None, bytes, bool]]] = {
    "one piece": (says(b"yes"), GET, (OK, None, b"yes", True)),
    "a last request": (says(b"yes"), LAST, (OK, "close", b"yes", False)),
    "HTTP/1.0": (says(b"yes"), GET_1_0, ("HTTP/1.0 200 OK", "close", b"yes", False)),
    "HTTP/1.0, kept": (says(b"yes"), KEPT_1_0, ("HTTP/1.0 200 OK", "Keep-Alive", b"yes", True)),
    "no known length": (
        says(b"y", b"", b"es" * 10, as_=iter),
        GET,
        (OK, None, b"1\r\ny\r\n14\r\n" + b"es" * 10 + b"\r\n0\r\n\r\n", True),
    ),
    "no known length, HTTP/1.0": (
        says(b"y", b"es", as_=iter),
        KEPT_1_0,
        ("HTTP/1.0 200 OK", "close", b"yes", False),
    ),
    "nothing": (says(headers=lengths(0)), GET, (OK, None, b"", True)),
    "HEAD": (says(headers=lengths(3)), HEAD, (OK, None, b"", True)),
    "HEAD, no known length": (says(as_=iter), HEAD, (OK, None, b"", True)),
    "no body": (
        says(status="204 No Content", headers=()),
        GET,
        ("HTTP/1.1 204 No Content", None, b"", True),
    ),
    "a body too many": (
        says(b"yes", status="304 Not Modified", headers=()),
        GET,
        ("HTTP/1.1 304 Not Modified", None, b"", True),
    ),
    "more than it says": (
        says(b"ye", b"s!", b"!", headers=lengths(3)),
        GET,
        (OK, None, b"yes", False),
    ),
    "less than it says": (says(b"ye", headers=lengths(3)), GET, (OK, None, b"ye", False)),
}


@pytest.mark.parametrize(("app", "raw", "expected"), FRAMED.values(), ids=FRAMED)
def test_an_answer_is_framed(
    app: WSGIApplication, raw: str, expected: tuple[str, str | None, bytes, bool]
) -> None:
    seen = Answered(app, raw)
    assert seen.outline() == expected
    assert parsedate_to_datetime(seen.headers["date"])
    assert len(seen.learner.learned) == 1


def test_a_length_is_said_once_and_a_date_is_ours() -> None:
    seen = Answered(says(b"yes", headers=[*lengths(3), ("Date", "never")]))
    assert seen.sent.lower().count(b"\r\ncontent-length: 3\r\n") == 1
    assert seen.headers["date"] != "never"
    assert "content-length" not in Answered(says(b"y", b"es")).headers


def test_an_answer_is_the_last_if_the_server_stops_before_it_is_begun() -> None:
    assert Answered(says(b"yes"), stops=True).outline() == (OK, "close", b"yes", False)


def fails(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    raise OSError("a disk")


def fails_later(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    start_response("200 OK", [TYPE])
    yield b"y"
    raise ValueError


def starts_twice(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [TYPE])
    start_response("200 OK", [TYPE])
    return [b"yes"]


BROKEN: dict[str, WSGIApplication] = {
    "it raises": fails,
    "it does not start": lambda environ, start_response: [b"yes"],
    "it does not start an empty one": lambda environ, start_response: [],
    "it starts twice": starts_twice,
    "a line break in a header": says(b"yes", headers=[("A", "b\r\nC: d")]),
    "a line break in a name": says(b"yes", headers=[("A\nB", "c")]),
    "a line break in the status": says(b"yes", status="200 OK\r\nA: b"),
    "a header of the connection": says(b"yes", headers=[("Transfer-Encoding", "chunked")]),
    "a length that is none": says(b"yes", headers=[("Content-Length", "many")]),
}


@pytest.mark.parametrize("app", BROKEN.values(), ids=BROKEN)
def test_a_fault_before_the_answer_is_500(
    app: WSGIApplication, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Answered(app)
    assert seen.outline() == ("HTTP/1.1 500 Internal Server Error", "close", b"no", False)
    assert "A request could not be answered" in caplog.text
    assert seen.learner.learned == []


def test_a_fault_in_the_midst_ends_the_connection() -> None:
    assert Answered(fails_later).outline() == (OK, None, b"1\r\ny\r\n", False)


def test_an_error_may_replace_an_answer_until_it_is_begun() -> None:
    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        write = start_response("200 OK", [TYPE, ("A", "b")])
        for is_begun in (False, True):
            try:
                raise KeyError
            except KeyError as error:
                info = (KeyError, error, error.__traceback__)
            if is_begun:
                write(b"x")
                with pytest.raises(KeyError):
                    start_response("500 Late", [TYPE], info)
            else:
                write = start_response("503 Busy", [TYPE], info)
        return [b"yes"]

    seen = Answered(app, GET_1_0)
    assert seen.outline() == ("HTTP/1.0 503 Busy", "close", b"xyes", False)
    assert "a" not in seen.headers


class Closing:
    """A body that counts how often it is closed."""

    closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"y" * 1_000] * 3)

    def close(self) -> None:
        self.closed += 1


def test_a_body_is_closed_also_if_its_client_has_gone() -> None:
    body = Closing()
    Answered(says(as_=lambda _: body))
    with pytest.raises(ClientGone):
        Answered(says(as_=lambda _: body), takes=1_500)
    assert body.closed == 2


def test_a_request_that_the_framing_refuses_does_not_reach_the_application() -> None:
    seen = Answered(fails, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n")
    assert seen.outline() == ("HTTP/1.1 400 Bad Request", "close", b"no", False)


def test_the_environment_is_that_of_wsgi() -> None:
    seen: list[WSGIEnvironment] = []

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        seen.append({**environ, "read": environ["wsgi.input"].read(-1)})
        return says(b"yes")(environ, start_response)

    raw = "POST //a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Type: a/b\r\n\r\n{}"
    assert Answered(validator(app), raw).outline() == (OK, None, b"3\r\nyes\r\n0\r\n\r\n", True)
    [environ] = seen
    for name, value in {
        "REQUEST_METHOD": "POST", "PATH_INFO": "//a b", "QUERY_STRING": "x=1", "read": b"{}",
        "REQUEST_URI": "//a%20b?x=1", "CONTENT_LENGTH": "2", "CONTENT_TYPE": "a/b",
        "HTTP_HOST": "h", "SERVER_PROTOCOL": "HTTP/1.1",
    }.items():  # fmt: skip
        assert environ[name] == value
