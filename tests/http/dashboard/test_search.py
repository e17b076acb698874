"""The search of the dashboard: straight to the one thing that a text names, or a list."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from payments_core.search import MOST_FOUND
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.memory.transaction import MemorySnapshot
from payments_core.tenants.record import PRODUCTS
from tests.http.console import NEVER, Console
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser
from tests.http.pages.html import Html

WALLET = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console.api)


@pytest.fixture
def paid(console: Console) -> Any:
    """A Payment that was paid by a stranger, and refunded in part."""
    payment = console.create(reference="order-77").json
    console.transfer(payment["escrow"]["address"], "25")
    console.advance(60)
    body = {"amount": "4.00", "destination": WALLET}
    assert console.call("POST", f"/v2/payments/{payment['id']}/refunds", body, key="r").status < 300
    console.advance(60)
    return console.read(payment["id"])


def find(browser: OperatorBrowser, text: str) -> str | None:
    """Where the search leads; None if it lists."""
    return browser.get(f"/dashboard/search?q={quote(text)}").headers.get("location")


def list_found(browser: OperatorBrowser, text: str) -> list[str]:
    page = browser.open(f"/dashboard/search?q={quote(text)}")
    return [str(one["href"]) for one in page.all("a") if "_" in str(one["href"])]


def test_a_payment_is_found_by_all_that_people_have_of_it(
    browser: OperatorBrowser, paid: Any
) -> None:
    page = f"/dashboard/payments/{paid['id']}"
    [receipt], [refund] = paid["receipts"], paid["refunds"]
    names = {
        "id": paid["id"],
        "reference": "order-77",
        "escrow": paid["escrow"]["address"],
        "escrow, as explorers write it": paid["escrow"]["address"].lower(),
        "transaction of the payer": receipt["transactionHash"],
        "the same, as some wallets write it": "0x" + receipt["transactionHash"][2:].upper(),
        "transaction of the refund": refund["transactionHash"],
        "wallet that was refunded": WALLET,
        "refund": refund["id"],
        "receipt": receipt["id"],
    }
    assert {name: find(browser, f" {text} ") for name, text in names.items()} == dict.fromkeys(
        names, page
    )


def test_an_account_is_found_by_its_ids_and_its_wallet(
    console: Console, browser: OperatorBrowser
) -> None:
    body = {
        "externalUserId": "user-9",
        "subjectType": "individual",
        "wallets": [{"address": WALLET, "chainType": "evm"}],
    }
    made = console.call("POST", "/v2/accounts", body, key="a").json
    address = console.call(
        "POST", f"/v2/accounts/{made['id']}/deposit-addresses", {"chainId": 8453}, key="d"
    ).json
    page = f"/dashboard/accounts/{made['id']}"
    for text in (made["id"], "user-9", WALLET.lower(), address["address"]):
        assert find(browser, text) == page, text


def test_what_concerns_webhooks(console: Console, browser: OperatorBrowser) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = NEVER
    event = console.happen()
    console.run()
    delivery = console.delivery(endpoint, event)["id"]
    hook = f"/dashboard/webhooks/{endpoint['id']}"
    assert find(browser, endpoint["id"]) == hook
    assert find(browser, delivery) == f"{hook}/deliveries/{delivery}"
    assert find(browser, event) == f"/dashboard/events/{event}"


def test_several_are_listed(console: Console, browser: OperatorBrowser) -> None:
    made = [console.create(key=f"k{one}", reference="twice").json["id"] for one in range(2)]
    assert find(browser, "twice") is None
    assert sorted(list_found(browser, "twice")) == sorted(
        f"/dashboard/payments/{one}" for one in made
    )


@pytest.mark.parametrize(
    "text", ["", "nobody", "payment_" + "A" * 24, "0x" + "a" * 64, "0x" + "a" * 40, "a" * 600, "%"]
)
def test_what_nothing_has(browser: OperatorBrowser, text: str) -> None:
    assert list_found(browser, text) == []


def test_what_is_sought_is_shown_as_text(browser: OperatorBrowser) -> None:
    page = browser.open("/dashboard/search?q=%3Cb%3Ebold%3C%2Fb%3E")
    assert "Nothing here is named <b>bold</b>." in page.text
    [box] = [one for one in page.all("input") if one.get("name") == "q"]
    assert box["value"] == "<b>bold</b>"


def test_another_environment_finds_nothing_of_it(console: Console, paid: Any) -> None:
    other = console.api.service.tenants.create_app("Other", "other").environments["sandbox"]
    made = console.api.service.operators.create(other, "mallory")
    stranger = OperatorBrowser(console.api)
    stranger.log_in("mallory", made.password)
    for text in (
        paid["id"],
        "order-77",
        paid["escrow"]["address"],
        paid["receipts"][0]["transactionHash"],
        paid["refunds"][0]["transactionHash"],
    ):
        assert list_found(stranger, text) == [], text


def test_what_the_operator_may_not_open_is_not_found(
    console: Console, browser: OperatorBrowser, paid: Any
) -> None:
    tenants = console.api.service.tenants
    tenants.set_products(console.api.partition, [one for one in PRODUCTS if one != "payments"])
    assert list_found(browser, paid["id"]) == []


def test_a_search_is_a_few_queries_of_a_few_records(
    console: Console, browser: OperatorBrowser, paid: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    search, locate = MemorySnapshot.find, MemoryStorage.locate

    def watch_find(snapshot: Any, kind: Any, *args: Any, **more: Any) -> Any:
        asked.append(kind.collection.name)
        assert more["limit"] == MOST_FOUND
        return search(snapshot, kind, *args, **more)

    def watch_locate(storage: Any, kind: Any, *args: Any, **more: Any) -> Any:
        asked.append(kind.collection.name)
        return locate(storage, kind, *args, **more)

    monkeypatch.setattr(MemorySnapshot, "find", watch_find)
    monkeypatch.setattr(MemoryStorage, "locate", watch_locate)
    counts = {}
    for name, text in {
        "id": paid["id"],
        "reference": "order-77",
        "address": WALLET,
        "transaction": paid["receipts"][0]["transactionHash"],
    }.items():
        asked.clear()
        find(browser, text)
        counts[name] = len(asked)
    assert counts == {"id": 2, "reference": 2, "address": 6, "transaction": 10}


def test_it_is_in_the_head_of_each_page(browser: OperatorBrowser) -> None:
    seen = browser.get("/dashboard/keys")
    [form] = [one for one in Html(seen.body, "/dashboard/keys").all("form") if "role" in one]
    assert (form["role"], form["action"]) == ("search", "/dashboard/search")
