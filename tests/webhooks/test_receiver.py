"""The receiver's side: what is accepted, each refusal by its name, effects applied once."""

from __future__ import annotations

import hmac
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.entropy import system_entropy
from payments_core.webhooks import WebhookRefused, process_once, signing, verify
from payments_core.webhooks.receiver import (
    BodyNotEvent,
    BodyNotJson,
    SecretMalformed,
    SignatureMalformed,
    SignatureMissing,
    SignatureWrong,
    TimestampTooNew,
    TimestampTooOld,
    table_sql,
)

VECTORS = json.loads(
    (Path(__file__).parent.parent / "vectors" / "webhook_signatures.json").read_text("utf-8")
)
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


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_vectors(case: dict[str, Any]) -> None:
    def verified() -> str:
        return verify(
            case["body"].encode(), case["signature"], case["secrets"],
            tolerance_s=VECTORS["tolerance_s"], now=case["now"],
        ).id  # fmt: skip

    if case["outcome"] == "accepted":
        assert verified() == json.loads(case["body"])["id"]
    else:
        with pytest.raises(REFUSALS[case["outcome"]]):
            verified()


def test_every_refusal_has_a_vector() -> None:
    assert {case["outcome"] for case in VECTORS["cases"]} == {"accepted", *REFUSALS}


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
    ],
)
def test_headers_are_found_under_every_spelling(headers: dict[str, str]) -> None:
    assert verify(BODY, headers, SECRET, now=NOW).id == "evt_1"


@pytest.mark.parametrize("headers", [None, "", {}, {"x-service-signature": ""}, {"x-other": "a"}])
def test_a_missing_header_is_named(headers: Any) -> None:
    with pytest.raises(SignatureMissing):
        verify(BODY, headers, SECRET, now=NOW)


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


@given(st.data())
def test_a_changed_body_time_code_or_secret_is_refused(data: st.DataObject) -> None:
    what = data.draw(st.sampled_from(["body", "header", "secret"]))
    body, header, secret = BODY, HEADER, SECRET
    if what == "body":
        at = data.draw(st.integers(0, len(body) - 1))
        changed = data.draw(st.integers(0, 255).filter(lambda byte: byte != BODY[at]))
        body = body[:at] + bytes([changed]) + body[at + 1 :]
    elif what == "header":
        at = data.draw(st.integers(0, len(header) - 1))
        character = data.draw(st.characters().filter(lambda c: c != HEADER[at]))
        header = header[:at] + character + header[at + 1 :]
    else:
        secret = signing.new_secret(system_entropy)
    with pytest.raises(WebhookRefused):
        verify(body, header, secret, now=NOW)


@given(st.text(max_size=200))
def test_no_header_breaks_the_parser(header: str) -> None:
    with pytest.raises(WebhookRefused):
        verify(BODY, header, SECRET, now=NOW)


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


# Applying once.


def opened(path: Path, **options: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=20, **options)
    connection.execute(table_sql())
    connection.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT)")
    connection.commit()
    return connection


def orders(path: Path) -> int:
    connection = sqlite3.connect(path)
    count: int = connection.execute("SELECT count(*) FROM orders").fetchone()[0]
    connection.close()
    return count


@pytest.mark.parametrize("level", ["", None, "IMMEDIATE"])
def test_an_event_is_applied_once(tmp_path: Path, level: str | None) -> None:
    path = tmp_path / "shop.db"
    connection = opened(path, isolation_level=level)

    def effect() -> None:
        connection.execute("INSERT INTO orders VALUES ('1')")

    assert process_once(connection, "evt_1", effect) is True
    assert process_once(connection, "evt_1", effect) is False
    assert process_once(connection, "evt_2", effect) is True
    connection.close()
    assert orders(path) == 2


@pytest.mark.parametrize("options", [{}, {"isolation_level": None}])
def test_an_effect_that_fails_leaves_nothing_and_can_come_again(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    path = tmp_path / "shop.db"
    connection = opened(path, **options)

    def failing() -> None:
        connection.execute("INSERT INTO orders VALUES ('1')")
        raise KeyError("no such order")

    with pytest.raises(KeyError):
        process_once(connection, "evt_1", failing)
    assert orders(path) == 0
    assert process_once(connection, "evt_1", lambda: None)
    connection.close()


def test_of_many_deliveries_at_once_one_applies(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    opened(path).close()
    applied: list[bool] = []

    def receive() -> None:
        connection = sqlite3.connect(path, timeout=20)
        applied.append(
            process_once(
                connection, "evt_1", lambda: connection.execute("INSERT INTO orders VALUES ('1')")
            )
        )
        connection.close()

    threads = [threading.Thread(target=receive) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(applied) == [False] * 7 + [True]
    assert orders(path) == 1


def test_a_connection_that_commits_by_itself_is_refused() -> None:
    class Connection:
        autocommit = True
        undone = False

        def cursor(self) -> Any:
            return type("Cursor", (), {"close": lambda self: None})()

        def rollback(self) -> None:
            self.undone = True

    connection = Connection()
    with pytest.raises(ValueError, match="autocommit"):
        process_once(connection, "evt_1", lambda: None, paramstyle="format")
    assert connection.undone


def test_a_table_has_a_plain_name() -> None:
    assert "mine" in table_sql("mine")
    with pytest.raises(ValueError, match="identifier"):
        table_sql("x; DROP TABLE orders")
