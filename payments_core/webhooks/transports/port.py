"""The transport port: one signed POST to an address that was vetted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from payments_core.http.deadline import Deadline as Deadline
from payments_core.webhooks.destinations import Destination

MAX_RESPONSE_BODY_BYTES = 4_096
"""The number of bytes kept of a response's body."""


@attrs.frozen
class WebhookRequest:
    """A POST. `headers` come without Host, Content-Length and Connection."""

    destination: Destination
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)


@attrs.frozen
class TransportResult:
    """The result. Without an answer `status` is None and `failure` says why, in our words."""

    status: int | None = None
    body: bytes = b""
    retry_after: str | None = None
    failure: str | None = None


class Transport(Protocol):
    """Sends requests. It may be used from many threads at once."""

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        """POST to the first of the vetted addresses that accepts a connection.

        It connects to nothing else: it resolves no name, follows no redirect, reads no proxy
        variable. TLS is verified against the target's name. The whole call ends with the deadline,
        however slowly the other side sends. Once a status has come, the answer counts even if
        the rest does not come; at most MAX_RESPONSE_BODY_BYTES of the body are read. Never raises
        for failures of the network or the other side.

        A connection may be kept for the next request with the same scheme, name and port, while
        its address is among those of that attempt. If it turns out to be closed before anything
        of a response has come, the request is sent again: it may arrive twice.
        """

    def close(self) -> None:
        """Close everything that is open."""
