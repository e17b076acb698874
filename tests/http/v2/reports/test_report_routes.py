"""Reports over HTTP: the same rows as JSON and as CSV, with pages that fit together."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest

from payments_core.books.period import day_of
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout

REPORTS = ("balance", "transactions", "payouts")
DAY_S = 86_400


class Books:
    """A shop with two paid Payments, whose days are closed."""

    def __init__(self) -> None:
        self.checkout = Checkout(MemoryStorage())
        for number in range(2):
            made = self.checkout.create(key=f"order-{number}", reference=f"=order {number}").json
            self.checkout.transfer(made["escrow"]["address"], "25.00")
        self.checkout.advance(DAY_S)
        self.checkout.advance(DAY_S)
        end = day_of(self.checkout.clock.now())
        self.period = f"from={end - timedelta(days=3)}&to={end}"

    def get(self, report: str, query: str = "", **more: Any) -> Seen:
        return self.checkout.api.call("GET", f"/v2/reports/{report}?{self.period}{query}", **more)

    def read(self, report: str, query: str = "") -> Any:
        seen = self.get(report, query)
        assert seen.status == 200, seen.body
        return seen.json


@pytest.fixture(scope="module")
def books() -> Books:
    return Books()


def table(seen: Seen) -> list[dict[str, str]]:
    assert seen.status == 200, seen.body
    return list(csv.DictReader(io.StringIO(seen.body.decode(), newline="")))


def test_the_movements_of_a_day_are_the_difference_of_its_balances(books: Books) -> None:
    rows = books.read("balance", "&limit=100")["data"]
    movements = books.read("transactions", "&limit=100")["data"]
    assert [one["cause"] for one in movements] == ["receipt", "release"] * 2
    for row in rows:
        moved = sum(
            int(one["postings"].get(row["account"], 0))
            for one in movements
            if one["date"] == row["date"]
        )
        assert int(row["closingAtomic"]) - int(row["openingAtomic"]) == moved
        assert int(row["gainedAtomic"]) - int(row["lostAtomic"]) == moved
    last = {row["account"]: row["closing"] for row in rows if row["date"] == rows[-1]["date"]}
    assert last == {"payer": "-50.00", "recipient": "50.00"}
    assert movements[0]["amount"] == "25.00"
    assert movements[0]["transactionHash"].startswith("0x")


@pytest.mark.parametrize("report", REPORTS)
def test_a_page_of_csv_has_the_rows_of_the_page_of_json(books: Books, report: str) -> None:
    rows = books.read(report, "&limit=3")["data"]
    seen = books.get(report, "&limit=3&format=csv")
    assert seen.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert seen.headers["content-disposition"].startswith(f'attachment; filename="{report}-20')
    assert seen.headers["cache-control"] == "no-store"
    found = table(seen)
    assert len(found) == len(rows)
    for line, row in zip(found, rows, strict=True):
        for name, value in row.items():
            if name == "postings":
                assert value == {k: line[k] for k in value}
            elif name == "reference" and value is not None:
                assert line[name] == f"'{value}"  # it begins like a formula
            else:
                assert line[name] == ("" if value is None else str(value))


def test_a_link_leads_through_all_pages_of_csv(books: Books) -> None:
    whole = table(books.get("balance", "&limit=100&format=csv"))
    found: list[dict[str, str]] = []
    path = f"/v2/reports/balance?{books.period}&format=csv&limit=3"
    while True:
        seen = books.checkout.api.call("GET", path)
        found += table(seen)
        link = seen.headers.get("link")
        if link is None:
            break
        target, _, relation = link.partition(">")
        assert relation == '; rel="next"'
        path = f"/v2/reports/balance{target.removeprefix('<')}"
    assert found == whole
    assert len(found) > 3


def test_a_cursor_belongs_to_its_period(books: Books) -> None:
    cursor = books.read("balance", "&limit=1")["nextCursor"]
    assert books.get("transactions", f"&cursor={cursor}").status == 400
    other = books.checkout.api.call(
        "GET", f"/v2/reports/balance?from=2026-01-01&to=2026-02-01&cursor={cursor}"
    )
    assert other.status == 400


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("", ["from", "to"]),
        ("from=2026-09-01&to=tomorrow", ["to"]),
        ("from=2026-02-30&to=2026-03-01", ["from"]),
        ("from=2026-09-02&to=2026-09-01", ["to"]),
        ("from=2026-09-02&to=2999-09-01", ["to"]),
        ("from=2026-09-01&to=2026-09-02&format=xml", ["format"]),
        ("from=2026-09-01&to=2026-09-02&limit=101", ["limit"]),
    ],
)
@pytest.mark.parametrize("report", REPORTS)
def test_each_fault_of_a_query_is_named(
    books: Books, report: str, query: str, paths: list[str]
) -> None:
    seen = books.checkout.api.call("GET", f"/v2/reports/{report}?{query}")
    assert (seen.status, seen.json["error"]["code"]) == (400, "validation_error")
    assert sorted(one["path"] for one in seen.json["error"]["details"]["fields"]) == paths
