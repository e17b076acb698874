"""`payments verify-webhook`: each refusal by its name, and a secret that stays secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from payments_core.webhooks.signing import signature_header

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
BODY = json.dumps(
    {
        "id": "evt_1",
        "name": "payment.succeeded",
        "apiVersion": "2026-09-09",
        "createdAt": "2026-09-21T14:13:20.000Z",
        "payload": {"paymentId": "payment_1"},
    }
).encode()


def signed(body: bytes = BODY, *, ahead_s: int = 0) -> str:
    """The header of a delivery that is sent now, or was, or will be."""
    return signature_header(SECRET, int(time.time()) + ahead_s, body)


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    return file


def check(
    *arguments: str, body: bytes = BODY, secret: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    environment = dict(os.environ)
    environment.pop("PAYMENTS_WEBHOOK_SECRET", None)
    if secret is not None:
        environment["PAYMENTS_WEBHOOK_SECRET"] = secret
    done = subprocess.run(
        [sys.executable, "-m", "payments_core_http.cli", "verify-webhook", *arguments],
        input=body, capture_output=True, timeout=30, env=environment,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert SECRET.encode() not in done.stdout + done.stderr
    return done


def test_an_authentic_delivery_passes_from_a_file_or_standard_input(
    secret_file: Path, tmp_path: Path
) -> None:
    header = signed()
    kept = tmp_path / "body.json"
    kept.write_bytes(BODY)
    for arguments, secret in (
        (("--secret-file", str(secret_file), "--header", header), None),
        (("--secret-file", str(secret_file), "--header", header, str(kept)), None),
        (("--header", header), SECRET),
        (("--header", f"X-Service-Signature: {header}", "--header", "x-other: 1"), SECRET),
    ):
        done = check(*arguments, secret=secret)
        assert (done.returncode, done.stdout) == (0, b"authentic: payment.succeeded evt_1\n")
    done = check("--json", "--header", header, secret=SECRET)
    assert json.loads(done.stdout) == {
        "verified": True, "eventId": "evt_1", "name": "payment.succeeded",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "body", "code"),  # the header when it is sent, which is long after it is collected
    [
        (signed, BODY + b"\n", "signature_wrong"),
        (partial(signed, ahead_s=-10_000), BODY, "timestamp_too_old"),
        (partial(signed, ahead_s=10_000), BODY, "timestamp_too_new"),
        (lambda: "t=1,v1=abc", BODY, "signature_malformed"),
        (lambda: "x-other: 1", BODY, "signature_missing"),
        (partial(signed, b"hello"), b"hello", "body_not_json"),
        (partial(signed, b"[]"), b"[]", "body_not_event"),
    ],
)
def test_each_refusal_is_named(sent: Callable[[], str], body: bytes, code: str) -> None:
    header = sent()
    done = check("--header", header, body=body, secret=SECRET)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(f"refused: {code}: ".encode())
    assert len(done.stderr.splitlines()) == 2  # and what to do about it
    reported = json.loads(check("--json", "--header", header, body=body, secret=SECRET).stdout)
    assert (reported["verified"], reported["refused"]) == (False, code)


def test_an_old_delivery_passes_with_a_tolerance() -> None:
    header = signed(ahead_s=-10_000)
    assert check("--header", header, "--tolerance", "20000", secret=SECRET).returncode == 0


def test_a_wrong_call_says_what_is_missing(secret_file: Path, tmp_path: Path) -> None:
    header = signed()
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for arguments, secret, reported in (
        (("--header", header), None, b"--secret-file"),
        (("--header", header), "whsec_short", b"The secret is not valid"),
        (("--header", header, "--secret-file", str(tmp_path / "none")), None, b"does not exist"),
        (
            ("--header", header, "--secret-file", str(binary)),
            None,
            b"does not contain a readable secret",
        ),
        ((), SECRET, b"--header"),
        (("--header", header, "--header", "x-a: 1"), SECRET, b"name: value"),
        (("--header", header, str(tmp_path / "nothing")), SECRET, b"nothing"),
    ):
        done = check(*arguments, secret=secret)
        assert (done.returncode, reported in done.stderr) == (2, True), done.stderr
