"""What holds of every delivery: what is signed verifies, what was changed is refused by name."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.entropy import system_entropy
from payments_core.webhooks import WebhookRefused, receiver, signing, verify
from payments_core.webhooks.receiver import (
    SecretMalformed,
    SignatureMalformed,
    SignatureMissing,
    SignatureWrong,
)

BODY = b'{"id":"evt_1","name":"n","apiVersion":"v","createdAt":"t","payload":{"a":1}}'
SECRET = signing.new_secret(system_entropy)
NOW = 1_790_000_000
OWN = ("x-service-signature",)
STANDARD = ("webhook-id", "webhook-timestamp", "webhook-signature")
SCHEMES = st.sampled_from([OWN, STANDARD, OWN + STANDARD])

secrets = st.binary(min_size=32, max_size=32).map(lambda key: signing.new_secret(lambda _: key))
texts = st.text(max_size=60)
payloads = st.dictionaries(texts, st.one_of(texts, st.integers(), st.none()), max_size=5)


def headers_of(
    names: tuple[str, ...], *signers: str, t: int = NOW, body: bytes = BODY, id: str = "evt_1"
) -> dict[str, str]:
    signed = signing.sign_headers(signers or (SECRET,), id, t, body)
    return {name: signed[name] for name in names}


@given(
    st.lists(secrets, min_size=1, max_size=4), SCHEMES, payloads, st.integers(0, 10**11), st.data()
)
def test_what_is_signed_is_accepted(
    signers: list[str], names: tuple[str, ...], payload: dict[str, Any], t: int, data: st.DataObject
) -> None:
    body = msgspec.json.encode(
        {"id": "evt_1", "name": "n", "apiVersion": "v", "createdAt": "t", "payload": payload}
    )
    headers = headers_of(names, *signers, t=t, body=body)
    accepted = data.draw(st.lists(st.sampled_from(signers), min_size=1, max_size=3))
    late = data.draw(st.integers(-300, 300))
    event = verify(body, headers, accepted, now=t + late)
    assert (event.id, event.payload) == ("evt_1", payload)


@given(SCHEMES, st.data())
def test_a_body_with_one_byte_changed_is_wrong(names: tuple[str, ...], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(BODY) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != BODY[at]))
    body = BODY[:at] + bytes([byte]) + BODY[at + 1 :]
    with pytest.raises(SignatureWrong):
        verify(body, headers_of(names), SECRET, now=NOW)


@given(st.sampled_from(OWN + STANDARD), st.booleans(), st.data())
def test_a_header_with_one_character_changed_is_wrong_or_malformed(
    name: str, beside: bool, data: st.DataObject
) -> None:
    names = OWN if name in OWN else STANDARD
    headers = headers_of(OWN + STANDARD if beside else names)
    value = headers[name]
    at = data.draw(st.integers(0, len(value) - 1))
    new = data.draw(st.characters().filter(lambda character: character != value[at]))
    headers[name] = value[:at] + new + value[at + 1 :]
    with pytest.raises((SignatureWrong, SignatureMalformed)) as raised:
        verify(BODY, headers, SECRET, now=NOW)
    time = value[: len(str(NOW))] if name == "webhook-timestamp" else ""
    if time and new in "0123456789" and not (at == 0 and new == "0"):
        assert raised.type is SignatureWrong  # still a time, and not the one that was signed


@given(SCHEMES, st.integers(0, 10**11))
def test_another_time_than_the_signed_one_is_wrong(names: tuple[str, ...], t: int) -> None:
    headers = headers_of(names)
    changed = {
        name: value.replace(str(NOW), str(t)) if name != "webhook-signature" else value
        for name, value in headers.items()
    }
    if changed == headers:
        return
    with pytest.raises(SignatureWrong):
        verify(BODY, changed, SECRET, now=t)


@given(SCHEMES, secrets)
def test_another_secret_is_wrong(names: tuple[str, ...], secret: str) -> None:
    with pytest.raises(SignatureWrong):
        verify(BODY, headers_of(names), secret, now=NOW)


hostile_text = st.one_of(
    st.text(max_size=200),
    st.text("tv01=, .abcdefABCDEF+/\0\n\ud800é", max_size=200),
    st.builds("t={},v1={}".format, st.text(max_size=20), st.text("0aF", max_size=66)),
    st.builds("v1,{}".format, st.text("aA0+/=", min_size=40, max_size=46)),
    st.binary(max_size=100),
)


@given(hostile_text)
def test_no_text_of_a_header_breaks_the_parser(header: Any) -> None:
    with pytest.raises((SignatureMissing, SignatureMalformed, SignatureWrong)):
        verify(BODY, header, SECRET, now=NOW)


@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(OWN + STANDARD), st.text(max_size=30), st.binary(max_size=9)),
            hostile_text,
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_no_headers_break_the_parser(headers: list[tuple[Any, Any]], as_mapping: bool) -> None:
    with pytest.raises(WebhookRefused):
        verify(BODY, dict(headers) if as_mapping else headers, SECRET, now=NOW)


@given(st.text(max_size=60))
def test_no_text_of_a_secret_breaks_anything_else(secret: str) -> None:
    with pytest.raises(SecretMalformed):
        verify(BODY, headers_of(OWN), secret, now=NOW)


@given(SCHEMES, st.binary(max_size=200))
def test_no_authentic_body_breaks_the_parser(names: tuple[str, ...], body: bytes) -> None:
    with pytest.raises(WebhookRefused) as raised:
        verify(body, headers_of(names, body=body), SECRET, now=NOW)
    assert raised.value.code in ("body_not_json", "body_not_event")


def test_codes_are_compared_in_constant_time_alone() -> None:
    """Neither with `==` nor with `in`, whose time shows how much of a guess was right."""
    tree = ast.parse(inspect.getsource(receiver))
    compared = {
        part.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Name)
    }
    assert not compared & {"codes", "code", "theirs", "ours", "expected"}
    calls = [
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert calls.count("compare_digest") == 3
