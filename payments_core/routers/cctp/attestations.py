"""Circle's attestation service ("Iris") over HTTP: which messages of a transaction are signed.

Source: developers.circle.com/api-reference/cctp, `GET /v2/messages/{sourceDomainId}` and
`POST /v2/reattest/{nonce}`. Nothing that it says moves funds by itself: a message is compared with
the burn that it is for, and the destination's contract verifies the signatures.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

import attrs
import msgspec

from payments_core.chains.http.client import HttpClient, RequestLimits
from payments_core.chains.port import ChainUnavailable
from payments_core.routers.cctp.messages import (
    MAX_MESSAGE_BYTES,
    BurnMessage,
    MalformedMessage,
    parse_message,
)

SANDBOX_URL = "https://iris-api-sandbox.circle.com"
REQUEST_S = 10.0
SILENT_S = 300.0
"""After too many requests the service refuses every one for five minutes (Circle, "Resolve
attestation issues"): none is sent in that time."""

MAX_RESPONSE_BYTES = 1 << 20
MAX_ATTESTATION_BYTES = 65 * 32
_TOO_MANY = 429
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)

_log = logging.getLogger(__name__)


class AttestationsUnavailable(Exception):
    """The service did not answer in time, or not understandably. Ask again."""


@attrs.frozen
class SignedMessage:
    """A message and its attestation, as `receiveMessage` takes them."""

    burn: BurnMessage
    message: bytes = attrs.field(repr=False)
    attestation: bytes = attrs.field(repr=False)


@attrs.frozen
class Answer:
    """What is signed of a transaction's messages, and why others are delayed, if it is said."""

    signed: tuple[SignedMessage, ...] = ()
    delays: tuple[str, ...] = ()


class _Entry(msgspec.Struct, rename="camel"):
    status: str
    message: str = "0x"
    attestation: str | None = None
    delay_reason: str | None = None


class _Messages(msgspec.Struct):
    messages: list[_Entry]


_DECODER = msgspec.json.Decoder(_Messages)


class AttestationService:
    """Asks one service. Threads may share it."""

    def __init__(self, url: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Raises ValueError, which does not repeat the address, unless it is http or https."""
        self._client = HttpClient(url, RequestLimits(max_response_bytes=MAX_RESPONSE_BYTES))
        self._monotonic = monotonic
        self._silent_until_s = float("-inf")

    def __repr__(self) -> str:
        return f"AttestationService({self._client.name})"

    def find_messages(self, domain: int, transaction_hash: str) -> Answer:
        """The messages of a transaction on the chain of a domain; none that it has not seen yet.

        Raises AttestationsUnavailable.
        """
        status, body = self._send(
            "GET", f"/v2/messages/{domain}?transactionHash={transaction_hash}"
        )
        if status == 404:  # it has not seen the transaction yet
            return Answer()
        if status != 200:
            raise AttestationsUnavailable(f"{self._client.name}: it answered {status}")
        try:
            entries = _DECODER.decode(body).messages
        except msgspec.DecodeError:
            raise AttestationsUnavailable(f"{self._client.name}: no list of messages") from None
        return Answer(
            tuple(signed for entry in entries if (signed := _read_signed(entry)) is not None),
            tuple(entry.delay_reason for entry in entries if entry.delay_reason),
        )

    def request_again(self, nonce: str) -> None:
        """Have an expired message signed again. Raises AttestationsUnavailable."""
        status, _ = self._send("POST", f"/v2/reattest/{nonce}", b"")
        if status >= 400:
            raise AttestationsUnavailable(f"{self._client.name}: it answered {status}")

    def close(self) -> None:
        """Close the connections that wait."""
        self._client.close()

    def _send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        now = self._monotonic()
        if now < self._silent_until_s:
            raise AttestationsUnavailable(f"{self._client.name}: it takes no more requests yet")
        try:
            status, answer = self._client.send(method, time.monotonic() + REQUEST_S, path, body)
        except ChainUnavailable as error:  # of the client, which chains use too
            raise AttestationsUnavailable(str(error)) from error
        if status == _TOO_MANY:
            self._silent_until_s = now + SILENT_S
            _log.warning("%s takes no more requests for five minutes", self._client.name)
            raise AttestationsUnavailable(f"{self._client.name}: too many requests")
        return status, answer


def _read_signed(entry: _Entry) -> SignedMessage | None:
    """The message, if it is signed and one of a burn; before, its texts are `0x` and `PENDING`."""
    if entry.status != "complete" or entry.attestation is None:
        return None
    if not _HEX.fullmatch(entry.message) or not _HEX.fullmatch(entry.attestation):
        return None
    message, attestation = (bytes.fromhex(text[2:]) for text in (entry.message, entry.attestation))
    if len(message) > MAX_MESSAGE_BYTES or not 0 < len(attestation) <= MAX_ATTESTATION_BYTES:
        return None
    try:
        return SignedMessage(parse_message(message), message, attestation)
    except MalformedMessage:  # of another kind: a transaction may have any messages
        return None
