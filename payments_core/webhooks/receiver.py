"""The receiver's side: prove a delivery authentic, and apply its event once (interface "Events",
receiver procedure; contract §8).

It needs nothing of the service: no storage, no configuration, no other module than the signature.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs
import msgspec

from payments_core.clock import SECOND, SystemClock
from payments_core.webhooks import signing

TOLERANCE_S = 300
LIMIT_CHARACTERS = 4_096

_TIMESTAMP = re.compile(r"0|[1-9][0-9]{0,11}")
_CODE = re.compile(r"[0-9a-f]{64}")
_SCHEME = re.compile(r"[a-z][a-z0-9]{0,15}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@attrs.frozen
class ReceivedEvent:
    """A verified event. It is a prompt to read the resource: it may repeat, and come late."""

    id: str
    name: str
    api_version: str
    created_at: str
    payload: Mapping[str, Any]


class WebhookRefused(Exception):
    """A delivery that proves nothing: answer 400 and do nothing. `code` names the refusal."""

    code: ClassVar[str] = "refused"


class SignatureMissing(WebhookRefused):
    """There is no `x-service-signature` header."""

    code = "signature_missing"


class SignatureMalformed(WebhookRefused):
    """The header is not `t=<unix>,v1=<hex>`."""

    code = "signature_malformed"


class SignatureWrong(WebhookRefused):
    """No signature is right: another secret, or a body that was changed or parsed before."""

    code = "signature_wrong"


class TimestampTooOld(WebhookRefused):
    """Signed longer ago than the tolerance: a replay, or a clock of ours that is ahead."""

    code = "timestamp_too_old"


class TimestampTooNew(WebhookRefused):
    """Signed further in the future than the tolerance: compare the clocks."""

    code = "timestamp_too_new"


class SecretMalformed(ValueError):
    """A secret that was configured is not `whsec_` and 32 bytes in base64.

    It says nothing of the delivery, so it is no refusal: let it become a 500, and the delivery
    comes again when the settings are right.
    """


class BodyNotJson(WebhookRefused):
    """Authentic, and still not JSON."""

    code = "body_not_json"


class BodyNotEvent(WebhookRefused):
    """Authentic JSON that is not an event's envelope."""

    code = "body_not_event"


def verify(
    raw_body: bytes,
    signature: str | Mapping[str, str] | None,
    secret: str | Sequence[str],
    *,
    tolerance_s: int = TOLERANCE_S,
    now: float | None = None,
) -> ReceivedEvent:
    """The event of an authentic delivery.

    `raw_body` is the body as it came, byte for byte. `signature` is the text of the
    `x-service-signature` header, or all headers by name in any case, or a WSGI environ. Several
    secrets may be given while one replaces another. `now` is Unix seconds, the machine's own
    clock unless given. Raises one of the WebhookRefused errors, or SecretMalformed.
    """
    secrets = (secret,) if isinstance(secret, str) else tuple(secret)
    if not secrets or not all(signing.is_secret(item) for item in secrets):
        raise SecretMalformed("a signing secret is whsec_ and 32 bytes in base64")
    timestamp, codes = _parsed(_header(signature))
    right = False
    for item in secrets:
        expected = signing.signature(item, timestamp, raw_body)
        for code in codes:  # all of them, so that the time taken says nothing
            right |= hmac.compare_digest(expected, code)
    if not right:
        raise SignatureWrong("no signature fits the body and the secret")
    age_s = (SystemClock().now() / SECOND if now is None else now) - int(timestamp)
    if age_s > tolerance_s:
        raise TimestampTooOld(f"signed {int(age_s)} s ago")
    if age_s < -tolerance_s:
        raise TimestampTooNew(f"signed {int(-age_s)} s in the future")
    return _event(raw_body)


def _header(signature: str | Mapping[str, str] | None) -> str:
    if isinstance(signature, Mapping):
        wanted = {signing.HEADER, "http_" + signing.HEADER.replace("-", "_")}
        found = [value for name, value in signature.items() if name.lower() in wanted]
        if len(found) > 1:
            raise SignatureMalformed(f"there are {len(found)} {signing.HEADER} headers")
        signature = found[0] if found else None
    if not signature:
        raise SignatureMissing(f"there is no {signing.HEADER} header")
    return signature


def _parsed(header: str) -> tuple[str, list[str]]:
    """The timestamp's text and every v1 code; other schemes are left to other readers."""
    if len(header) > LIMIT_CHARACTERS:
        raise SignatureMalformed("the signature is too long")
    fields = [part.partition("=") for part in header.split(",")]
    if not all(_SCHEME.fullmatch(name) and equals and value for name, equals, value in fields):
        raise SignatureMalformed("expected t=<unix>,v1=<hex>")
    times = [value for name, _, value in fields if name == "t"]
    codes = [value for name, _, value in fields if name == "v1"]
    if len(times) != 1 or not _TIMESTAMP.fullmatch(times[0]):
        raise SignatureMalformed("expected one t=<unix>")
    if not codes or not all(_CODE.fullmatch(code) for code in codes):
        raise SignatureMalformed("expected v1=<64 lower-case hex digits>")
    return times[0], codes


class _Envelope(msgspec.Struct, rename="camel"):
    id: str
    name: str
    api_version: str
    created_at: str
    payload: dict[str, Any]


_envelopes = msgspec.json.Decoder(_Envelope)


def _event(raw_body: bytes) -> ReceivedEvent:
    try:
        envelope = _envelopes.decode(raw_body)
    except msgspec.ValidationError as error:
        raise BodyNotEvent(f"the body is not an event: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BodyNotJson("the body is not JSON") from None
    return ReceivedEvent(
        envelope.id, envelope.name, envelope.api_version, envelope.created_at, envelope.payload
    )


# Applying an event once.

TABLE = "webhook_events_applied"
Paramstyle = Literal["qmark", "format"]


def table_sql(table: str = TABLE) -> str:
    """The statement that creates the table of applied events, for SQLite and PostgreSQL."""
    return f"CREATE TABLE IF NOT EXISTS {_named(table)} (event_id VARCHAR(200) PRIMARY KEY)"


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
    transaction under way, and `effect` writes through it, without committing. Whatever `effect`
    raises undoes both and comes out. Answer 2xx only after this returns. Two deliveries of one
    event at once: the second waits for the first on the primary key. Raises ValueError for a
    connection that would commit each statement by itself.
    """
    mark = {"qmark": "?", "format": "%s"}[paramstyle]
    statement = (
        f"INSERT INTO {_named(table)} (event_id) VALUES ({mark}) ON CONFLICT (event_id) DO NOTHING"
    )
    cursor = connection.cursor()
    try:
        _begin(connection, cursor)
        cursor.execute(statement, (event_id,))
        new: bool = cursor.rowcount == 1
        if new:
            effect()
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        cursor.close()
    return new


def _begin(connection: Any, cursor: Any) -> None:
    """Be inside a transaction: without one, a crash after the insert would lose the effect."""
    in_transaction = getattr(connection, "in_transaction", None)  # sqlite3 alone has it
    if in_transaction is False:
        cursor.execute("BEGIN IMMEDIATE")
    elif in_transaction is None and getattr(connection, "autocommit", False) is True:
        raise ValueError("the connection commits each statement; turn autocommit off")


def _named(table: str) -> str:
    if not _NAME.fullmatch(table):
        raise ValueError("the table's name must be a plain identifier")
    return table
