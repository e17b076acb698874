"""What Schemathesis is here for is found: a shop that answers wrongly in one way fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest

from tests.fuzz.running import Plan, Report, loaded, single_requests
from tests.fuzz.shop import Shop

ROUTE = "/v2/client-sessions"
"""A route with a credential and a body, and with rules about both."""


@attrs.frozen
class Heard:
    """An answer on its way out."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


Corruption = Callable[[Heard], Heard]


class BrokenShop(Shop):
    """A shop with something wrong at one route, on the way in or on the way out."""

    def __init__(self, corrupt: Corruption, before: Callable[[Any, Shop], None]) -> None:
        self._corrupt, self._before = corrupt, before
        super().__init__()

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != ROUTE:
            return super().__call__(environ, start_response)
        self._before(environ, self)
        started: list[Any] = []
        body = b"".join(super().__call__(environ, lambda *given: started.append(given)))
        [(status, headers)] = started
        reported = self._corrupt(Heard(status, headers, body))
        start_response(reported.status, reported.headers)
        return [reported.body]


def found(
    corrupt: Corruption = lambda heard: heard,
    before: Callable[[Any, Shop], None] = lambda environ, shop: None,
) -> str:
    """What is reported of a shop whose answers are changed so."""
    shop, report = BrokenShop(corrupt, before), Report()
    with loaded(shop, Plan(1, examples=10, scenarios=0), report) as schema:
        single_requests(schema.include(path=ROUTE), report)
    assert report.statuses
    return "\n".join(report.faults)


def with_status(wanted: str, reported: str) -> Corruption:
    return lambda heard: (
        attrs.evolve(heard, status=reported) if heard.status.startswith(wanted) else heard
    )


def without_header(name: str) -> Corruption:
    return lambda heard: attrs.evolve(
        heard, headers=[header for header in heard.headers if header[0].lower() != name]
    )


def as_text(heard: Heard) -> Heard:
    headers = dict(heard.headers) | {"content-type": "text/plain"}
    return attrs.evolve(heard, headers=list(headers.items()))


def with_a_number_for_an_id(heard: Heard) -> Heard:
    return attrs.evolve(heard, body=heard.body.replace(b'"accountId":"', b'"accountId":1,"was":"'))


def let_in(environ: Any, shop: Shop) -> None:
    environ["HTTP_AUTHORIZATION"] = shop.basic()


@pytest.mark.parametrize(
    ("corrupt", "check"),
    [
        (with_status("201", "500 Oh"), "not_a_server_error"),
        (with_status("201", "200 OK"), "status_code_conformance"),
        (with_status("400", "201 Made"), "negative_data_rejection"),
        (with_status("201", "400 Bad"), "refuses_only_for_a_reason"),
        (with_status("201", "406 No"), "positive_data_acceptance"),
        (with_status("405", "200 OK"), "unsupported_method"),
        (without_header("service-version"), "response_headers_conformance"),
        (without_header("allow"), "unsupported_method"),
        (as_text, "content_type_conformance"),
        (with_a_number_for_an_id, "response_schema_conformance"),
    ],
)
def test_an_answer_that_is_wrong_is_found(corrupt: Corruption, check: str) -> None:
    assert f" {check}: " in found(corrupt)


def test_a_credential_that_is_not_asked_for_is_found() -> None:
    assert " ignored_auth: " in found(before=let_in)


def test_an_honest_shop_is_left_alone() -> None:
    assert found() == ""
