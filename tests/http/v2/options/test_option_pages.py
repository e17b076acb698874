"""The list of a payer's options, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import Checkout


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def offered(checkout: Checkout, count: int, key: str = "create") -> tuple[Any, list[str]]:
    """A Payment and the ids of its options, oldest first."""
    payment = checkout.create(key=key).json
    return payment, [checkout.option(payment)["id"] for _ in range(count)]


def page(checkout: Checkout, payment: Any, query: str = "") -> Any:
    seen = checkout.pay(payment, query, method="GET")
    assert seen.status == 200, seen.body
    return seen.json


def ids(listed: Any) -> list[str]:
    return [item["option"]["id"] for item in listed["data"]]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_limit_and_cursor_lead_through_all_options_once(checkout: Checkout, limit: int) -> None:
    payment, made = offered(checkout, 5)
    found, query = list[str](), f"?limit={limit}"
    while len(found) < len(made):
        listed = page(checkout, payment, query)
        assert listed["limit"] == limit
        assert len(ids(listed)) <= limit
        assert listed["hasNextPage"] == (listed["nextCursor"] is not None)
        found += ids(listed)
        assert listed["hasNextPage"] == (len(found) < len(made))
        query = f"?limit={limit}&cursor={listed['nextCursor']}"
    assert found == made


def test_without_a_limit_one_page_holds_them_all(checkout: Checkout) -> None:
    payment, made = offered(checkout, 10)
    listed = page(checkout, payment)
    assert ids(listed) == made
    assert (listed["hasNextPage"], listed["nextCursor"]) == (False, None)


def test_the_limit_may_change_on_the_way(checkout: Checkout) -> None:
    payment, made = offered(checkout, 5)
    cursor = page(checkout, payment, "?limit=2")["nextCursor"]
    assert ids(page(checkout, payment, f"?limit=1&cursor={cursor}")) == made[2:3]
    assert ids(page(checkout, payment, f"?cursor={cursor}")) == made[2:]


def test_a_foreign_cursor_is_refused(checkout: Checkout) -> None:
    payment, _ = offered(checkout, 2)
    other, _ = offered(checkout, 2, key="other")
    of_another_payment = page(checkout, other, "?limit=1")["nextCursor"]
    of_another_list = checkout.api.call("GET", "/v2/payments?limit=1").json["nextCursor"]
    own = page(checkout, payment, "?limit=1")["nextCursor"]
    for cursor in (of_another_payment, of_another_list, own[:-1], "1", "WzFd"):
        seen = checkout.pay(payment, f"?cursor={cursor}", method="GET")
        assert (seen.status, seen.code) == (400, "validation_error")
        assert list(seen.faults) == ["cursor"]
    assert page(checkout, payment, f"?cursor={own}")["data"]
