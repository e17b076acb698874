"""The receiver's side: what is accepted, each refusal by its name, effects applied once."""

from __future__ import annotations

import base64
import hmac
import json
import re
import shutil
import subprocess
import sys
from email.message import Message
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.entropy import system_entropy
from payments_core.webhooks import WebhookRefused, receiver, signing, verify
from payments_core.webhooks.received import read_event
from payments_core.webhooks.receiver import (
    BodyNotEvent,
    BodyNotJson,
    SecretMalformed,
    SignatureMalformed,
    SignatureMissing,
    SignatureWrong,
    TimestampTooNew,
    TimestampTooOld,
)

FOLDER = Path(__file__).parent.parent / "vectors"
VECTORS = json.loads((FOLDER / "webhook_signatures.json").read_text("utf-8"))
REFUSALS = {
    error.code: error
    for error in (
        BodyNotEvent, BodyNotJson, SignatureMalformed, SignatureMissing, SignatureWrong,
        TimestampTooNew, TimestampTooOld,
    )
}  # fmt: skip
BODY = b'{"id":"evt_1","name":"n","apiVersion":"v","createdAt":"t","payload":{"a":1}}'
SECRET = signing.new_secret(system_entropy)
NOW = 1_790_000_000
HEADER = signing.signature_header(SECRET, NOW, BODY)
STANDARD = {
    name: value
    for name, value in signing.sign_headers([SECRET], "evt_1", NOW, BODY).items()
    if name.startswith("webhook-")
}


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_vectors(case: dict[str, Any]) -> None:
    encoded = case.get("body_base64")
    body = case["body"].encode() if encoded is None else base64.b64decode(encoded)

    def verified() -> str:
        return verify(
            body, [tuple(pair) for pair in case["headers"]], case["secrets"],
            tolerance_s=case["tolerance_s"], now=case["now"],
        ).id  # fmt: skip

    if case["outcome"] == "accepted":
        assert verified() == case["id"]
    else:
        with pytest.raises(REFUSALS[case["outcome"]]):
            verified()


def test_every_refusal_has_a_vector() -> None:
    assert {case["outcome"] for case in VECTORS["cases"]} == {"accepted", *REFUSALS}


def test_the_vectors_are_what_their_script_makes_without_our_code() -> None:
    script = FOLDER / "make_webhook_signatures.py"
    assert not re.search(r"^\s*(?:from|import) payments_core", script.read_text("utf-8"), re.M)
    done = subprocess.run(
        [sys.executable, "-I", script, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_openssl_computes_the_codes_of_the_vectors() -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl")
    cases = {case["name"]: case for case in VECTORS["cases"]}
    own, standard = cases["plain"], cases["standard"]
    (secret,) = own["secrets"]
    key = base64.b64decode(secret.removeprefix("whsec_")).hex()
    time, _, code = own["headers"][0][1].removeprefix("t=").partition(",v1=")
    headers = dict(standard["headers"])
    for key_option, start, expected in (
        (f"key:{secret}", f"{time}.", code),
        (
            f"hexkey:{key}",
            f"{headers['webhook-id']}.{headers['webhook-timestamp']}.",
            base64.b64decode(headers["webhook-signature"].removeprefix("v1,")).hex(),
        ),
    ):
        done = subprocess.run(
            [openssl, "dgst", "-sha256", "-mac", "HMAC", "-macopt", key_option, "-binary"],
            input=(start + own["body"]).encode(), capture_output=True, check=True,
        )  # fmt: skip
        assert done.stdout.hex() == expected


def test_a_cloud_event_is_read_as_an_event() -> None:
    body = (
        b'{"specversion":"1.0","id":"evt_1","source":"urn:x","type":"n","subject":"s","time":"t",'
        b'"apiversion":"v","data":{"a":1}}'
    )
    assert read_event(body) == read_event(BODY)
    for wrong in (body.replace(b'"1.0"', b'"0.3"'), body.replace(b"apiversion", b"x")):
        with pytest.raises(msgspec.ValidationError):
            read_event(wrong)


def test_the_event_is_read() -> None:
    event = verify(BODY, HEADER, SECRET, now=NOW)
    assert (event.id, event.name, event.api_version, event.created_at) == ("evt_1", "n", "v", "t")
    assert event.payload == {"a": 1}


@pytest.mark.parametrize(
    "headers",
    [
        {"x-service-signature": HEADER},
        {"Content-Type": "application/json", "X-Service-Signature": HEADER},
        {"wsgi.url_scheme": "https", "HTTP_X_SERVICE_SIGNATURE": HEADER},
        [(b"content-type", b"application/json"), (b"x-service-signature", HEADER.encode())],
        HEADER.encode(),
        {"x-service-signature": HEADER, "webhook-signature": None},
        STANDARD,
        {name.title(): value for name, value in STANDARD.items()},
        {"HTTP_" + name.upper().replace("-", "_"): value for name, value in STANDARD.items()},
        {"x-service-signature": HEADER, **STANDARD},
    ],
)
def test_headers_are_found_under_every_spelling(headers: Any) -> None:
    assert verify(BODY, headers, SECRET, now=NOW).id == "evt_1"


@pytest.mark.parametrize("headers", [None, "", {}, {"x-service-signature": ""}, {"x-other": "a"}])
def test_a_missing_header_is_named(headers: Any) -> None:
    with pytest.raises(SignatureMissing):
        verify(BODY, headers, SECRET, now=NOW)


def test_the_headers_of_the_standard_library_are_taken_as_they_are() -> None:
    message = Message()
    message["X-Service-Signature"] = HEADER
    assert verify(BODY, message, SECRET, now=NOW).id == "evt_1"
    message["x-service-signature"] = HEADER
    with pytest.raises(SignatureMalformed):
        verify(BODY, message, SECRET, now=NOW)


@pytest.mark.parametrize("value", [1, [], ["t=1"], object()])
def test_a_header_that_is_not_text_is_malformed(value: Any) -> None:
    for name in ("x-service-signature", "webhook-signature"):
        with pytest.raises(SignatureMalformed):
            verify(BODY, {**STANDARD, name: value}, SECRET, now=NOW)


def test_authentic_json_that_is_nested_too_deeply_is_refused() -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    body = BODY.replace(b'{"a":1}', deep)
    with pytest.raises(BodyNotEvent):
        verify(body, signing.signature_header(SECRET, NOW, body), SECRET, now=NOW)


def test_an_event_cannot_be_changed_and_names_no_secret() -> None:
    event = verify(BODY, HEADER, SECRET, now=NOW)
    with pytest.raises(AttributeError):
        event.id = "evt_2"  # type: ignore[misc]
    assert SECRET not in repr(receiver._parse_secret(SECRET))


def test_two_headers_are_malformed() -> None:
    with pytest.raises(SignatureMalformed):
        verify(
            BODY, {"x-service-signature": HEADER, "X-Service-Signature": HEADER}, SECRET, now=NOW
        )
    with pytest.raises(SignatureMalformed):
        verify(BODY, HEADER + f",v1={'0' * 64}" * 100, SECRET, now=NOW)


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "whsec_abc", SECRET[6:], SECRET + "=", SECRET[:-2], "whsec_" + "*" * 44,
     "whsec_" + "é" * 44, "sk_sandbox_x", [], [SECRET, "whsec_"], SECRET + "\n"],
)  # fmt: skip
def test_a_secret_of_another_form_is_the_receivers_own_fault(secret: Any) -> None:
    with pytest.raises(SecretMalformed) as raised:
        verify(BODY, HEADER, secret, now=NOW)
    assert not isinstance(raised.value, WebhookRefused)
    assert SECRET not in str(raised.value)


def test_the_machines_own_clock_is_the_default() -> None:
    with pytest.raises((TimestampTooNew, TimestampTooOld)):
        verify(BODY, signing.signature_header(SECRET, 1_000_000_000, BODY), SECRET)


def test_a_refusal_carries_no_secret_and_no_right_code() -> None:
    with pytest.raises(SignatureWrong) as raised:
        verify(BODY + b" ", HEADER, SECRET, now=NOW)
    text = repr(raised.value) + str(raised.value)
    assert SECRET not in text
    assert signing.signature(SECRET, str(NOW), BODY + b" ") not in text


@given(st.binary(max_size=300), st.integers(0, 10**11), st.binary(min_size=32, max_size=32))
def test_what_is_signed_verifies_and_is_plain_hmac(body: bytes, t: int, key: bytes) -> None:
    secret = signing.new_secret(lambda n: key)
    header = signing.signature_header(secret, t, body)
    code = hmac.new(secret.encode(), str(t).encode() + b"." + body, "sha256").hexdigest()
    assert header == f"t={t},v1={code}"
    with pytest.raises((BodyNotEvent, BodyNotJson)):  # authentic, and only then no event
        verify(body, header, secret, now=t)


@given(st.one_of(st.binary(max_size=100), st.text(max_size=100).map(lambda t: t.encode())))
def test_no_authentic_body_breaks_the_parser(body: bytes) -> None:
    with pytest.raises((BodyNotJson, BodyNotEvent)):
        verify(body, signing.signature_header(SECRET, NOW, body), SECRET, now=NOW)


def test_importing_the_receiver_loads_nothing_of_the_service() -> None:
    script = (
        "import sys; from payments_core.webhooks import verify; "
        "print([m for m in sys.modules if m.startswith('payments_core.') and 'storage' in m "
        "or m.split('.')[0] in ('nacl', 'falcon', 'ssl')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    import payments_core.webhooks

    with pytest.raises(AttributeError):
        payments_core.webhooks.nothing  # noqa: B018
