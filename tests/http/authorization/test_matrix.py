"""Every route, with every kind of credential and everybody's objects, against the model."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pytest

from payments_core.contracts.versions import Versions
from payments_core_http.dashboard import routes as dashboard
from payments_core_http.observability import health
from payments_core_http.pages import routes as pages
from payments_core_http.reference import routes as reference
from payments_core_http.routes import ROUTES
from tests.http.authorization.matrix import BY_NAME, CROWDED, Fault, matrix
from tests.http.authorization.model import TABLE, Row
from tests.http.authorization.naming import NAMINGS, Naming, named
from tests.http.authorization.objects import BODIES

every_row = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
commits = pytest.mark.parametrize(
    "row",
    [row for row in TABLE if row.writes and not row.outside and row.caller != "nobody"],
    ids=lambda row: row.name,
)
NOT_ONCE = {
    "POST /v2/client/auth/exchange",
    "POST /v2/public/payment-links/{code}/exchange",
    "POST /pay/{code}",
    "POST /pay/{code}/pairing-code",
    "POST /sdk/v1/generate",
    "POST /sdk/v1/get-balance",
    "POST /sdk/v1/quote",
    "POST /sdk/v1/get-deposit-address",
    "POST /sdk/v1/verify-transfer",
    "POST /dashboard/login",
    "POST /dashboard/logout",
    "POST /v2/client-sessions",  # what it gave away is cut to the products wherever it is used
}
"""Writing rows that take no Idempotency-Key, as no DELETE does, or whose replay gives nothing."""

once = pytest.mark.parametrize(
    "row",
    [row for row in TABLE if row.method in ("POST", "PUT", "PATCH") and row.name not in NOT_ONCE],
    ids=lambda row: row.name,
)


def none(faults: Iterable[Fault]) -> None:
    found = [str(fault) for fault in faults]
    assert not found, f"{len(found)} cells:\n" + "\n".join(found[:40])


def test_the_model_has_every_route_and_no_other() -> None:
    every = (
        *health.ROUTES,
        *reference.build_routes(ROUTES, Versions()),
        *pages.ROUTES,
        *dashboard.ROUTES,
        *ROUTES,
    )
    served = {route.name for route in every}
    assert len(BY_NAME) == len(TABLE)
    assert served - BY_NAME.keys() == set(), "routes without a row in the model"
    assert BY_NAME.keys() - served == set(), "rows of the model without a route"
    assert BODIES.keys() - BY_NAME.keys() == set(), "bodies of no row"


@every_row
def test_each_credential_is_answered_as_the_documents_say(row: Row) -> None:
    none(matrix().by_credential(row))


@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.method == "GET"], ids=lambda row: row.name
)
def test_a_head_asks_for_what_a_get_asks_for(row: Row) -> None:
    for name in ("nothing", "a restricted key with nothing", matrix().right(row).name):
        got, headed = (
            matrix().send(attrs.evolve(row, method=method), matrix().credentials[name], CROWDED)
            for method in ("GET", "HEAD")
        )
        assert (headed.status, headed.headers.keys()) == (got.status, got.headers.keys())


@every_row
def test_a_process_of_the_other_mode_knows_nothing_of_this_one(row: Row) -> None:
    none(matrix().in_the_other_mode(row))


@every_row
def test_what_belongs_to_others_is_as_if_it_never_was(row: Row) -> None:
    none(matrix().by_owner(row))


def test_a_token_reads_the_payments_that_its_account_receives_or_pays() -> None:
    none(matrix().by_account(BY_NAME["GET /v2/client/me/payments/{paymentId}"]))


@every_row
def test_it_needs_its_products_and_no_other(row: Row) -> None:
    none(matrix().by_product(row))


@commits
def test_rights_that_are_taken_away_meanwhile_are_gone(row: Row) -> None:
    none(matrix().taken_away_meanwhile(row))


@once
def test_a_stored_answer_is_given_to_no_one_who_lost_the_right(row: Row) -> None:
    none(matrix().replayed(row))


@once
def test_a_stored_answer_is_given_to_no_one_else(row: Row) -> None:
    none(matrix().repeated(row))


@pytest.mark.parametrize("naming", NAMINGS, ids=lambda naming: naming.cell)
def test_an_id_in_a_body_or_a_query_reaches_nothing_of_others(naming: Naming) -> None:
    assert not list(named(matrix(), naming))


@once
def test_one_key_is_not_for_another_id_of_the_path(row: Row) -> None:
    none(matrix().under_one_key(row))
