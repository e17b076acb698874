"""Lists as CSV files: the same rows as the list, safe in a spreadsheet, of any length."""

from __future__ import annotations

import csv
import io
import tracemalloc
from typing import Any

import attrs
import pytest

from payments_core import NewAccount
from payments_core.csv_text import iter_csv
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.policies import ROUTE_POLICIES
from payments_core_http.app import create_app
from payments_core_http.dashboard import exports
from payments_core_http.dashboard import payments as dashboard_payments
from payments_core_http.dashboard.routes import ROUTES
from payments_core_http.throttling import Throttle
from tests.http.console import Console
from tests.http.dashboard.bank_business import open_bank_business
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console)


def rows(browser: OperatorBrowser, path: str) -> list[dict[str, str]]:
    """The rows of a file by their columns."""
    seen = browser.get(path)
    assert seen.status == 200, seen.body
    assert seen.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    return list(csv.DictReader(io.StringIO(seen.body.decode(), newline="")))


class TestRows:
    def test_an_export_has_what_its_list_shows_under_the_same_filters(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        kept = console.create("1.50", key="a", reference="order-1").json
        gone = console.create("2.50", key="b", reference="order-2").json
        console.call("POST", f"/v2/payments/{gone['id']}/cancel")
        page = browser.open("/dashboard/payments?status=cancelled")
        [link] = [str(one["href"]) for one in page.all("a") if "download" in one]
        assert link == "/dashboard/payments/export?status=cancelled"
        [row] = rows(browser, link)
        assert (row["id"], row["amount"], row["status"]) == (gone["id"], "2.50", "cancelled")
        assert {one["id"] for one in rows(browser, "/dashboard/payments/export")} == {
            kept["id"],
            gone["id"],
        }
        [found] = rows(browser, "/dashboard/payments/export?search=order-1")
        assert found["reference"] == "order-1"

    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", " =", "＝"])
    def test_no_cell_is_a_formula(
        self, console: Console, browser: OperatorBrowser, start: str
    ) -> None:
        console.create(reference=f'{start}HYPERLINK("https://evil.example")')
        [row] = rows(browser, "/dashboard/payments/export")
        assert row["reference"].startswith("'")
        assert row["reference"].endswith(f'{start}HYPERLINK("https://evil.example")')

    def test_what_belongs_to_banks(self, console: Console, browser: OperatorBrowser) -> None:
        business = open_bank_business(console)
        payout, transfer = business.pay_out(), business.receive()
        [row] = rows(browser, "/dashboard/payouts/export?status=submitted")
        assert (row["paymentId"], row["amount"], row["rail"]) == (payout, "25.00", "ach")
        [row] = rows(browser, f"/dashboard/onramps/export?onramp={business.onramp}")
        assert (row["id"], row["amount"], row["currency"]) == (transfer, "100.00", "usd")
        path = f"/dashboard/accounts/{console.payer}/deposits/export"
        assert rows(browser, path) == []
        found = {row["id"]: row for row in rows(browser, "/dashboard/accounts/export")}
        assert found[console.payer]["kycStatus"] == "approved"

    def test_what_is_for_developers(self, console: Console, browser: OperatorBrowser) -> None:
        endpoint = console.endpoint()
        event = console.happen()
        console.run()
        [row] = rows(browser, f"/dashboard/webhooks/{endpoint['id']}/export?status=delivered")
        assert (row["outboxEventId"], row["responseStatus"]) == (event, "200")
        [row] = rows(browser, "/dashboard/events/export?name=account.created")[:1]
        assert row["name"] == "account.created"
        assert rows(browser, "/dashboard/requests/export") == []
        made = console.create().json
        [row] = rows(browser, "/dashboard/links/export?status=awaiting_payment")
        assert (row["id"], row["paymentUrl"]) == (made["id"], made["paymentUrl"])

    def test_a_file_has_a_name_and_no_secret(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        console.create()
        seen = browser.get("/dashboard/payments/export")
        day = "2026-09-21"
        assert seen.headers["content-disposition"] == f'attachment; filename="payments-{day}.csv"'
        assert seen.headers["cache-control"] == "no-store"
        assert b"_secret_" not in seen.body


class TestBounds:
    def test_a_long_list_is_read_by_pages_in_constant_memory(
        self, console: Console, browser: OperatorBrowser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exports, "_PAGE_SIZE", 20)
        shop = console.api.service.environment(console.api.partition)
        for number in range(130):
            new = NewAccount(external_user_id=f"user {number}", subject_type="individual")
            shop.accounts.create(new)
        asked: list[int] = []
        storage: Any = console.api.service.parts.ports.storage
        read = storage.read

        def count(partition: str, load: Any) -> Any:
            asked.append(1)
            return read(partition, load)

        monkeypatch.setattr(storage, "read", count)
        found = rows(browser, "/dashboard/accounts/export")
        stored = {row["id"] for row in found}
        assert len(found) == len(stored) >= 132
        assert {row["externalUserId"] for row in found} >= {f"user {it}" for it in range(130)}
        assert 7 <= len(asked) <= 12, "a statement for each page of records"

    def test_it_ends_at_the_most_rows(
        self, console: Console, browser: OperatorBrowser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exports, "MAX_ROWS", 3)
        monkeypatch.setattr(exports, "_PAGE_SIZE", 2)
        for number in range(5):
            console.account(f"user {number}")
        assert len(rows(browser, "/dashboard/accounts/export")) == 3

    def test_nothing_is_made_before_it_is_sent(self) -> None:
        """A table of many rows takes no more memory than one of a few."""
        peaks = []
        for count in (1_000, 20_000):
            tracemalloc.start()
            table = iter_csv(("a", "b"), ((number, "x" * 50) for number in range(count)))
            sizes = [len(piece) for piece in table]
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert sum(sizes) > 50 * count
        assert peaks[1] < 2 * peaks[0]

    def test_exports_of_an_environment_are_counted(self, console: Console) -> None:
        browser, api = open_browser(console), console.api
        throttle = Throttle(MemoryLimiter(), clock=console.clock)
        api.validated = create_app(api.service, mode="sandbox", throttle=throttle)
        most = ROUTE_POLICIES["operator_export"].limit
        statuses = [browser.get("/dashboard/payments/export").status for _ in range(most + 1)]
        assert statuses == [200] * most + [429]
        assert browser.get("/dashboard/payments").status == 200, "pages are counted apart"

    def test_an_environment_has_one_at_a_time(
        self, console: Console, browser: OperatorBrowser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        console.create()
        seen: list[int] = []

        payments = dashboard_payments._PAYMENTS

        def read_meanwhile(*given: Any) -> Any:
            seen.append(browser.get("/dashboard/events/export").status)
            return payments.read(*given)

        busy = attrs.evolve(payments, read=read_meanwhile)
        monkeypatch.setattr(dashboard_payments, "_PAYMENTS", busy)
        assert len(rows(browser, "/dashboard/payments/export")) == 1
        assert seen == [409]
        assert browser.get("/dashboard/events/export").status == 200

    def test_a_file_that_is_not_sent_keeps_no_place(
        self, console: Console, browser: OperatorBrowser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, payments = "/dashboard/payments/export", dashboard_payments._PAYMENTS
        console.create()
        assert browser.send("HEAD", path).status == 200
        assert browser.get(f"{path}?from=yesterday").status == 400

        def fail(payment: Any) -> str:
            raise OSError("gone")

        broken = attrs.evolve(payments, columns={"id": fail})
        monkeypatch.setattr(dashboard_payments, "_PAYMENTS", broken)
        with pytest.raises(OSError, match="gone"):
            browser.get(path)
        monkeypatch.undo()
        assert browser.get(path).status == 200

    def test_every_export_has_the_right_of_its_list(self) -> None:
        by_path = {row.path: row for row in ROUTES if row.method == "GET"}
        found = {path: row for path, row in by_path.items() if path.endswith("/export")}
        assert len(found) == 9
        for path, row in found.items():
            assert row.needs == by_path[path.removesuffix("/export")].needs
            assert row.policy == "operator_export"

    def test_a_wrong_filter_is_a_page_and_no_file(self, browser: OperatorBrowser) -> None:
        for wrong in ("from=yesterday", "to=9999-12-31"):
            seen = browser.get(f"/dashboard/payments/export?{wrong}")
            assert seen.status == 400
            assert seen.headers["content-type"].startswith("text/html")

    def test_without_a_session_there_is_none(self, console: Console) -> None:
        seen = OperatorBrowser(console.api).get("/dashboard/payments/export")
        assert seen.status == 401
