"""What is sent again, when and with which key; answers that are not the service's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from payments_core_http.client import AccountDestination, NoResponse, ResponseMalformed, Retries
from payments_core_http.client.async_connection import AsyncConnection
from payments_core_http.client.connection import Connection
from payments_core_http.client.errors import ApiError, InvalidRequest, ServiceError
from payments_core_http.client.operations import (
    accounts_list,
    client_sessions_revoke,
    own_account_read,
    partner_read_config,
    payments_receive,
    public_links_exchange,
    public_sessions_exchange,
)
from payments_core_http.client.wire import Credentials

READ = partner_read_config()
CREATE = payments_receive(
    amount="1.00", destination=AccountDestination(external_user_id="bob"), idempotency_key="key-1"
)
CREATE_WITHOUT_KEY = payments_receive(
    amount="1.00", destination=AccountDestination(external_user_id="bob")
)
ONCE = public_sessions_exchange(session_token="cst_1")
DELETE = client_sessions_revoke("client_session_1")


def refusal(status: int, code: str, after: str | None = None, **details: Any) -> httpx2.Response:
    error = {"code": code, "message": "No.", "details": {"requestId": "req_1", **details}}
    headers = {} if after is None else {"Retry-After": after}
    return httpx2.Response(status, json={"error": error}, headers=headers)


def broken() -> Exception:
    return httpx2.ReadError("connection reset")


def unreachable() -> Exception:
    return httpx2.ConnectError("connection refused")


class Service:
    """Answers what it was given, one after the other, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers: Iterator[Any] = iter(answers)
        self.requests: list[httpx2.Request] = []
        self.waits: list[float] = []
        self.transport = httpx2.MockTransport(self.answer)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def connect(self, **changes: Any) -> Connection:
        return Connection(
            "https://payments.example/prefix/",
            Credentials(app_id="app_1", app_secret="sk_1"),
            self.transport,
            Retries(**changes),
            20.0,
            sleep=self.waits.append,
            chance=lambda: 1.0,
        )


CASES: dict[str, tuple[Callable[[], Any], set[str]]] = {
    # What goes wrong first: which calls are sent again.
    "unreachable": (unreachable, {"read", "create", "once", "delete"}),
    "broken": (broken, {"read", "create"}),
    "rate limited": (
        lambda: refusal(429, "rate_limited", "1", reason="rate_limit_exceeded"),
        {"read", "create", "once", "delete"},
    ),
    "blocked": (lambda: refusal(429, "rate_limited", "1", reason="abuse_blocked"), set()),
    "too many options": (lambda: refusal(429, "payment_option_limit_reached"), set()),
    "in progress": (lambda: refusal(409, "idempotency_in_progress", "1"), {"read", "create"}),
    "unavailable": (lambda: refusal(503, "unavailable", "1"), {"read", "create"}),
    "dependency": (lambda: refusal(424, "dependency_failed"), {"read", "create"}),
    "fault": (lambda: refusal(500, "internal_error"), {"read", "create"}),
    "proxy": (lambda: httpx2.Response(502, text="<html>Bad gateway"), {"read", "create"}),
    "refused": (lambda: refusal(422, "policy_denied"), set()),
    "conflict": (lambda: refusal(409, "conflict"), set()),
    "redirect": (lambda: httpx2.Response(302, headers={"Location": "https://x.example"}), set()),
    "nonsense": (lambda: httpx2.Response(200, text="<html>"), set()),
}
CALLS = {"read": READ, "create": CREATE, "once": ONCE, "delete": DELETE}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("case", CASES)
def test_only_what_is_safe_is_sent_again(case: str, name: str) -> None:
    fails, again = CASES[case]
    service = Service(fails(), refusal(400, "malformed_request"))
    with pytest.raises((ApiError, NoResponse, ResponseMalformed)):
        service.connect().send(CALLS[name])
    assert len(service.requests) == (2 if name in again else 1)


def test_the_same_key_goes_with_every_attempt() -> None:
    service = Service(broken(), broken(), refusal(422, "policy_denied"))
    with pytest.raises(ApiError) as refused:
        service.connect().send(CREATE_WITHOUT_KEY)
    keys = {request.headers["Idempotency-Key"] for request in service.requests}
    assert len(service.requests) == 3 and keys == {refused.value.idempotency_key}
    other = Service(refusal(422, "policy_denied"))
    with pytest.raises(ApiError):
        other.connect().send(CREATE_WITHOUT_KEY)
    assert other.requests[0].headers["Idempotency-Key"] not in keys


def test_waits_double_are_bounded_and_keep_to_retry_after() -> None:
    service = Service(*[broken() for _ in range(8)])
    with pytest.raises(NoResponse) as last:
        service.connect(attempts=6, first_wait_s=1.0, longest_wait_s=5.0).send(CREATE)
    assert service.waits == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert last.value.idempotency_key == "key-1" and last.value.was_sent
    asked = Service(refusal(503, "unavailable", "7"), refusal(503, "unavailable", "7"))
    with pytest.raises(ServiceError):
        asked.connect(attempts=2).send(READ)
    assert asked.waits == [7.5]
    long = Service(refusal(429, "rate_limited", "3600"))
    with pytest.raises(ApiError) as refused:
        long.connect().send(READ)
    assert (long.waits, refused.value.retry_after_s) == ([], 3600)


def test_chance_shortens_a_wait_by_half_at_most() -> None:
    failure = NoResponse("x", "ReadError", was_sent=True)
    waits = [Retries().wait_s(READ, failure, 1, lambda at=at: at) for at in (0.0, 0.5, 1.0)]
    assert waits == [0.25, 0.375, 0.5]


def test_what_is_sent() -> None:
    service = Service(refusal(422, "policy_denied"), refusal(422, "policy_denied"))
    with pytest.raises(ApiError):
        service.connect().send(CREATE)
    sent = service.requests[0]
    assert str(sent.url) == "https://payments.example/prefix/v2/payments"
    assert sent.headers["Authorization"] == "Basic YXBwXzE6c2tfMQ=="
    assert sent.headers["Service-Version"] == "2026-09-09"
    assert sent.content == (
        b'{"intent":"receive","amount":"1.00","destination":'
        b'{"type":"account","externalUserId":"bob"}}'
    )
    with pytest.raises(ApiError):
        service.connect().send(accounts_list(external_user_id="a&b", limit=2))
    assert service.requests[1].url.query == b"externalUserId=a%26b&limit=2"


def test_a_failure_names_neither_the_address_nor_the_code_of_a_link() -> None:
    service = Service(httpx2.ReadError("https://payments.example/" + "c" * 48))
    with pytest.raises(NoResponse) as failure:
        service.connect(attempts=1).send(public_links_exchange("c" * 48))
    assert str(failure.value) == "exchangePaymentLink: ReadError"
    assert "ccc" not in repr(public_links_exchange("c" * 48))


def test_answers_that_are_not_the_services_own() -> None:
    service = Service(httpx2.Response(400, text="<html>"), httpx2.Response(200, json=[]))
    with pytest.raises(InvalidRequest) as refused:
        service.connect(attempts=1).send(READ)
    assert (refused.value.http_status, refused.value.code) == (400, "")
    with pytest.raises(ResponseMalformed) as malformed:
        service.connect(attempts=1).send(READ)
    assert malformed.value.body == b"[]"


def test_a_missing_credential_is_named() -> None:
    with pytest.raises(ValueError, match="access_token"):
        Service().connect().send(own_account_read())


@pytest.mark.parametrize(
    "url",
    ["payments.example", "ftp://payments.example", "https://u:p@payments.example", "https://"],
)
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        Connection(url, Credentials(), Service().transport, Retries(), 20.0)


def test_the_asynchronous_connection_retries_alike() -> None:
    service = Service(unreachable(), refusal(503, "unavailable", "2"), refusal(422, "conflict"))

    async def wait(seconds: float) -> None:
        service.waits.append(seconds)

    connection = AsyncConnection(
        "https://payments.example",
        Credentials(app_id="app_1", app_secret="sk_1"),
        service.transport,
        Retries(),
        20.0,
        sleep=wait,
        chance=lambda: 1.0,
    )
    with pytest.raises(ApiError):
        asyncio.run(connection.send(CREATE))
    assert service.waits == [0.5, 3.0]
    assert {one.headers["Idempotency-Key"] for one in service.requests} == {"key-1"}
