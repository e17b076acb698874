"""Invalid amounts and assets, through the real routes: refused by name, and not kept.

A request is refused alike by every route that takes an amount; what is in the database after it
is, byte for byte, what was there before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from payments_core.money import MAX_ATOMIC, format_amount
from tests.http.api_harness import Seen
from tests.http.checkout import BASE
from tests.http.shop_on_file import ShopOnFile

SHOP = "0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201032"
TOO_MUCH = format_amount(MAX_ATOMIC + 1, 6)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShopOnFile]:
    """One for all: what is refused leaves no trace for the next."""
    shop = ShopOnFile(tmp_path_factory.mktemp("amounts"))
    yield shop
    shop.close()


def payment(shop: ShopOnFile, fields: str) -> Seen:
    """A Payment with these fields, as they are written in JSON."""
    to = json.dumps({"type": "account", "accountId": shop.merchant})
    raw = f'{{"intent": "receive", "destination": {to}, {fields}}}'
    return shop.api.call("POST", "/v2/payments", raw=raw.encode(), key="payment")


def funding(shop: ShopOnFile, fields: str, key: str = "fund") -> Seen:
    """A credit of the sandbox's faucet with these fields."""
    path = f"/v2/sandbox/accounts/{shop.merchant}/fund"
    return shop.api.call("POST", path, raw=f"{{{fields}}}".encode(), key=key)


def transfer(shop: ShopOnFile, fields: str) -> Seen:
    """A stranger's transfer of new tokens with these fields."""
    raw = f'{{"to": "{SHOP}", {fields}}}'
    return shop.api.call("POST", "/v2/sandbox/transfers", raw=raw.encode(), key="transfer")


ROUTES: dict[str, Callable[[ShopOnFile, str], Seen]] = {
    "POST /v2/payments": payment,
    "POST /v2/sandbox/accounts/{accountId}/fund": funding,
    "POST /v2/sandbox/transfers": transfer,
}
every_route = pytest.mark.parametrize("route", ROUTES)


def refused(shop: ShopOnFile, route: str, **fields: str) -> Seen:
    """The refusal of a request whose fields are JSON texts; it must have stored nothing."""
    given = {"amount": '"1.00"', "chainId": str(BASE), "assetSymbol": '"USDC"', **fields}
    sent = ", ".join(f'"{name}": {text}' for name, text in given.items() if text)
    before = shop.rows()
    seen = ROUTES[route](shop, sent)
    assert seen.status >= 400, seen.body
    assert shop.rows() == before
    return seen


MALFORMED = {
    "exponents": ["1e3", "1E3", "1e-3", "1.5e3", "1e+3", "1e"],
    "signs": ["-1", "+1", "-0", "+0", "-0.00", "--1", "\u22121", "1-", "(1)"],
    "leading zeros": ["00", "01", "007", "00.1", "01.00", "0001.5"],
    "points": [".5", "1.", ".", "1..5", "1.2.3", "0."],
    "blanks": ["", " ", " 1", "1 ", "1 .5", "\t1", "1\n", "1\r\n", "\u00a01", "1\u2009", "\ufeff1"],
    "separators": ["1,000", "1_000", "1'000", "1 000", "1,5", "1\u202f000", "1.000.00", "1\u066b5"],
    "other digits": ["\uff11", "\u0661", "1.\u0665", "\u00b2", "\u2460", "\u00bd", "\U0001d7d9"],
    "names": ["NaN", "nan", "Infinity", "inf", "-Infinity", "null", "true", "one"],
    "other bases": ["0x10", "0b1", "0o7", "1/2", "50%", "1f", "1L"],
    "currencies": ["$1", "1 USDC", "1USDC", "USDC 1", "\u20ac1"],
    "control characters": ["1\0", "\x001", "1\x7f", "1\u200b", "\u202e1"],
    "too many decimals": ["1.0000001", "0.0000001", "0.0000000", "1.0000000", "1." + "0" * 60],
    "too long a text": ["9" * 81, "1" * 10_000, "1." + "0" * 79],
}  # fmt: skip


@every_route
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_text_that_is_not_an_amount_is_refused_by_name(
    shop: ShopOnFile, route: str, kind: str
) -> None:
    for text in MALFORMED[kind]:
        seen = refused(shop, route, amount=json.dumps(text))
        assert (seen.status, seen.code) == (400, "validation_error"), text
        assert list(seen.faults) == ["amount"], text


@every_route
@pytest.mark.parametrize(
    "text",
    [
        "25", "25.00", "0", "-1", "1e3", "0.1", "1E400", "9" * 78, "true", "false", "null", "[]",
        '["1"]', "{}", '{"value": "1"}', r'"\ud800"', r'"1\ud800"',
    ],
)  # fmt: skip
def test_an_amount_is_a_string_and_no_number_of_json(
    shop: ShopOnFile, route: str, text: str
) -> None:
    seen = refused(shop, route, amount=text)
    assert (seen.status, seen.code) == (400, "validation_error")
    assert list(seen.faults) == ["amount"]


@every_route
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x1"])
def test_what_json_does_not_know_is_not_json(shop: ShopOnFile, route: str, text: str) -> None:
    seen = refused(shop, route, amount=text)
    assert (seen.status, seen.code) == (400, "invalid_json")


@every_route
def test_an_amount_is_needed_and_given_once(shop: ShopOnFile, route: str) -> None:
    seen = refused(shop, route, amount="")
    assert (seen.status, seen.faults) == (400, {"amount": "is required"})
    seen = refused(shop, route, amount='"1.00", "amount": "2.00"')
    assert (seen.status, seen.code) == (400, "invalid_json")
    seen = refused(shop, route, amount='"1.00", "Amount": "2.00", "amountAtomic": "1"')
    assert (seen.status, list(seen.faults)) == (400, ["Amount", "amountAtomic"])


@every_route
@pytest.mark.parametrize(
    "text", [TOO_MUCH, "9" * 72, "1" + "0" * 72, "9" * 73, "9" * 78, "9" * 79, "9" * 80]
)
def test_more_than_any_token_carries_is_well_formed_and_out_of_range(
    shop: ShopOnFile, route: str, text: str
) -> None:
    seen = refused(shop, route, amount=json.dumps(text))
    assert (seen.status, seen.code) == (422, "amount_out_of_range")


@pytest.mark.parametrize("route", list(ROUTES)[:2])  # a stranger may transfer nothing
@pytest.mark.parametrize("text", ["0", "0.0", "0.00", "0.000000"])
def test_zero_is_well_formed_and_out_of_range(shop: ShopOnFile, route: str, text: str) -> None:
    seen = refused(shop, route, amount=json.dumps(text))
    assert (seen.status, seen.code) == (422, "amount_out_of_range")


@pytest.mark.parametrize(
    ("route", "symbol"),
    [
        (route, symbol)
        for route in ROUTES
        for symbol in ("USDT", "EURC", "usdc", "USDC ", "ETH", "\uff35SDC")
        # A sandbox's payer can send the tokens of the watch list, and the chain's own coin.
        if not (route.endswith("/transfers") and symbol in ("USDT", "ETH"))
    ],
)
def test_an_asset_that_the_chain_lacks_is_unsupported(
    shop: ShopOnFile, route: str, symbol: str
) -> None:
    seen = refused(shop, route, assetSymbol=json.dumps(symbol))
    assert (seen.status, seen.code) == (422, "unsupported_asset")
    details = seen.json["error"]["details"]
    assert (details["chainId"], details["symbol"]) == (BASE, symbol)


@every_route
@pytest.mark.parametrize("chain_id", [5, 2, 11_155_111, 2**53 - 1])
def test_an_unknown_chain_is_unsupported(shop: ShopOnFile, route: str, chain_id: int) -> None:
    seen = refused(shop, route, chainId=str(chain_id))
    assert (seen.status, seen.code) == (422, "unsupported_chain")
    assert seen.json["error"]["details"]["chainId"] == chain_id


@every_route
@pytest.mark.parametrize(
    "text",
    [
        '"8453"', "8453.0", "8453.5", "8.453e3", "0", "-1", "true", "[]", '""', str(2**53),
        str(8453 + 2**64),
    ],
)  # fmt: skip
def test_a_chain_id_is_a_whole_number_of_json(shop: ShopOnFile, route: str, text: str) -> None:
    seen = refused(shop, route, chainId=text)
    assert (seen.status, seen.code) == (400, "validation_error")
    assert list(seen.faults) == ["chainId"]


@every_route
@pytest.mark.parametrize("text", ['""', '"' + "A" * 17 + '"', "1", "true", "[]", r'"US\u0000DC"'])
def test_an_asset_symbol_is_a_short_text(shop: ShopOnFile, route: str, text: str) -> None:
    seen = refused(shop, route, assetSymbol=text)
    assert (seen.status, list(seen.faults)) == (400, ["assetSymbol"])


@every_route
def test_all_faults_are_reported_at_once(shop: ShopOnFile, route: str) -> None:
    seen = refused(
        shop, route, amount="1.5", chainId='"8453"', assetSymbol='""', amountAtomic='"1"'
    )
    assert (seen.status, seen.code) == (400, "validation_error")
    assert set(seen.faults) == {"amount", "chainId", "assetSymbol", "amountAtomic"}


@pytest.mark.parametrize(
    ("text", "amount_atomic"),
    [
        ("1.00", 1_000_000),
        ("0.10", 100_000),
        ("0.000001", 1),
        ("123456789012345678901234567890.123456", 123456789012345678901234567890123456),
        ("1" + "0" * 71 + ".00", 10**77),
    ],
)
def test_a_good_amount_is_kept_to_the_last_digit(
    tmp_path: Path, text: str, amount_atomic: int
) -> None:
    shop = ShopOnFile(tmp_path)
    for route in (payment, funding):
        seen = route(shop, f'"amount": "{text}", "chainId": {BASE}, "assetSymbol": "USDC"')
        assert seen.status < 300, seen.body
        assert (seen.json["amount"], seen.json["amountAtomic"]) == (text, str(amount_atomic))
    shop.close()


@every_route
def test_the_key_of_a_refusal_is_free_for_the_corrected_request(tmp_path: Path, route: str) -> None:
    shop = ShopOnFile(tmp_path)
    before = shop.rows()
    for amount, status in (
        ('"1e3"', 400), (f'"{TOO_MUCH}"', 422), ("1", 400), ('"1.00"', 0)
    ):  # fmt: skip
        fields = f'"amount": {amount}, "chainId": {BASE}, "assetSymbol": "USDC"'
        seen = ROUTES[route](shop, fields)
        assert seen.status == status or not status
        assert (shop.rows() == before) == bool(status)
    assert seen.status < 300, seen.body
    assert "idempotent-replayed" not in seen.headers
    shop.close()


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("1e3", 400, "validation_error"),
        ("1.0000001", 400, "validation_error"),
        ("0.00", 422, "amount_out_of_range"),
        (TOO_MUCH, 422, "amount_out_of_range"),
        ("9" * 80, 422, "amount_out_of_range"),
    ],
)
def test_sends_collects_mandates_and_refunds_read_amounts_alike(
    tmp_path: Path, text: str, status: int, code: str
) -> None:
    shop = ShopOnFile(tmp_path)
    call, account = shop.api.call, f"/v2/accounts/{shop.payer}"
    [vault] = [v for v in call("GET", f"{account}/vaults").json["data"] if v["chainId"] == BASE]
    mandate = {"vaultId": vault["vaultId"], "period": "day", "amountPerPeriod": "5"}
    mandate_id = call("POST", f"{account}/mandates", mandate).json["id"]
    to = {"type": "wallet", "address": SHOP}
    source = {"type": "vault", "accountId": shop.payer}
    paid_id = shop.create(key="paid").json["id"]
    before = shop.rows()
    for path, field, more in (
        ("/v2/payments", "amount", {"intent": "send", "source": source, "destination": to}),
        (
            "/v2/payments",
            "amount",
            {"intent": "collect", "mandateId": mandate_id, "destination": to},
        ),
        (f"{account}/mandates", "amountPerPeriod", mandate),
        (f"/v2/payments/{paid_id}/refunds", "amount", {}),
    ):
        seen = call("POST", path, {**more, field: text}, key="k")
        assert (seen.status, seen.code) == (status, code), (path, seen.body)
        assert status == 422 or list(seen.faults) == [field]
    assert shop.rows() == before
    shop.close()


@pytest.mark.parametrize("field", ["perPaymentLimit", "dailyLimit"])
@pytest.mark.parametrize("text", [TOO_MUCH, "9" * 80])
def test_a_limit_of_more_than_any_token_carries_is_refused_by_name(
    shop: ShopOnFile, field: str, text: str
) -> None:
    account = f"/v2/accounts/{shop.payer}"
    vault_id = shop.api.call("GET", f"{account}/vaults").json["data"][0]["vaultId"]
    body = {"status": "active", field: text}
    seen = shop.api.call("PUT", f"{account}/vaults/{vault_id}/policy", body)
    assert (seen.status, seen.faults) == (400, {field: "is larger than any token supports"})


def test_the_faucet_gives_out_what_a_token_can_carry_and_no_more(tmp_path: Path) -> None:
    shop = ShopOnFile(tmp_path)
    on_base = f'"chainId": {BASE}, "assetSymbol": "USDC"'
    rest = MAX_ATOMIC - 100_000_000
    assert funding(shop, f'"amount": "{format_amount(rest, 6)}", {on_base}').status == 200
    before = shop.rows()
    for refusal in (
        funding(shop, f'"amount": "0.000001", {on_base}', key="one more"),
        transfer(shop, f'"amount": "0.000001", {on_base}'),
    ):
        assert (refusal.status, refusal.code) == (422, "amount_out_of_range")
    assert shop.rows() == before
    balances = shop.api.call("GET", f"/v2/accounts/{shop.merchant}/balances").json["balances"]
    [row] = [row for row in balances if row["chainId"] == BASE]
    assert row["totalAtomic"] == str(rest)
    elsewhere = '"amount": "1", "chainId": 137, "assetSymbol": "USDC"'
    assert funding(shop, elsewhere, key="elsewhere").status == 200
    shop.close()
