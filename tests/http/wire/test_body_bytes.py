"""Whether a request has a body: never taken to have none because its length is unknown."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
from a2wsgi import WSGIMiddleware

from payments_core_http.errors import LengthRequired
from payments_core_http.routes import ROUTES
from payments_core_http.wire.request_body import parse_document, read_json_bytes
from tests.http.api_harness import ApiHarness, Seen
from tests.http.checkout import Checkout

SENT = b'{"amount": "1.00"}'
JSON = {"CONTENT_TYPE": "application/json"}
CHUNKED = {"HTTP_TRANSFER_ENCODING": "chunked", "SERVER_PROTOCOL": "HTTP/1.1"}
HTTP1 = {"SERVER_PROTOCOL": "HTTP/1.1"}
HTTP2 = {"SERVER_PROTOCOL": "HTTP/2"}
ENDS = {"wsgi.input_terminated": True}

WRITING = [row for row in ROUTES if row.method != "GET"]
MAY_BE_EMPTY = [row for row in WRITING if row.body_may_be_empty]

READABLE: Mapping[str, Mapping[str, Any]] = {
    "chunks": {**JSON, **CHUNKED},
    "chunks, whose end is known": {**JSON, **CHUNKED, **ENDS},
    "chunks and a length of zero": {**JSON, **CHUNKED, "CONTENT_LENGTH": "0"},
    "HTTP/2": {**JSON, **HTTP2},
    "HTTP/2.0": {**JSON, "SERVER_PROTOCOL": "HTTP/2.0"},
    "HTTP/3": {**JSON, "SERVER_PROTOCOL": "HTTP/3", "CONTENT_LENGTH": ""},
    "no protocol": {**JSON, "SERVER_PROTOCOL": ""},
    "HTTP/1, whose end is known": {**JSON, **HTTP1, **ENDS},
}
"""The server shows the body, but not its length."""

LOST: Mapping[str, Mapping[str, Any]] = {
    **{name: given for name, given in READABLE.items() if not name.startswith("HTTP/1")},
    "chunks without a media type": CHUNKED,
    "chunks, whose end is known, without a media type": {**CHUNKED, **ENDS},
    "a media type": {**JSON, **HTTP1},
    "an empty length": {**JSON, **HTTP1, "CONTENT_LENGTH": ""},
    "no length": {**JSON, **HTTP1, "CONTENT_LENGTH": None},
}
"""Nothing can be read, and the server does not say that there is no body."""

ABSENT: Mapping[str, Mapping[str, Any]] = {
    "a length of zero": {**JSON, **HTTP1, "CONTENT_LENGTH": "0"},
    "a length of zero in HTTP/2": {**JSON, **HTTP2, "CONTENT_LENGTH": "0"},
    "HTTP/1 without a media type": HTTP1,
    "HTTP/1.0": {"SERVER_PROTOCOL": "HTTP/1.0", "CONTENT_LENGTH": "", "CONTENT_TYPE": ""},
    "HTTP/1, whose end is known": {**JSON, **HTTP1, **ENDS},
}
"""The server says that there is no body."""


def name_row(row: Any) -> str:
    return str(row.name)


def read(row: Any, given: Mapping[str, Any], body: bytes) -> bytes:
    environ = {"REQUEST_METHOD": row.method, "wsgi.input": io.BytesIO(body), **given}
    return read_json_bytes(row, environ)


@pytest.mark.parametrize("row", WRITING, ids=name_row)
class TestEachRoute:
    @pytest.mark.parametrize("given", READABLE.values(), ids=READABLE)
    def test_reads_a_body_whose_length_is_unknown(self, row: Any, given: Mapping[str, Any]) -> None:
        assert parse_document(row, read(row, given, SENT)) == {"amount": "1.00"}

    @pytest.mark.parametrize("given", LOST.values(), ids=LOST)
    def test_refuses_when_the_body_may_be_lost(self, row: Any, given: Mapping[str, Any]) -> None:
        with pytest.raises(LengthRequired):
            read(row, given, b"")

    @pytest.mark.parametrize("given", ABSENT.values(), ids=ABSENT)
    def test_has_no_body_if_the_server_says_so(self, row: Any, given: Mapping[str, Any]) -> None:
        assert read(row, given, b"") == b""


def test_a_delete_over_http_2_needs_no_length() -> None:
    rows = [row for row in WRITING if row.method == "DELETE"]
    assert rows
    for row in rows:
        assert read(row, HTTP2, b"") == b""


def test_the_rows_that_may_have_no_body_are_all_covered() -> None:
    assert len(MAY_BE_EMPTY) >= 24 and set(map(name_row, MAY_BE_EMPTY)) <= set(
        map(name_row, WRITING)
    )


def test_an_input_without_an_end_is_not_read() -> None:
    class Endless:
        def read(self, _: int) -> bytes:
            raise AssertionError("this would wait for ever")

    row = MAY_BE_EMPTY[0]
    environ = {"REQUEST_METHOD": row.method, "wsgi.input": Endless(), **HTTP1}
    assert read_json_bytes(row, environ) == b""
    with pytest.raises(LengthRequired):
        read_json_bytes(row, {**environ, **JSON})


@attrs.define
class Gone:
    """The input of a client that disconnects, as each server reports it."""

    error: Exception
    sent: bytes = b""

    def read(self, _: int = -1) -> bytes:
        sent, self.sent = self.sent, b""
        if sent:
            return sent
        raise self.error


ERRORS = (
    OSError("error during read(10) on wsgi.input"),  # uWSGI
    ConnectionResetError(),
    TimeoutError(),
    ValueError("Bad chunked transfer size: b''"),  # cheroot
    EOFError(),
    RuntimeError("client disconnected"),
)


class TestAClientThatVanishes:
    @pytest.mark.parametrize("sent", [b"", b'{"na'], ids=["before", "within"])
    @pytest.mark.parametrize(
        "framing", [{"CONTENT_LENGTH": "30"}, CHUNKED], ids=["length", "chunks"]
    )
    @pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
    def test_is_refused_without_an_error_in_the_log(
        self,
        api: ApiHarness,
        caplog: pytest.LogCaptureFixture,
        error: Exception,
        framing: Mapping[str, str],
        sent: bytes,
    ) -> None:
        environ = {**JSON, **framing, "wsgi.input": Gone(error, sent)}
        with caplog.at_level(logging.WARNING):
            seen = api.call("POST", "/v2/things", key="k", environ=environ, valid=False)
        assert (seen.status, seen.code) == (400, "invalid_json")
        assert caplog.records == []
        assert api.make(key="k").status == 201  # the key is free

    def test_is_refused_by_the_legacy_interface(self, api: ApiHarness) -> None:
        environ = {**JSON, "CONTENT_LENGTH": "30", "wsgi.input": Gone(OSError())}
        seen = api.call("POST", "/sdk/v1/register", environ=environ, valid=False)
        assert (seen.status, seen.json["code"]) == (400, "invalid_json")

    def test_is_refused_by_a_form(self, api: ApiHarness) -> None:
        environ = {
            "CONTENT_TYPE": "application/x-www-form-urlencoded", "CONTENT_LENGTH": "30",
            "wsgi.input": Gone(OSError()),
        }  # fmt: skip
        seen = api.call("POST", "/dashboard/login", auth=None, environ=environ, valid=False)
        assert seen.status == 400


@pytest.mark.parametrize("given", [CHUNKED, HTTP2, HTTP1], ids=["chunks", "HTTP/2", "HTTP/1"])
def test_a_form_without_a_length_is_refused(api: ApiHarness, given: Mapping[str, str]) -> None:
    environ = {"CONTENT_TYPE": "application/x-www-form-urlencoded", **given}
    seen = api.call("POST", "/dashboard/login", auth=None, environ=environ, valid=False)
    assert seen.status == 411


class TestARefund:
    """The row where a lost body costs most."""

    @pytest.fixture
    def paid(self, checkout: Checkout) -> str:
        made = checkout.create().json
        checkout.authorize(made, checkout.option(made))
        checkout.advance(20)
        assert checkout.read(made["id"])["status"] == "succeeded"
        return str(made["id"])

    def refund(self, checkout: Checkout, payment: str, body: bytes, **given: Any) -> Seen:
        environ = {**given, "wsgi.input": io.BytesIO(body)}
        return checkout.api.call(
            "POST", f"/v2/payments/{payment}/refunds", key="k", environ=environ, valid=False
        )

    @pytest.mark.parametrize("given", READABLE.values(), ids=READABLE)
    def test_of_a_part_is_of_that_part(
        self, checkout: Checkout, paid: str, given: Mapping[str, Any]
    ) -> None:
        assert self.refund(checkout, paid, SENT, **given).json["amount"] == "1.00"

    @pytest.mark.parametrize("given", LOST.values(), ids=LOST)
    def test_whose_body_was_lost_refunds_nothing(
        self, checkout: Checkout, paid: str, given: Mapping[str, Any]
    ) -> None:
        seen = self.refund(checkout, paid, b"", **given)
        assert (seen.status, seen.code) == (411, "length_required")
        assert checkout.api.call("GET", f"/v2/payments/{paid}/refunds").json["data"] == []
        whole = self.refund(checkout, paid, b"", CONTENT_LENGTH="0")  # the key is free
        assert whole.json["amount"] == "25.00"

    def test_whose_body_has_neither_a_length_nor_an_end_is_refused(
        self, checkout: Checkout, paid: str
    ) -> None:
        assert self.refund(checkout, paid, SENT, **JSON, **HTTP1).code == "length_required"

    @pytest.mark.parametrize(
        ("messages", "answer"),
        [
            ([{"type": "http.request", "body": SENT[:5], "more_body": True},
              {"type": "http.request", "body": SENT[5:]}], (201, "1.00")),
            ([{"type": "http.disconnect"}], (411, "length_required")),
            ([{"type": "http.request", "body": SENT[:5], "more_body": True},
              {"type": "http.disconnect"}], (400, "invalid_json")),
        ],
        ids=["in pieces", "vanishes before", "vanishes within"],
    )  # fmt: skip
    def test_through_a2wsgi_over_http_2(
        self, checkout: Checkout, paid: str, messages: list[dict[str, Any]], answer: tuple[int, str]
    ) -> None:
        headers = {
            "authorization": checkout.api.basic(), "content-type": "application/json",
            "idempotency-key": "k",
        }  # fmt: skip
        scope = {
            "type": "http", "http_version": "2", "method": "POST", "query_string": b"",
            "path": f"/v2/payments/{paid}/refunds", "server": ("pay.example", 443),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        status, body = asyncio.run(call_asgi(checkout.api.app, scope, messages))
        said = json.loads(body)
        assert (status, said.get("amount") or said["error"]["code"]) == answer


async def call_asgi(
    app: Callable[..., Any], scope: dict[str, Any], messages: list[dict[str, Any]]
) -> tuple[int, bytes]:
    """The status and body that an application behind a2wsgi answers."""
    waiting, sent = list(messages), []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    bridge = WSGIMiddleware(app, workers=1)
    try:
        await bridge(scope, receive, send)  # type: ignore[arg-type]
    finally:
        bridge.executor.shutdown()
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
