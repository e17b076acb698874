"""The transport suite on every adapter that ships with the library."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from payments_core.conformance.transport import TransportConformance
from payments_core.webhooks.transports.curl import CurlTransport
from payments_core.webhooks.transports.port import Transport
from payments_core.webhooks.transports.sockets import SocketTransport


class TestThreads(TransportConformance):
    def open(self, authority: Path | None) -> Transport:
        return SocketTransport(
            ssl.create_default_context(cafile=None if authority is None else str(authority))
        )

    @pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
    )
    def test_a_reset_during_the_handshake_is_a_failure(self) -> None:
        """Where the reset is quick, `SSLContext.wrap_socket` raises without closing its socket."""
        super().test_a_reset_during_the_handshake_is_a_failure()


class TestCurl(TransportConformance):
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("pycurl")

    def open(self, authority: Path | None) -> Transport:
        return CurlTransport(authority)
