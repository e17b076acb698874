"""The receiver's side: prove a delivery authentic, and apply its event once (interface "Events",
receiver procedure; contract §8).

It needs nothing of the service: no storage, no configuration, no module except the signature.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hmac import compare_digest
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from payments_core.clock import unix_s
from payments_core.json_depth import exceeds_depth
from payments_core.plain_calls import require_plain_function, require_plain_result
from payments_core.webhooks import signing
from payments_core.webhooks.received import ReceivedEvent, read_event

TOLERANCE_S = 300
MAX_HEADER_CHARACTERS = 4_096
_MAX_DEPTH = 64
"""No event is a quarter as deep; deeper input could end the process (`json_depth.py`)."""

_TIME = "0|[1-9][0-9]{0,11}"
_TYPICAL_CHARACTERS = len("t=1790000000,v1=") + 64
_is_timestamp = re.compile(_TIME).fullmatch
_CODE = re.compile(r"[0-9a-f]{64}")
_STANDARD_CODE = re.compile(r"[A-Za-z0-9+/]{43}=")
_SCHEME = re.compile(r"[a-z][a-z0-9]{0,15}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")

_OWN, _ID, _STANDARD_TIME, _STANDARD = range(4)
_HEADER_POSITIONS = {
    signing.SIGNATURE_HEADER: _OWN,
    signing.STANDARD_ID_HEADER: _ID,
    signing.STANDARD_TIMESTAMP_HEADER: _STANDARD_TIME,
    signing.STANDARD_SIGNATURE_HEADER: _STANDARD,
}
_HEADER_POSITIONS |= {
    "http_" + name.replace("-", "_"): place for name, place in _HEADER_POSITIONS.items()
}
_HEADER_POSITIONS |= {
    name.upper(): place for name, place in _HEADER_POSITIONS.items()
}  # the form of a WSGI environ
_HEADER_NAME_LENGTHS = frozenset(map(len, _HEADER_POSITIONS))


class HasItems(Protocol):
    """Headers by name: a dict, a WSGI environ, or the headers of Flask, Django or http.server."""

    def items(self) -> Iterable[tuple[str, Any]]:
        """Each name with its value; a name may come twice."""


Headers = HasItems | Iterable[tuple[str | bytes, Any]]


class WebhookRefused(Exception):
    """A delivery that proves nothing: answer 400 and do nothing. `code` names the refusal."""

    code: ClassVar[str] = "refused"


class SignatureMissing(WebhookRefused):
    """There is no signature, or not all three headers of Standard Webhooks."""

    code = "signature_missing"


class SignatureMalformed(WebhookRefused):
    """A header is not of its form, is too long, or came twice."""

    code = "signature_malformed"


class SignatureWrong(WebhookRefused):
    """No signature matches: another secret, or a body that was changed or parsed before."""

    code = "signature_wrong"


class TimestampTooOld(WebhookRefused):
    """Signed longer ago than the tolerance: a replay, or a clock of ours that is ahead."""

    code = "timestamp_too_old"


class TimestampTooNew(WebhookRefused):
    """Signed further in the future than the tolerance: compare the clocks."""

    code = "timestamp_too_new"


class SecretMalformed(ValueError):
    """A secret that was configured is not `whsec_` and 32 bytes in base64.

    It says nothing about the delivery, so it is not a refusal: answer 500, and the delivery
    comes again when the settings are right.
    """


class BodyNotJson(WebhookRefused):
    """Authentic, but not JSON."""

    code = "body_not_json"


class BodyNotEvent(WebhookRefused):
    """Authentic JSON that is not an event's envelope."""

    code = "body_not_event"


def verify(
    raw_body: bytes,
    signature: str | bytes | Headers | None,
    secret: str | Sequence[str],
    *,
    tolerance_s: int = TOLERANCE_S,
    now: float | None = None,
) -> ReceivedEvent:
    """The event of an authentic delivery.

    `raw_body` is the received body, byte for byte. `signature` is the text of the
    `x-service-signature` header; or all headers, by name in any case or as pairs; or a WSGI
    environ. Several secrets may be given while one replaces another. `now` is Unix seconds, the
    machine's clock by default.

    Among all headers, `x-service-signature` or the three of Standard Webhooks is enough. If
    both are present, as on every delivery, both must be right: a wrong one was changed on its
    way. Take the id from the event, not from a header: `webhook-id` is proven by
    `webhook-signature` only.

    Raises one of the WebhookRefused errors, or SecretMalformed.
    """
    keys = (
        [_parse_secret(secret)]
        if isinstance(secret, str)
        else [_parse_secret(item) for item in secret]
    )
    if not keys:
        raise SecretMalformed("no signing secret was given")
    if isinstance(signature, str):
        own: str | None = signature
        standard = None
    else:
        own, id, standard_time, standard = _extract_headers(signature)
    at = unix_s() if now is None else now
    if own is not None:
        age = at - _verify_service_signature(own, raw_body, keys)
        if not -tolerance_s <= age <= tolerance_s:
            raise _timestamp_error(age)
    if standard is not None:
        age = at - _verify_standard_signature(id, standard_time, standard, raw_body, keys)
        if not -tolerance_s <= age <= tolerance_s:
            raise _timestamp_error(age)
    elif own is None:
        raise SignatureMissing(f"the {signing.SIGNATURE_HEADER} header is missing")
    if exceeds_depth(raw_body, _MAX_DEPTH):
        raise BodyNotEvent("the body is not an event: it is nested too deeply")
    try:
        return read_event(raw_body)
    except msgspec.ValidationError as error:
        raise BodyNotEvent(f"the body is not an event: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BodyNotJson("the body is not JSON") from None


def _timestamp_error(age_s: float) -> WebhookRefused:
    if age_s > 0:
        return TimestampTooOld(f"signed {int(age_s)} s ago")
    return TimestampTooNew(f"signed {int(-age_s)} s in the future")


def _verify_service_signature(header: str, body: bytes, keys: Sequence[signing.SigningKeys]) -> int:
    """The time of signing, by our own scheme."""
    # First the usual form: a time of 10 digits and one code. Other forms are read with care.
    timestamp = header[2:12]
    usual = len(header) == _TYPICAL_CHARACTERS and header.isascii() and timestamp.isdigit()
    if usual and timestamp[0] != "0":
        signed = b"%b.%b" % (timestamp.encode(), body)
        for key in keys:
            if compare_digest(header, f"t={timestamp},v1={key.service_hmac(signed).hexdigest()}"):
                return int(timestamp)
    timestamp, codes = _parse_header(header)
    signed = f"{timestamp}.".encode() + body
    _require_match(codes, [key.service_hmac(signed).hexdigest() for key in keys])
    return int(timestamp)


def _verify_standard_signature(
    id: str | None,
    timestamp: str | None,
    header: str,
    body: bytes,
    keys: Sequence[signing.SigningKeys],
) -> int:
    """The time of signing, by Standard Webhooks."""
    if not id or not timestamp:
        raise SignatureMissing(
            f"{signing.STANDARD_SIGNATURE_HEADER} requires {signing.STANDARD_ID_HEADER} and "
            f"{signing.STANDARD_TIMESTAMP_HEADER}"
        )
    # A dot ends the id in the signed text: with one, a code would fit two ids and two times.
    if "." in id or not id.isascii() or not _is_timestamp(timestamp):
        raise SignatureMalformed("expected an id without a dot, and Unix seconds")
    signed = f"{id}.{timestamp}.".encode() + body
    if header.isascii():
        for key in keys:
            code = b2a_base64(key.standard_hmac(signed).digest(), newline=False)
            if compare_digest(header.encode(), b"v1," + code):
                return int(timestamp)
    codes = _parse_standard_header(header)
    expected = [b2a_base64(key.standard_hmac(signed).digest(), newline=False) for key in keys]
    _require_match(codes, [code.decode() for code in expected])
    return int(timestamp)


def _require_match(codes: Sequence[str], expected: Sequence[str]) -> None:
    right = False
    for ours in expected:
        for theirs in codes:  # all of them, so that the duration reveals nothing
            right |= compare_digest(ours, theirs)
    if not right:
        raise SignatureWrong("no signature matches the body and the secret")


@lru_cache(maxsize=64)
def _parse_secret(secret: str) -> signing.SigningKeys:
    """Cached, because a receiver has one or two secrets, which are in its settings anyway."""
    if not signing.is_secret(secret):
        raise SecretMalformed("a signing secret must be whsec_ followed by 32 bytes in base64")
    return signing.SigningKeys.of(secret)


def _extract_headers(headers: bytes | Headers | None) -> Sequence[str | None]:
    """The texts of the four headers, by position."""
    pairs: Any
    try:
        pairs = headers.items()  # type: ignore[union-attr]
    except AttributeError:
        if headers is None or isinstance(headers, bytes):
            return (_decode_header(headers), None, None, None)
        pairs = headers
    found: list[str | None] = [None, None, None, None]
    place_of = _HEADER_POSITIONS.get
    for name, value in pairs:
        place = place_of(name)
        if place is None:
            if len(name) not in _HEADER_NAME_LENGTHS:
                continue
            place = place_of(str(_decode_header(name)).lower())
            if place is None:
                continue
        if found[place] is not None:
            raise SignatureMalformed("a signature header was sent twice")
        found[place] = value if type(value) is str else _decode_header(value)
    return found


def _decode_header(value: Any) -> str | None:
    """A header's text; as bytes it is Latin-1, as HTTP defines."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if value is not None and not isinstance(value, str):
        raise SignatureMalformed("a signature header is not text")
    return value


def _parse_header(header: str) -> tuple[str, list[str]]:
    """The timestamp's text and every v1 code; other schemes are ignored."""
    _require_length(signing.SIGNATURE_HEADER, header)
    fields = [part.partition("=") for part in header.split(",")]
    if not all(_SCHEME.fullmatch(name) and equals and value for name, equals, value in fields):
        raise SignatureMalformed("expected t=<unix>,v1=<hex>")
    times = [value for name, _, value in fields if name == "t"]
    codes = [value for name, _, value in fields if name == "v1"]
    if len(times) != 1 or not _is_timestamp(times[0]):
        raise SignatureMalformed("expected one t=<unix>")
    if not codes or not all(_CODE.fullmatch(code) for code in codes):
        raise SignatureMalformed("expected v1=<64 lower-case hex digits>")
    return times[0], codes


def _parse_standard_header(header: str) -> list[str]:
    """Every v1 code; other schemes, such as the asymmetric v1a, are ignored."""
    _require_length(signing.STANDARD_SIGNATURE_HEADER, header)
    fields = [part.partition(",") for part in header.split(" ")]
    if not all(_SCHEME.fullmatch(name) and comma and value for name, comma, value in fields):
        raise SignatureMalformed("expected v1,<base64>")
    codes = [value for name, _, value in fields if name == "v1"]
    if not codes or not all(_STANDARD_CODE.fullmatch(code) for code in codes):
        raise SignatureMalformed("expected v1,<32 bytes in base64>")
    return codes


def _require_length(name: str, header: str) -> None:
    if not header:
        raise SignatureMissing(f"the {name} header is empty")
    if len(header) > MAX_HEADER_CHARACTERS:
        raise SignatureMalformed("the signature is too long")


# Applying an event once.

TABLE = "webhook_events_applied"
Paramstyle = Literal["qmark", "format"]


def table_sql(table: str = TABLE) -> str:
    """The statement that creates the table of applied events, for SQLite and PostgreSQL."""
    name = _require_identifier(table)
    return f"CREATE TABLE IF NOT EXISTS {name} (event_id VARCHAR(200) PRIMARY KEY)"


def process_once(
    connection: Any,
    event_id: str,
    effect: Callable[[], object],
    *,
    paramstyle: Paramstyle = "qmark",
    table: str = TABLE,
) -> bool:
    """Apply an event's effect and record its id in one transaction; False if it was applied before.

    `connection` is a DB-API connection to SQLite ("qmark") or PostgreSQL ("format") with no
    transaction in progress, and `effect` writes through it, without committing. An error of
    `effect` undoes both and is raised. Answer 2xx only after this returns. For two deliveries of
    one event at once, the second waits for the first on the primary key. Raises ValueError for a
    connection that would commit each statement separately, or does not report inserted rows; and
    for a SQLite connection in a transaction, which is left as it is. Raises TypeError for an effect
    that is a coroutine function, or returns an awaitable or a generator: nobody would run it.
    Threads must not share a connection.
    """
    mark = {"qmark": "?", "format": "%s"}[paramstyle]
    require_plain_function(effect, "the effect")
    name = _require_identifier(table)
    statement = f"INSERT INTO {name} (event_id) VALUES ({mark}) ON CONFLICT (event_id) DO NOTHING"
    cursor = connection.cursor()
    began = _begin_transaction(connection, cursor)
    try:
        cursor.execute(statement, (event_id,))
        if cursor.rowcount not in (0, 1):  # a pipeline has not executed it yet: no guess is safe
            raise ValueError("the connection does not report how many rows were inserted")
        new: bool = cursor.rowcount == 1
        if new:
            require_plain_result(effect(), "the effect")
        if began:
            cursor.execute("COMMIT")
        else:
            connection.commit()
    except BaseException:
        if began and connection.in_transaction:
            cursor.execute("ROLLBACK")
        connection.rollback()
        raise
    finally:
        cursor.close()
    return new


def _begin_transaction(connection: Any, cursor: Any) -> bool:
    """Ensure a transaction: without one, a crash after the insert would lose the effect.

    True if it was begun here, and must be ended here: the `commit` of a sqlite3 connection
    with `autocommit=True` does nothing.
    """
    in_transaction = getattr(connection, "in_transaction", None)  # only sqlite3 has it
    if in_transaction is False:
        cursor.execute("BEGIN IMMEDIATE")
        return True
    autocommit = getattr(connection, "autocommit", None)
    if in_transaction and autocommit is not False:  # with False sqlite3 is always inside one
        raise ValueError("a transaction is in progress; end it first")
    if autocommit is True:
        raise ValueError("the connection commits each statement; turn autocommit off")
    return False


def _require_identifier(table: str) -> str:
    if not _NAME.fullmatch(table):
        raise ValueError("the table's name must be a plain identifier")
    return table
