"""No secret comes out of the log, wherever it was put in."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from payments_core_http.redaction import REDACTED, SECRET_PATTERNS, redact, redact_named_value
from tests.observability.listening import Log
from tests.observability.secrets_of_every_kind import KINDS, Secret

_log = logging.getLogger("payments_core.test")

around = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="@"), max_size=20
)


def in_message(text: str) -> None:
    _log.info(text)


def in_arguments(text: str) -> None:
    _log.info("it said %s and %r", text, {"a": [text]})


def in_arguments_that_do_not_fit(text: str) -> None:
    _log.info("it said %d", text)


def in_exception(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        _log.exception("failed")


def in_cause(text: str) -> None:
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise RuntimeError("failed") from cause
    except RuntimeError as error:
        error.add_note(f"noted: {text}")
        _log.warning("failed", exc_info=error)


def in_group(text: str) -> None:
    error = ExceptionGroup("some", [ValueError(text), OSError(2, text, text)])
    _log.error("failed", exc_info=error)


def in_extras(text: str) -> None:
    _log.info(
        "reported", extra={"said": text, "deep": {"a": [{text: (text,)}]}, "odd": ValueError(text)}
    )


PLACES = (
    in_message,
    in_arguments,
    in_arguments_that_do_not_fit,
    in_exception,
    in_cause,
    in_group,
    in_extras,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), before=around, after=around)
def test_a_secret_does_not_come_out(
    log: Log, kind: str, data: st.DataObject, before: str, after: str
) -> None:
    secret = data.draw(KINDS[kind])
    assume(secret.hidden not in before + after)
    for place in PLACES:
        log.clear()
        place(placed(secret, before, after))
        assert log.text
        assert secret.hidden not in log.text, place.__name__


def encode_percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def encode_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("encode", [encode_percent, encode_base64])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_nor_does_one_in_an_encoding(
    kind: str, encode: Callable[[str], str], data: st.DataObject
) -> None:
    secret = data.draw(KINDS[kind])
    text = f"{'.' * 40} {secret.text}"  # shorter ones are words
    for hidden in (encode(text), encode(encode(text)), encode_percent(encode(text))):
        assert redact(f"a {hidden} b") == f"a {REDACTED} b"


def placed(secret: Secret, before: str, after: str) -> str:
    room = " " if secret.needs_room else ""
    return f"{before}{room}{secret.text}{room}{after}"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_that_something_was_hidden_is_reported(kind: str, data: st.DataObject) -> None:
    assert REDACTED in redact(data.draw(KINDS[kind]).text)


@pytest.mark.parametrize(
    "text",
    [
        "job job_0123456789abcdefABCDEF-_ (payments.release of payment_0123456789abcdefABCDEF-_)",
        "req_0123456789abcdefABCDEF-_ at POST /v2/payments/{paymentId}/refunds failed",
        "chain 8453: 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 was found",
        "0x" + "ab12" * 16 + " is not in a block, and its fees are at their maximum",
        "listening on https://pay.example:8080/ and on 127.0.0.1:9090",
        "transaction 5VERYLongSolanaSignature" + "aB3" * 20,
        'File "payments_core/webhooks/dispatch/attempt.py", line 120, in _sent',
        "at 12:30:01.123 the clock was set",
        "see https://docs.example/reference/applications/deployments",
        "GET /v2/sandbox/verifications",
        "    _, policy, standing = max(refused, key=lambda it: it[0])",
        "if key == other: its key is k2, and they pass",
    ],
)
def test_what_operators_need_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", ["password", "app_secret", "apiKey", "access-token", "Cookie"])
def test_a_value_is_hidden_whose_name_says_that_it_is_secret(name: str) -> None:
    assert redact_named_value(name, "anything") == REDACTED
    assert redact_named_value(name, 12) == REDACTED
    assert redact_named_value("deep", {name: ["x"]}) == {name: REDACTED}


LEADS = (
    "-----BEGIN A-----", "https://a/", "GET /", "a:", "eyJ.", "password='", "token:token=", "A-"
)  # fmt: skip


@pytest.mark.parametrize(
    "piece", [*(shape.marks[0] for shape in SECRET_PATTERNS), *LEADS, *"@:=. '\"(\n"]
)
@pytest.mark.parametrize("end", ["", "@", "=", "'", " ", "\n"])
def test_no_text_takes_long(piece: str, end: str) -> None:
    text = (piece * 1_000_000)[:1_000_000] + end
    began = time.perf_counter()
    redact(text)
    assert time.perf_counter() - began < 10  # without bounds it would be hours


def test_a_long_text_is_cut_after_it_was_redacted() -> None:
    reported = redact("x" * 31_950 + " postgresql://u:" + "p" * 100 + "@db.example/ " + "y" * 1_000)
    assert len(reported) < 32_100
    assert "ppp" not in reported
