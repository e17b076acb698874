"""Accounts, payouts and on-ramps on the dashboard: what a person must see of each."""

from __future__ import annotations

import re
from typing import Any

import pytest

from payments_core.tenants.record import PRODUCTS
from tests.http.console import Console
from tests.http.dashboard.bank_business import BankBusiness, open_bank_business
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser

LIST, PAYOUTS, ONRAMPS = (f"/dashboard/{name}" for name in ("accounts", "payouts", "onramps"))


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console)


def texts(browser: OperatorBrowser, path: str) -> str:
    return re.sub(r"\s+", " ", browser.open(path).text)


def links(browser: OperatorBrowser, path: str, to: str) -> list[str]:
    """Where a page's links lead, below a path."""
    found = [str(one["href"]) for one in browser.open(path).all("a")]
    exported = f"{to}/export"
    return [one for one in found if one.startswith(f"{to}/") and not one.startswith(exported)]


class TestAccounts:
    def test_the_list_leads_to_an_account(self, console: Console, browser: OperatorBrowser) -> None:
        assert set(links(browser, LIST, LIST)) >= {
            f"{LIST}/{console.payer}",
            f"{LIST}/{console.merchant}",
        }
        assert "merchant@shop" in texts(browser, LIST)

    @pytest.mark.parametrize("name", ["id", "external", "address", "handle", "wallet"])
    def test_a_search_finds_one_by_any_of_its_names(
        self, console: Console, browser: OperatorBrowser, name: str
    ) -> None:
        wallet = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
        given = {"address": wallet, "chainType": "evm"}
        made = console.account("dan", username="dan_1", wallets=[given])
        search = {
            "id": made, "external": "dan", "address": "dan_1%40shop", "handle": "dan_1",
            "wallet": wallet.lower(),
        }[name]  # fmt: skip
        path = f"{LIST}?search={search}"
        if name == "external":
            assert links(browser, path, LIST) == [f"{LIST}/{made}"]
        else:
            assert browser.get(path).headers["location"] == f"{LIST}/{made}"

    def test_a_search_for_nobody_says_so(self, browser: OperatorBrowser) -> None:
        assert "No account has this name." in texts(browser, f"{LIST}?search=%3Cb%3Enobody")

    def test_an_account_shows_what_belongs_to_it(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        path = f"/v2/accounts/{console.payer}"
        address = console.call("POST", f"{path}/deposit-addresses", {"chainId": 8453}).json
        console.transfer(address["address"], "3.25")
        console.call("POST", f"{path}/verifications", {})
        page = texts(browser, f"{LIST}/{console.payer}")
        for shown in (console.payer, address["address"], "3.25 USDC on Base", "Pending", "payer"):
            assert shown in page
        for vault in console.call("GET", path).json["vaults"]:
            assert vault["address"] in page
        assert "office.invalid" not in page
        [deposit] = console.call("GET", f"{path}/deposits").json["data"]
        assert deposit["transactionHash"] in texts(browser, f"{LIST}/{console.payer}/deposits")
        other = "settled" if deposit["status"] != "settled" else "rejected"
        filtered = f"{LIST}/{console.payer}/deposits?status={other}"
        assert "There are none in this state." in texts(browser, filtered)

    def test_balances_are_read_when_they_are_asked_for(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        path = f"{LIST}/{console.payer}"
        assert "100.00 USDC" not in texts(browser, path)
        assert "100.00 USDC" in texts(browser, f"{path}?balances=now")
        assert "The vaults hold nothing." in texts(
            browser, f"{LIST}/{console.merchant}?balances=now"
        )
        body = {"dependency": "chain", "times": 10}
        assert console.call("POST", "/v2/sandbox/failures", body).status == 200
        assert "A network does not answer now." in texts(browser, f"{path}?balances=now")

    def test_products_that_are_off_are_left_out(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        tenants, id = console.api.service.tenants, console.api.partition
        tenants.set_products(id, ["accounts"])
        page = texts(browser, f"{LIST}/{console.payer}")
        assert "Vaults" in page
        for left_out in ("Deposit addresses", "Verifications", "Bank accounts", "Payments"):
            assert left_out not in page
        assert browser.get(f"{LIST}/{console.payer}/deposits").status == 403
        tenants.set_products(id, [one for one in PRODUCTS if one != "accounts"])
        assert browser.get(LIST).status == 403

    def test_nobody_elses_account_is_there(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        tenants = console.api.service.tenants
        other = tenants.create_app("Other", "other").environments["sandbox"]
        from payments_core import NewAccount

        made = console.api.service.environment(other).accounts.create(
            NewAccount(external_user_id="eve", subject_type="individual")
        )
        for path in ("", "/deposits"):
            assert browser.get(f"{LIST}/{made.account.id}{path}").status == 404
        assert "eve" not in texts(browser, LIST)

    def test_what_users_are_called_is_text(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        made = console.account("<b>eve</b>", metadata={"note": "</pre><script>"})
        for path in (LIST, f"{LIST}/{made}"):
            body = browser.get(path).body
            assert b"<b>eve" not in body
            assert b"</pre><script>" not in body


@pytest.fixture
def business(console: Console) -> BankBusiness:
    return open_bank_business(console)


class TestPayouts:
    def test_a_payout_from_the_bank_to_its_return(
        self, business: BankBusiness, browser: OperatorBrowser
    ) -> None:
        wallet = {"type": "wallet", "address": "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"}
        console: Any = business.checkout
        id = business.pay_out(reference="rent")
        body = {
            "intent": "send", "amount": "1.00", "destination": wallet,
            "source": {"type": "vault", "accountId": console.payer},
        }  # fmt: skip
        assert console.call("POST", "/v2/payments", body, key="wallet").status == 201
        path = f"{PAYOUTS}/{id}"
        assert links(browser, PAYOUTS, PAYOUTS) == [path]
        page = texts(browser, path)
        for shown in ("25.00 USDC Submitted", "The bank has accepted the payout.", "ACH"):
            assert shown in page
        assert f"/dashboard/payments/{id}" in links(browser, path, "/dashboard/payments")
        business.decide(id, outcome="return", code="R03")
        page = texts(browser, path)
        for shown in ("Returned", "R03 No account, or unable", "The bank returned the payout"):
            assert shown in page
        assert "payout_returned" not in page
        assert links(browser, f"{PAYOUTS}?status=returned", PAYOUTS) == [path]
        assert links(browser, f"{PAYOUTS}?status=settled", PAYOUTS) == []
        assert links(browser, f"{PAYOUTS}?to=2020-01-01", PAYOUTS) == []
        assert path in {one["href"] for one in browser.open(f"/dashboard/payments/{id}").all("a")}

    def test_a_payment_without_a_payout_leads_to_its_own_page(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        id = console.create().json["id"]
        seen = browser.get(f"{PAYOUTS}/{id}")
        assert (seen.status, seen.headers["location"]) == (303, f"/dashboard/payments/{id}")
        assert browser.get(f"{PAYOUTS}/payment_{'A' * 24}").status == 404


class TestOnramps:
    def test_a_transfer_from_the_bank_to_its_credit(
        self, business: BankBusiness, browser: OperatorBrowser
    ) -> None:
        id = business.receive()
        path = f"{ONRAMPS}/{id}"
        assert links(browser, ONRAMPS, ONRAMPS) == [path]
        assert "100.00 USD Received" in texts(browser, path)
        assert "No money has moved." not in texts(browser, path)
        for _ in range(4):
            business.checkout.advance(60)
        page = texts(browser, path)
        assert "100.00 USD Settled" in page
        for shown in ("Credit", "Settled2026", business.checkout.payer, business.onramp):
            assert shown in browser.get(path).body.decode() or shown in page
        assert links(browser, f"{ONRAMPS}?onramp={business.onramp}&status=settled", ONRAMPS) == [
            path
        ]
        assert links(browser, f"{ONRAMPS}?status=failed", ONRAMPS) == []
        assert "No transfer matches" in texts(
            browser, f"{ONRAMPS}?onramp=onramp_account_{'A' * 24}"
        )

    def test_no_account_number_is_shown(
        self, business: BankBusiness, browser: OperatorBrowser
    ) -> None:
        path = f"/v2/accounts/{business.checkout.payer}/onramp-bank-accounts/{business.onramp}"
        number = business.checkout.api.call("GET", f"{path}/deposit-instructions").json
        transfer = f"{ONRAMPS}/{business.receive()}"
        for page in (ONRAMPS, transfer, f"{LIST}/{business.checkout.payer}"):
            assert number["accountNumber"] not in browser.get(page).body.decode()

    def test_a_transfer_that_is_not_there(self, browser: OperatorBrowser) -> None:
        assert browser.get(f"{ONRAMPS}/bank_txn_{'A' * 24}").status == 404
        assert "No transfer has come yet." in texts(browser, ONRAMPS)
