"""Pages that cannot be given: wrong limits, and cursors that the list did not make (contract §1).

Every row of the route table that gives a list is asked; a new one is asked from its first day.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from payments_core.books.closing import DayClosing
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.tenants.record import PERMISSION_PRODUCTS
from payments_core_http.routes import ROUTES
from payments_core_http.routing import Route
from payments_core_http.wire.query import PageQuery
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout
from tests.http.shop_on_file import ShopOnFile

LISTS = {
    row.path: row
    for row in ROUTES
    if row.method == "GET" and isinstance(row.query, type) and issubclass(row.query, PageQuery)
}
WRONG_LIMITS = [
    "0", "101", "-1", "-0", "+5", "5.0", "1e1", "0x10", "05", "", " ", " 5", "5 ", "many", "null",
    "true", "[]", "\uff15", "\u0665", "5\n", "5\0", str(2**31), str(2**53), str(2**64), "9" * 1_999,
]  # fmt: skip


class Shop(ShopOnFile):
    """With three of everything that can be listed, and names for what stands in paths."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.payments = [
            self.create(key=f"k{n}", reference="r", expiresInSeconds=86_400).json for n in range(3)
        ]
        for payment in self.payments[:2]:
            for _ in range(3):
                self.option(payment)
        self.endpoints = [self.endpoint(f"https://h{n}.example/") for n in range(3)]
        vault = self.api.call("GET", f"/v2/accounts/{self.payer}").json["vaults"][0]
        self.names = {
            "accountId": self.payer,
            "paymentId": self.payments[0]["id"],
            "vaultId": vault["vaultId"],
            "webhookId": self.endpoints[0],
            "onrampBankAccountId": self.onramp(),
        }
        self.access = self.access_token("payer", *PERMISSION_PRODUCTS)
        DayClosing(self.api.service.parts.ports).run(self.api.partition)

    def endpoint(self, url: str) -> str:
        path = f"/v2/console/apps/{self.api.app_row.id}/environments/{self.api.partition}"
        seen = self.api.call("POST", f"{path}/webhooks", {"url": url})
        assert seen.status == 201, seen.body
        return str(seen.json["webhookEndpoint"]["id"])

    def onramp(self) -> str:
        """An on-ramp of the payer, who may have one."""
        account = f"/v2/accounts/{self.payer}"
        destination = {"type": "vault", "chainId": 8453, "assetSymbol": "USDC"}
        for path, body in (
            (f"/v2/sandbox/accounts/{self.payer}/kyc", {"status": "approved"}),
            (f"{account}/capability-activations", {"capability": "us_bank_funding"}),
            ("/v2/sandbox/run", {}),
            ("/v2/sandbox/clock", {"advanceSeconds": 60}),
            (f"{account}/onramp-bank-accounts", {"currency": "usd", "destination": destination}),
        ):
            seen = self.api.call("POST", path, body)
            assert seen.status < 300, seen.body
        return str(seen.json["id"])

    def get(self, row: Route, query: str, *, auth: str = "", **names: str) -> Seen:
        """A page of a list; ids of ours stand in its path unless others are named."""
        days = "from=2026-09-19&to=2026-09-20&" if row.path.startswith("/v2/reports/") else ""
        target = f"{row.path.format(**{**self.names, **names})}?{days}{query}"
        headers = {}
        if row.credential == "client_token":
            auth = auth or f"Bearer {self.access}"
        if row.with_payment_secret:
            [payment] = [p for p in self.payments if p["id"] in target]
            headers["X-Service-Payment-Secret"] = payment["clientSecret"]
        return self.api.call("GET", target, auth=auth, headers=headers)

    def cursor(self, path: str, query: str = "", **names: str) -> str:
        """Where the list goes on behind its first row."""
        seen = self.get(LISTS[path], f"limit=1&{query}".rstrip("&"), **names)
        assert seen.status == 200, seen.body
        return str(seen.json["nextCursor"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One for all: a refused page leaves no trace."""
    shop = Shop(tmp_path_factory.mktemp("cursors"))
    before = shop.rows()
    yield shop
    assert shop.rows() == before
    shop.close()


def refused(seen: Seen, *paths: str) -> None:
    assert (seen.status, seen.code) == (400, "validation_error"), seen.body
    assert set(seen.faults) >= set(paths)


every_list = pytest.mark.parametrize("path", LISTS)
PAYMENTS, ACCOUNTS, ENDPOINTS = "/v2/payments", "/v2/accounts", "/v2/console/webhooks"
OPTIONS = "/v2/client/me/payments/{paymentId}/options"
FULL = (PAYMENTS, ACCOUNTS, ENDPOINTS, OPTIONS)
"""Lists that have a second page here."""
every_full_list = pytest.mark.parametrize("path", FULL)


def test_the_lists_are_those_of_the_route_table() -> None:
    assert set(LISTS) >= {*FULL, "/v2/console/webhooks/{webhookId}/deliveries"}


@every_list
def test_a_wrong_limit_is_refused_by_every_list(shop: Shop, path: str) -> None:
    for limit in WRONG_LIMITS:
        refused(shop.get(LISTS[path], f"limit={quote(limit)}"), "limit")
    refused(shop.get(LISTS[path], "limit=1&limit=1"), "limit")
    refused(shop.get(LISTS[path], "limit"), "limit")
    refused(shop.get(LISTS[path], "Limit=1&page=2&offset=3"), "Limit", "page", "offset")


@every_list
def test_a_limit_of_1_to_100_is_kept_to(shop: Shop, path: str) -> None:
    for limit in (1, 2, 100):
        seen = shop.get(LISTS[path], f"limit={limit}")
        assert (seen.status, seen.json["limit"]) == (200, limit)
    assert shop.get(LISTS[path], "").json["limit"] == 50


@every_list
def test_what_was_never_a_cursor_is_refused_by_every_list(shop: Shop, path: str) -> None:
    position = base64.urlsafe_b64encode(json.dumps([0, "a"]).encode()).decode().rstrip("=")
    for cursor in (
        "", " ", "0", "1", "null", "undefined", "abc", "=", "====", "_", "\u00e9", "\0", "a b",
        position, "A" * 22 + position, "A" * 100, "A" * 2_000, "../../etc", "%", "'--", "{}",
    ):  # fmt: skip
        refused(shop.get(LISTS[path], f"cursor={quote(cursor)}"), "cursor")


@every_list
@pytest.mark.parametrize("length", [2_001, 60_000])
def test_a_huge_cursor_is_refused_by_its_length(shop: Shop, path: str, length: int) -> None:
    seen = shop.get(LISTS[path], "cursor=" + "A" * length)
    refused(seen, "cursor")
    assert len(seen.body) < 1_000


@every_list
def test_a_cursor_of_another_list_is_refused_by_every_list(shop: Shop, path: str) -> None:
    for other in FULL:
        if other != path:
            refused(shop.get(LISTS[path], f"cursor={shop.cursor(other)}"), "cursor")


@every_full_list
def test_a_list_goes_on_behind_its_cursor_at_any_limit(shop: Shop, path: str) -> None:
    cursor = shop.cursor(path)
    for limit in (1, 100):
        seen = shop.get(LISTS[path], f"limit={limit}&cursor={cursor}")
        assert seen.status == 200, seen.body
    refused(shop.get(LISTS[path], f"limit=0&cursor={cursor}"), "limit")
    refused(shop.get(LISTS[path], f"cursor={cursor}&cursor={cursor}"), "cursor")


@every_full_list
def test_a_changed_cursor_is_refused_wherever_it_was_changed(shop: Shop, path: str) -> None:
    cursor = shop.cursor(path)
    changed = [cursor[:place] for place in range(len(cursor))]
    changed += [cursor[place:] for place in range(1, len(cursor))]
    for place, character in enumerate(cursor):
        for other in {"A", "B", "_", character.swapcase()} - {character}:
            changed.append(cursor[:place] + other + cursor[place + 1 :])
    changed += [cursor + more for more in ("A", "AA", "AAAA", "=", "==", " ", "\n", ".", cursor)]
    changed += [cursor.upper(), cursor.lower(), cursor[::-1], f" {cursor}", f"={cursor}"]
    changed += [cursor.replace("-", "+").replace("_", "/") + "="]
    for text in changed:
        refused(shop.get(LISTS[path], f"cursor={quote(text)}"), "cursor")


def test_the_seal_of_one_cursor_does_not_fit_another(shop: Shop) -> None:
    first = shop.cursor(PAYMENTS)
    page = shop.get(LISTS[PAYMENTS], f"limit=1&cursor={first}").json
    one, two = (decoded(cursor) for cursor in (first, page["nextCursor"]))
    assert one[16:] != two[16:]
    for mixed in (one[:16] + two[16:], two[:16] + one[16:], one[16:], bytes(16) + one[16:]):
        refused(shop.get(LISTS[PAYMENTS], f"cursor={encoded(mixed)}"), "cursor")


def decoded(cursor: str) -> bytes:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


FILTERS = (
    "",
    "status=awaiting_payment",
    "intent=receive",
    "reference=r",
    "createdBefore=2990-01-01T00:00:00Z",
    "createdAfter=2020-01-01T00:00:00Z",
    "reference=r&intent=receive",
    "accountId={merchant}",
)


@pytest.mark.parametrize("own", FILTERS)
def test_a_cursor_is_good_under_its_own_filters_alone(shop: Shop, own: str) -> None:
    row, named = LISTS[PAYMENTS], own.format(merchant=shop.merchant)
    cursor = shop.cursor(PAYMENTS, named)
    assert shop.get(row, f"{named}&cursor={cursor}".lstrip("&")).status == 200
    for other in FILTERS:
        if other != own:
            query = f"{other.format(merchant=shop.merchant)}&cursor={cursor}".lstrip("&")
            refused(shop.get(row, query), "cursor")


def test_the_order_of_the_parameters_is_not_a_filter(shop: Shop) -> None:
    cursor = shop.cursor(PAYMENTS, "reference=r&intent=receive")
    seen = shop.get(LISTS[PAYMENTS], f"intent=receive&cursor={cursor}&limit=7&reference=r")
    assert seen.status == 200


def test_a_cursor_is_good_for_the_very_path_that_gave_it(shop: Shop) -> None:
    first, second = (payment["id"] for payment in shop.payments[:2])
    cursor = shop.cursor(OPTIONS, paymentId=first)
    assert shop.get(LISTS[OPTIONS], f"cursor={cursor}", paymentId=first).status == 200
    refused(shop.get(LISTS[OPTIONS], f"cursor={cursor}", paymentId=second), "cursor")


def test_a_cursor_is_good_for_the_account_that_it_was_given_to(tmp_path: Path) -> None:
    own = Shop(tmp_path)
    cursor = own.cursor(OPTIONS)
    auth = f"Bearer {own.access_token('merchant', *PERMISSION_PRODUCTS)}"
    refused(own.get(LISTS[OPTIONS], f"cursor={cursor}", auth=auth), "cursor")
    again = f"Bearer {own.access_token('payer')}"  # a new session of the same account
    assert own.get(LISTS[OPTIONS], f"cursor={cursor}", auth=again).status == 200
    own.close()


@pytest.mark.parametrize("path", [PAYMENTS, ACCOUNTS, ENDPOINTS])
def test_a_cursor_of_another_environment_is_refused(tmp_path: Path, path: str) -> None:
    own = Shop(tmp_path)
    cursor, row, tenants = own.cursor(path), LISTS[path], own.api.service.tenants
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
    auth = own.api.basic(secret, other.id)
    seen = own.get(row, f"cursor={cursor}", auth=auth)
    refused(seen, "cursor")
    made_up = own.get(row, f"cursor={cursor[:-4]}AAAA", auth=auth)
    assert seen.faults == made_up.faults  # nothing shows that it is good elsewhere
    _, rotated = tenants.create_key(own.api.partition, "standard", "rotated")
    assert own.get(row, f"cursor={cursor}", auth=own.api.basic(rotated)).status == 200
    own.close()


@pytest.mark.parametrize("path", [PAYMENTS, ACCOUNTS, ENDPOINTS])
def test_a_cursor_of_another_deployment_is_refused(shop: Shop, path: str) -> None:
    elsewhere = Checkout(MemoryStorage())
    seen: Any = elsewhere.api.call("GET", f"{path}?cursor={shop.cursor(path)}")
    refused(seen, "cursor")
