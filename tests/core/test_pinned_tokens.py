"""Records keep their token: those of earlier releases get it when they are read."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.deposits.record import Deposit
from payments_core.errors import UnsupportedAsset
from payments_core.networks import pin_token
from payments_core.onramps.record import BankTransaction, OnrampAccount
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.quotes.record import Quote
from payments_core.storage.records import Document, Record
from tests.shipped import token_of

NAMED = {"chain_id": 8453, "asset_symbol": "USDC"}
USDC = token_of(8453, "USDC")
PINNED = {**NAMED, "token_address": USDC.address, "decimals": 6}
DAI = token_of(8453, "DAI")


def upgrade(kind: type[Record], document: Document) -> Document:
    """A document of the release before tokens were kept."""
    upgrades = kind.collection.upgrades
    return upgrades[max(upgrades)](document)  # later schemas only add fields with defaults


@pytest.mark.parametrize("kind", [Payment, Refund, Mandate])
def test_a_record_that_named_its_token_keeps_it_now(kind: type[Record]) -> None:
    found = upgrade(kind, dict(NAMED))
    assert {name: found[name] for name in PINNED} == PINNED


def test_a_routed_payment_keeps_both_of_its_tokens() -> None:
    found = upgrade(Payment, {**NAMED, "route": {"chain_id": 137, "asset_symbol": "USDC"}})
    assert found["route"]["token_address"] == token_of(137, "USDC").address
    assert found["token_address"] == USDC.address
    assert upgrade(Payment, {**NAMED, "route": None})["route"] is None


@pytest.mark.parametrize("kind", [OnrampAccount, BankTransaction])
def test_the_destination_of_an_onramp_keeps_its_token(kind: type[Record]) -> None:
    assert upgrade(kind, {"destination": dict(NAMED)}) == {"destination": PINNED}


def test_a_quote_keeps_the_tokens_of_both_sides() -> None:
    sides: dict[str, Any] = {
        "source_chain_id": 1, "source_symbol": "USDT",
        "destination_chain_id": 8453, "destination_symbol": "USDC",
    }  # fmt: skip
    found = upgrade(Quote, sides)
    assert found["source_token_address"] == token_of(1, "USDT").address
    assert (found["destination_token_address"], found["destination_decimals"]) == (USDC.address, 6)


@pytest.mark.parametrize(("token", "is_misdirected"), [(USDC, False), (DAI, True)])
def test_a_deposit_keeps_whether_its_token_is_credited(token: Any, is_misdirected: bool) -> None:
    found = upgrade(Deposit, {"chain_id": 8453, "asset_symbol": token.symbol})
    assert (found["decimals"], found["is_misdirected"]) == (token.decimals, is_misdirected)


def test_a_receipt_keeps_a_token_that_was_known() -> None:
    row = {"chain_id": 8453, "token_address": DAI.address}
    assert upgrade(Receipt, row) == {**row, "asset_symbol": "DAI", "decimals": 18}
    unknown = {"chain_id": 8453, "token_address": "0xother"}
    assert upgrade(Receipt, unknown) == unknown


def test_a_document_of_a_token_that_was_never_shipped_is_damaged() -> None:
    with pytest.raises(UnsupportedAsset):
        pin_token({"chain_id": 8453, "asset_symbol": "NOTHING"})
