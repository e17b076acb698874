"""Writes webhook_signatures.json: deliveries to accept and to refuse, for any language.

    python tests/vectors/make_webhook_signatures.py

Nothing of payments_core is imported: the codes are plain HMACs, or the file would only say that
our code agrees with itself. Every one can be computed again in a shell:

    printf '%s' "$t.$body" | openssl dgst -sha256 -hmac "$secret" -hex
    printf '%s' "$id.$t.$body" \\
        | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("webhook_signatures.json")
T = 1_790_000_000
TOLERANCE_S = 300
ID = "evt_-P23J5k-D8QQDDBxu8rHlL0O"
SECRET = "whsec_2Cqd4BgFha+g5lGkQeDXmJ3r8yoTVWOVi+3SdaW44zA="
OLDER = "whsec_/6qd4BgFha+g5lGkQeDXmJ3r8yoTVWOVi+3SdaW44zA="
STRANGER = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OWN = "x-service-signature"
ACCEPTED = "accepted"
MISSING, MALFORMED, WRONG = "signature_missing", "signature_malformed", "signature_wrong"
TOO_OLD, TOO_NEW = "timestamp_too_old", "timestamp_too_new"
NOT_JSON, NOT_EVENT = "body_not_json", "body_not_event"

DESCRIPTION = [
    "Webhook deliveries to accept and to refuse, for receivers in any language.",
    "`secrets` are all that the receiver accepts. `headers` are pairs of name and value, in the "
    "order in which they came; a name may come twice. `now` is the receiver's clock in Unix "
    "seconds, and `tolerance_s` how far from it a delivery may be signed.",
    "`body` is text, whose UTF-8 bytes are the raw body; or `body_base64` holds the bytes.",
    "`outcome` is `accepted`, then with the event's `id`, or the code of the refusal.",
    "`accepted` asks more than a right signature: the body must be an event.",
    "The codes were computed with plain HMACs by make_webhook_signatures.py beside this file, "
    "which shows how openssl computes them.",
]

Headers = list[tuple[str, str]]


def main() -> None:
    """Write the file, or with --check say whether it is as it would be written."""
    text = made()
    if "--check" in sys.argv[1:]:
        sys.exit(None if FILE.read_text("utf-8") == text else f"{FILE.name} is not as it is made")
    FILE.write_text(text, "utf-8")


def made() -> str:
    """The text of the file."""
    cases = [
        *own_cases(), *header_cases(), *time_cases(), *body_cases(), *standard_cases(),
        *standard_header_cases(), *both_cases(), *rotation_cases(),
    ]  # fmt: skip
    document = {"description": DESCRIPTION, "cases": cases}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def event(id: str = ID, **payload: Any) -> bytes:
    document = {
        "id": id,
        "name": "payment.succeeded",
        "apiVersion": "2026-09-09",
        "createdAt": "2026-09-21T14:13:20.000Z",
        "payload": {"paymentId": "payment_1", **payload},
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


BODY = event(note="Zoë ☃")


def own_code(body: bytes = BODY, t: object = T, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), f"{t}.".encode() + body, hashlib.sha256).hexdigest()


def own(body: bytes = BODY, t: object = T, secret: str = SECRET) -> Headers:
    return [(OWN, f"t={t},v1={own_code(body, t, secret)}")]


def standard_code(body: bytes = BODY, t: object = T, secret: str = SECRET, id: str = ID) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    code = hmac.new(key, f"{id}.{t}.".encode() + body, hashlib.sha256).digest()
    return base64.b64encode(code).decode()


def standard(
    body: bytes = BODY,
    t: object = T,
    secret: str = SECRET,
    id: str = ID,
    signature: str | None = None,
) -> Headers:
    return [
        ("webhook-id", id),
        ("webhook-timestamp", str(t)),
        ("webhook-signature", signature or f"v1,{standard_code(body, t, secret, id)}"),
    ]


def case(
    name: str,
    outcome: str,
    headers: Headers,
    body: bytes = BODY,
    *,
    now: float = T,
    secrets: tuple[str, ...] = (SECRET,),
    tolerance_s: int = TOLERANCE_S,
) -> dict[str, Any]:
    try:
        raw = {"body": body.decode()}
    except UnicodeDecodeError:
        raw = {"body_base64": base64.b64encode(body).decode()}
    id = {"id": json.loads(body)["id"]} if outcome == ACCEPTED else {}
    return {
        "name": name, "secrets": list(secrets), "headers": [list(pair) for pair in headers], **raw,
        "now": now, "tolerance_s": tolerance_s, "outcome": outcome, **id,
    }  # fmt: skip


def own_cases() -> Iterator[dict[str, Any]]:
    yield case("plain", ACCEPTED, own())
    decoded = base64.b64decode(SECRET.removeprefix("whsec_"))
    message = f"{T}.".encode() + BODY
    for name, key in (
        ("the decoded bytes of the secret as key", decoded),
        ("the secret without its prefix as key", SECRET.removeprefix("whsec_").encode()),
    ):
        code = hmac.new(key, message, hashlib.sha256).hexdigest()
        yield case(name, WRONG, [(OWN, f"t={T},v1={code}")])
    yield case("the secret of another endpoint", WRONG, own(secret=STRANGER))
    bare = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
    yield case("a code over the body without the time", WRONG, [(OWN, f"t={T},v1={bare}")])
    yield case("the code of another time", WRONG, [(OWN, f"t={T + 1},v1={own_code()}")])
    yield case("a plain digest, without a key", WRONG, [
        (OWN, f"t={T},v1={hashlib.sha256(message).hexdigest()}")
    ])  # fmt: skip
    yield case("SHA-512 cut to length", WRONG, [
        (OWN, f"t={T},v1={hmac.new(SECRET.encode(), message, hashlib.sha512).hexdigest()[:64]}")
    ])  # fmt: skip
    yield case("the standard code as hex", WRONG, [
        (OWN, f"t={T},v1={base64.b64decode(standard_code()).hex()}")
    ])  # fmt: skip


def header_cases() -> Iterator[dict[str, Any]]:
    good = own_code()
    zeros = "0" * 64
    yield case("no headers", MISSING, [])
    yield case("other headers only", MISSING, [("content-type", "application/json")])
    yield case("an empty header", MISSING, [(OWN, "")])
    yield case("a name in other case", ACCEPTED, [("X-Service-Signature", own()[0][1])])
    yield case("the header twice", MALFORMED, own() * 2)
    yield case("the header twice, in two cases", MALFORMED, [*own(), (OWN.upper(), own()[0][1])])
    for name, outcome, value in (
        ("the right code last of three", ACCEPTED, f"t={T},v1={zeros},v1={'f' * 64},v1={good}"),
        ("the right code first of two", ACCEPTED, f"t={T},v1={good},v1={zeros}"),
        ("two wrong codes", WRONG, f"t={T},v1={zeros},v1={'f' * 64}"),
        ("another scheme beside ours", ACCEPTED, f"t={T},v0=abc,v1={good},v2=def"),
        ("the code before the time", ACCEPTED, f"v1={good},t={T}"),
        ("another scheme only", MALFORMED, f"t={T},v0={good}"),
        ("the right code under another scheme", WRONG, f"t={T},v0={good},v1={zeros}"),
        ("two headers joined by a proxy", MALFORMED, f"t={T},v1={good},t={T},v1={good}"),
        ("upper-case hex", MALFORMED, f"t={T},v1={good.upper()}"),
        ("63 digits", MALFORMED, f"t={T},v1={good[:-1]}"),
        ("65 digits", MALFORMED, f"t={T},v1={good}0"),
        ("an empty code", MALFORMED, f"t={T},v1="),
        ("base64 in place of hex", MALFORMED, f"t={T},v1={standard_code()}"),
        ("a right code and a malformed one", MALFORMED, f"t={T},v1={good},v1=abc"),
        ("a letter that is no hex digit", MALFORMED, f"t={T},v1=g{good[1:]}"),
        ("digits of another script", MALFORMED, f"t={T},v1=٣{good[1:]}"),
        ("a space after the comma", MALFORMED, f"t={T}, v1={good}"),
        ("a space at the end", MALFORMED, f"t={T},v1={good} "),
        ("a line feed at the end", MALFORMED, f"t={T},v1={good}\n"),
        ("a comma at the end", MALFORMED, f"t={T},v1={good},"),
        ("no equals sign", MALFORMED, f"t={T},v1"),
        ("no code", MALFORMED, f"t={T}"),
        ("no time", MALFORMED, f"v1={good}"),
        ("a code alone", MALFORMED, good),
        ("4,097 characters", MALFORMED, f"t={T},v1={good},v2=".ljust(4_097, "a")),
        ("4,096 characters", ACCEPTED, f"t={T},v1={good},v2=".ljust(4_096, "a")),
    ):
        yield case(name, outcome, [(OWN, value)])


def time_cases() -> Iterator[dict[str, Any]]:
    for make, scheme in ((own, ""), (standard, ", standard")):
        for seconds, old, new in (
            (299, ACCEPTED, ACCEPTED), (300, ACCEPTED, ACCEPTED), (300.5, TOO_OLD, TOO_NEW),
            (301, TOO_OLD, TOO_NEW),
        ):  # fmt: skip
            yield case(f"{seconds} s old{scheme}", old, make(), now=T + seconds)
            yield case(f"{seconds} s ahead{scheme}", new, make(), now=T - seconds)
        for t, outcome in (
            ("0", TOO_OLD), ("999999999999", TOO_NEW), ("1000000000000", MALFORMED),
            ("9" * 400, MALFORMED), (f"0{T}", MALFORMED), ("0790000000", MALFORMED),
            (f"-{T}", MALFORMED), (f"+{T}", MALFORMED), (f"{T}.0", MALFORMED),
            ("1.79e9", MALFORMED), ("1_790_000_000", MALFORMED),
            (f" {T}", MALFORMED), ("nan", MALFORMED), ("٣", MALFORMED),
            ("2026-09-21T14:13:20Z", MALFORMED), (f"{T}000", MALFORMED),
        ):  # fmt: skip
            shown = t if len(t) < 30 else f"{len(t)} digits"
            yield case(f"signed at {shown}{scheme}", outcome, make(t=t))
        yield case(f"an empty time{scheme}", MISSING if scheme else MALFORMED, make(t=""))
        yield case(f"a narrower tolerance{scheme}", TOO_OLD, make(), now=T + 11, tolerance_s=10)
        yield case(f"stale and wrong{scheme}", WRONG, make(secret=STRANGER), now=T + 9_999)


def body_cases() -> Iterator[dict[str, Any]]:
    spaced = json.dumps(json.loads(BODY), ensure_ascii=False).encode()
    escaped = json.dumps(json.loads(BODY), separators=(",", ":")).encode()
    for make, scheme in ((own, ""), (standard, ", standard")):
        for name, outcome, body in (
            ("ASCII", ACCEPTED, event()),
            ("unicode beyond 16 bits", ACCEPTED, event(note="𝄞 👩‍👩‍👧 ـ\u200f")),
            ("escapes", ACCEPTED, escaped),
            ("spaces", ACCEPTED, spaced),
            ("a field that is not known", ACCEPTED, event()[:-1] + b',"more":1}'),
            ("2,000 characters more", ACCEPTED, event(note="n" * 2_000)),
            ("an escaped NUL", ACCEPTED, event(note="a\0b")),
            ("a bare NUL", NOT_JSON, BODY.replace(b"payment_1", b"pay\0ent_1")),
            ("an empty body", NOT_JSON, b""),
            ("bytes that are no UTF-8", NOT_JSON, BODY.replace("ë".encode(), b"\xeb")),
            ("text that is no JSON", NOT_JSON, b"hello"),
            ("half of the body", NOT_JSON, BODY[: len(BODY) // 2]),
            ("JSON that is no object", NOT_EVENT, b"[1]"),
            ("an object that is no event", NOT_EVENT, b'{"id":"evt_1"}'),
            ("an id that is no text", NOT_EVENT, BODY.replace(f'"{ID}"'.encode(), b"1")),
        ):
            yield case(f"body: {name}{scheme}", outcome, make(body), body)
        for name, body in (
            ("changed by one byte", BODY.replace(b"payment_1", b"payment_2")),
            ("with a line feed more", BODY + b"\n"),
            ("without its last byte", BODY[:-1]),
            ("parsed and written again, with spaces", spaced),
            ("parsed and written again, with escapes", escaped),
            ("emptied", b""),
            ("that begins with a byte order mark", b"\xef\xbb\xbf" + BODY),
        ):
            yield case(f"a body {name}{scheme}", WRONG, make(), body)


def standard_cases() -> Iterator[dict[str, Any]]:
    yield case("standard", ACCEPTED, standard())
    yield case("standard, the secret of another endpoint", WRONG, standard(secret=STRANGER))
    whole = hmac.new(SECRET.encode(), f"{ID}.{T}.".encode() + BODY, hashlib.sha256).digest()
    code = base64.b64encode(whole).decode()
    yield case("standard, the whole secret as key", WRONG, standard(signature=f"v1,{code}"))
    code = base64.b64encode(bytes.fromhex(own_code())).decode()
    yield case("standard, our own code as base64", WRONG, standard(signature=f"v1,{code}"))
    signed = f"v1,{standard_code()}"
    yield case("standard, another id", WRONG, standard(id="evt_1", signature=signed))
    yield case("standard, another time", WRONG, standard(t=T + 1, signature=signed))
    yield case("standard, an id with a dot", MALFORMED, standard(id="evt_1.2"))
    yield case("standard, an id that is not ASCII", MALFORMED, standard(id="evt_ë"))
    # What was signed for one id and time would fit another id and time, if the id had dots.
    yield case("standard, a dot moved from time to id", MALFORMED, [
        ("webhook-id", f"{ID}.{T}"), ("webhook-timestamp", "1"), ("webhook-signature", signed),
    ])  # fmt: skip


def standard_header_cases() -> Iterator[dict[str, Any]]:
    good, zeros = standard_code(), base64.b64encode(bytes(32)).decode()
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        left = [pair for pair in standard() if pair[0] != name]
        yield case(f"standard, without {name}", MISSING, left)
        twice = [*standard(), next(pair for pair in standard() if pair[0] == name)]
        yield case(f"standard, {name} twice", MALFORMED, twice)
        empty = [(key, "" if key == name else value) for key, value in standard()]
        yield case(f"standard, an empty {name}", MISSING, empty)
    titled = [(name.title(), value) for name, value in standard()]
    yield case("standard, names in other case", ACCEPTED, titled)
    for name, outcome, signature in (
        ("the right code last of three", ACCEPTED, f"v1,{zeros} v1,{zeros} v1,{good}"),
        ("the right code first of two", ACCEPTED, f"v1,{good} v1,{zeros}"),
        ("two wrong codes", WRONG, f"v1,{zeros} v1,{zeros}"),
        ("another scheme beside it", ACCEPTED, f"v1a,{zeros} v1,{good} v2,abc"),
        ("another scheme only", MALFORMED, f"v1a,{good}"),
        ("no scheme", MALFORMED, good),
        ("hex in place of base64", MALFORMED, f"v1,{base64.b64decode(good).hex()}"),
        ("base64 for URLs", MALFORMED, f"v1,{'-' + good[1:]}"),
        ("base64 without padding", MALFORMED, f"v1,{good[:-1]}"),
        ("base64 of 33 bytes", MALFORMED, f"v1,{base64.b64encode(bytes(33)).decode()}"),
        ("a right code and a malformed one", MALFORMED, f"v1,{good} v1,abc"),
        ("commas between codes", MALFORMED, f"v1,{zeros},v1,{good}"),
        ("two spaces between codes", MALFORMED, f"v1,{zeros}  v1,{good}"),
        ("a space at the end", MALFORMED, f"v1,{good} "),
        ("an equals sign for the comma", MALFORMED, f"v1={good}"),
        ("4,097 characters", MALFORMED, f"v1,{good} v2,".ljust(4_097, "a")),
        ("4,096 characters", ACCEPTED, f"v1,{good} v2,".ljust(4_096, "a")),
    ):
        yield case(f"standard, {name}", outcome, standard(signature=signature))


def both_cases() -> Iterator[dict[str, Any]]:
    yield case("both schemes", ACCEPTED, own() + standard())
    yield case("both, ours wrong", WRONG, own(secret=STRANGER) + standard())
    yield case("both, the standard one wrong", WRONG, own() + standard(secret=STRANGER))
    yield case("both, ours malformed", MALFORMED, [(OWN, "x"), *standard()])
    yield case("both, the standard one malformed", MALFORMED, own() + standard(signature="x"))
    yield case("both, ours stale", TOO_OLD, own(t=T - 301) + standard())
    yield case("both, the standard one stale", TOO_OLD, own() + standard(t=T - 301))
    yield case("both, ours empty", MISSING, [(OWN, ""), *standard()])
    yield case("both, the standard id changed", WRONG, own() + standard(
        id="evt_1", signature=f"v1,{standard_code()}"
    ))  # fmt: skip
    yield case("ours, with an id alone beside it", ACCEPTED, [*own(), ("webhook-id", "x.y")])


def rotation_cases() -> Iterator[dict[str, Any]]:
    codes = f"v1={own_code()},v1={own_code(secret=OLDER)}"
    both: Headers = [
        (OWN, f"t={T},{codes}"),
        *standard(signature=f"v1,{standard_code()} v1,{standard_code(secret=OLDER)}"),
    ]
    yield case("overlap, a receiver with the new secret", ACCEPTED, both)
    yield case("overlap, a receiver with the older", ACCEPTED, both, secrets=(OLDER,))
    yield case("overlap, a receiver with both", ACCEPTED, both, secrets=(OLDER, SECRET))
    yield case("overlap, a receiver with a third", WRONG, both, secrets=(STRANGER,))
    yield case("rotated, a receiver with both", ACCEPTED, own() + standard(),
               secrets=(OLDER, SECRET))  # fmt: skip
    yield case("rotated, a receiver with the older", WRONG, own() + standard(), secrets=(OLDER,))
    yield case("not yet rotated, a receiver with both", ACCEPTED,
               own(secret=OLDER) + standard(secret=OLDER), secrets=(SECRET, OLDER))  # fmt: skip


if __name__ == "__main__":
    main()
