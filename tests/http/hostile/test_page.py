"""The page for operators says what the code does."""

from __future__ import annotations

from payments_core_http.app import DEFAULT_THREADS
from payments_core_http.server.framing import MAX_CHUNK_LINE_BYTES, MAX_CHUNKS
from payments_core_http.server.hosting import MAX_HEADER_BYTES
from payments_core_http.server.limits import ServerLimits
from payments_core_http.serving import MAX_RECEIVED_BYTES
from payments_core_http.wire.limits import MAX_BODY_BYTES
from tests.http.hostile.target import ROOT

KIB = 1024


def test_the_page_has_the_bounds_of_the_code() -> None:
    usual = ServerLimits()
    page = (ROOT / "docs/explanation/hostile-clients.md").read_text()
    for row in (
        f"| request line and headers | {MAX_HEADER_BYTES // KIB} KiB",
        f"| body | {MAX_BODY_BYTES // KIB} KiB, or {MAX_RECEIVED_BYTES // KIB} KiB with chunk",
        f"| chunks of a body | {MAX_CHUNKS:,}, and {MAX_CHUNK_LINE_BYTES // KIB} KiB",
        f"| a request, from its first byte to its last | {usual.request_s} s",
        f"| a connection without a request | {usual.idle_s} s",
        f"| a response, until the client has read it | {usual.answer_s} s",
        f"| after the last response, until the client closes | {usual.linger_s} s",
        f"| when the server stops, for a request in transit | {usual.shutdown_grace_s} s",
        f"| connections | {usual.connections:,}, or",
        f"all together | {usual.unsent_bytes // KIB // KIB} MiB",
        f"| threads | {DEFAULT_THREADS}, and one more that reads, and answers `/healthz`,",
    ):
        assert row in page, row
