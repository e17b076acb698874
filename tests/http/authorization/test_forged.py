"""Every token with each of its characters changed, cut short and made longer: none opens."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.http.api_harness import Seen
from tests.http.authorization.credentials import SECRET_HEADER
from tests.http.authorization.matrix import BY_NAME, CROWDED, matrix
from tests.http.authorization.populated_environment import basic, bearer

SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
PLAIN = SAFE[:-2] + "+/"
Headers = dict[str, str]
_EXCHANGE = BY_NAME["POST /v2/client/auth/exchange"]


def forged(token: str, alphabet: str = SAFE) -> Iterator[str]:
    """The token with one character changed, in its first bit and in its last; shorter; longer."""
    for place, character in enumerate(token):
        if character in alphabet:
            index = alphabet.index(character)
            others = (alphabet[index ^ 1], alphabet[index ^ 32])
        else:
            others = (alphabet[0], alphabet[1])
        for other in others:
            yield token[:place] + other + token[place + 1 :]
    yield from (token[:length] for length in range(1, len(token)))
    yield from (token + character for character in alphabet[:2])
    yield token + token


def opens(headers: Headers, method: str, path: str, body: Any = None) -> Seen:
    """The answer to a call from the world's beginning; nothing that is refused changes it."""
    world = matrix().world
    return world.wires["sandbox"].call(method, path, headers, body)


def check(token: str, call: Callable[[str], Seen], alphabet: str = SAFE, status: int = 401) -> None:
    """No forgery is let in, all are refused alike, nothing changes, and the token itself works."""
    storage, mark = matrix().world.storage, matrix().marks[CROWDED]
    storage.rewind(mark)
    refusals, tried = set(), 0
    for text in forged(token, alphabet):
        seen, tried = call(text), tried + 1
        assert (seen.status, seen.code) == (
            status,
            "unauthorized" if status == 401 else "not_found",
        )
        refusals.add(seen.body.replace(seen.headers["x-request-id"].encode(), b""))
    assert len(refusals) == 1
    assert tried > 3 * len(token) - 3
    assert not storage.changed_since(mark)
    assert call(token).status in (200, 201)


def test_a_server_key() -> None:
    own = matrix().world.own
    pair = basic(own.app_id, own.secret)["Authorization"].removeprefix("Basic ")

    def call(text: str) -> Seen:
        return opens({"Authorization": f"Basic {text}"}, "GET", "/v2/partners/config")

    check(pair.rstrip("="), lambda text: call(text + "=" * (-len(pair.rstrip("=")) % 4)), PLAIN)
    check(own.secret, lambda text: opens(basic(own.app_id, text), "GET", "/v2/partners/config"))
    check(own.app_id, lambda text: opens(basic(text, own.secret), "GET", "/v2/partners/config"))


def test_a_server_key_with_the_right_checksum() -> None:
    own = matrix().world.own
    stem = own.secret[:-8]

    def summed(text: str) -> Seen:
        secret = text + f"{zlib.crc32(text.encode()):08x}"
        return opens(basic(own.app_id, secret), "GET", "/v2/partners/config")

    check(stem, summed)


def test_a_server_key_as_a_bearer() -> None:
    own = matrix().world.own
    path = f"/v2/sessions/{own.payments['settled']['sessionId']}/dispute"
    body = {"reason": "not delivered"}
    check(own.secret, lambda text: opens(bearer(text), "POST", path, body))


def test_a_session_token() -> None:
    matrix().world.storage.rewind(matrix().marks[CROWDED])
    credential = matrix().credentials["a session token"]
    token = credential.headers(matrix().world, _EXCHANGE)["Authorization"].removeprefix("Bearer ")
    check(token, lambda text: opens(bearer(text), "POST", "/v2/client/auth/exchange"))


def test_an_access_token() -> None:
    check(
        matrix().world.own.buyers,
        lambda text: opens(bearer(text), "GET", "/v2/client/me"),
    )


@pytest.mark.parametrize("path", ["/state", "/methods"])
def test_a_payments_secret(path: str) -> None:
    payment = matrix().world.own.payments["out"]
    target = f"/v2/public/payments/{payment['id']}{path}"
    check(payment["clientSecret"], lambda text: opens(bearer(text), "GET", target))


@pytest.mark.parametrize("path", ["", "/options"])
def test_a_payments_secret_beside_a_token(path: str) -> None:
    own = matrix().world.own
    payment = own.payments["out"]
    target = f"/v2/client/me/payments/{payment['id']}{path}"

    def call(text: str) -> Seen:
        return opens({**bearer(own.buyers), SECRET_HEADER: text}, "GET", target)

    check(payment["clientSecret"], call)


def test_a_links_code() -> None:
    def call(text: str) -> Seen:
        return opens({}, "POST", f"/v2/public/payment-links/{text}/exchange")

    check(matrix().world.own.ids["code"], call, status=404)


def test_forgeries_that_decode_to_the_same_bytes_are_made() -> None:
    """The last character of base64 has bits to spare: some forgeries differ in these only."""
    token = "QUJDRA"  # four bytes, and four bits that name none
    same = [
        text
        for text in forged(token)
        if len(text) == len(token) and base64.urlsafe_b64decode(text + "==") == b"ABCD"
    ]
    assert same == ["QUJDRB"]
