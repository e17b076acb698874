"""The library refuses what HTTP refuses, by the same names, and stores nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_core.accounts.new_wallets import NewWallet
from payments_core.accounts.operations import NewAccount
from payments_core.accounts.record import Settlement
from payments_core.errors import ValidationFailed
from payments_core.payments.checkout.public import NewPublicPayment
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount, ToPaymentAddress, ToWallet
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.operations import NewPayment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.sends import NewSend
from payments_core.validation.readers import PYTHON
from tests.service.world import WALLET, World

LONG = "x" * 600

PAYMENT = NewPayment(amount="1", destination=ToAccount(account_id="acct_1"))
SEND = NewSend(amount="1", account_id="acct_1", destination=ToWallet(address=WALLET))
COLLECT = NewCollect(amount="1", mandate_id="mandate_1", destination=ToAccount(account_id="a"))
ACCOUNT = NewAccount(external_user_id="u", subject_type="individual")
MANDATE = NewMandate(vault_id="vault_1", amount_per_period="1", period="day")
PUBLIC = NewPublicPayment(amount="1", destination=ToWallet(address=WALLET))
INPUTS = (
    PAYMENT, SEND, COLLECT, ACCOUNT, MANDATE, PUBLIC, NewRefund(),
    NewWallet(address=WALLET, chain_type="evm"), Settlement(chain_id=8453, asset_symbol="USDC"),
    ToPaymentAddress(payment_address="anna@shop"), ToAccount(external_user_id="u"),
)  # fmt: skip

BAD: list[tuple[Any, dict[str, Any], list[str]]] = [
    (PAYMENT, {"allowed_methods": ["card"]}, ["allowed_methods[0]"]),
    (PAYMENT, {"allowed_methods": []}, ["allowed_methods"]),
    (PAYMENT, {"allowed_methods": "vault"}, ["allowed_methods"]),
    (PAYMENT, {"metadata": [1]}, ["metadata"]),
    (PAYMENT, {"metadata": {"at": object()}}, ["metadata.at"]),
    (PAYMENT, {"metadata": {"n": float("nan")}}, ["metadata.n"]),
    (PAYMENT, {"metadata": {1: "one"}}, ["metadata"]),
    (PAYMENT, {"metadata": {"a": {"b": {"c": {"d": 1}}}}}, ["metadata.a.b.c"]),
    (PAYMENT, {"amount": Decimal("1.00")}, ["amount"]),
    (PAYMENT, {"amount": "-1"}, ["amount"]),
    (PAYMENT, {"reference": LONG, "description": LONG}, ["reference", "description"]),
    (PAYMENT, {"reference": "\ud800"}, ["reference"]),
    (PAYMENT, {"chain_id": "8453"}, ["chain_id"]),
    (PAYMENT, {"chain_id": True}, ["chain_id"]),
    (PAYMENT, {"expires_in_s": 1}, ["expires_in_s"]),
    (PAYMENT, {"destination": None}, ["destination"]),
    (PAYMENT, {"destination": ToAccount(account_id=7)}, ["destination.account_id"]),  # type: ignore[arg-type]
    (PAYMENT, {"success_url": "javascript:alert(1)"}, ["success_url"]),
    (SEND, {"amount": 1}, ["amount"]),
    (SEND, {"metadata": {"a": LONG}}, ["metadata.a"]),
    (COLLECT, {"reference": ""}, ["reference"]),
    (ACCOUNT, {"subject_type": "company"}, ["subject_type"]),
    (ACCOUNT, {"email": "nobody"}, ["email"]),
    (ACCOUNT, {"external_user_id": 7, "username": "a b"}, ["external_user_id", "username"]),
    (
        ACCOUNT,
        {"wallets": [NewWallet(address=WALLET, chain_type="btc")]},  # type: ignore[arg-type]
        ["wallets[0].chain_type"],
    ),
    (MANDATE, {"period": "year"}, ["period"]),
    (MANDATE, {"expires_at": 1.5}, ["expires_at"]),
    (NewRefund(), {"amount": "1e3", "reason": LONG}, ["amount", "reason"]),
]


@pytest.mark.parametrize("given", INPUTS, ids=lambda it: type(it).__name__)
def test_what_is_right_is_kept_as_it_is(given: Any) -> None:
    assert PYTHON.read(given, type(given)) == given


@pytest.mark.parametrize(("sound", "changes", "paths"), BAD)
def test_every_bad_field_is_named(sound: Any, changes: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(ValidationFailed) as refused:
        PYTHON.read(attrs.evolve(sound, **changes), type(sound))
    assert [fault.path for fault in refused.value.fields] == paths


def test_lists_become_tuples_and_decimals_become_numbers() -> None:
    given = attrs.evolve(PAYMENT, allowed_methods=["vault"], metadata={"n": Decimal("1.5")})
    kept = PYTHON.read(given, type(given))
    assert (kept.allowed_methods, kept.metadata) == (("vault",), {"n": 1.5})


def test_what_operations_refuse_is_not_stored_and_lists_go_on(world: World) -> None:
    """Each of these was stored once, and the whole environment's lists failed after it."""
    service, server = world.service, world.server
    payment = attrs.evolve(PAYMENT, destination=ToAccount(account_id=world.merchant.id))
    for changes in ({"allowed_methods": ["card"]}, {"metadata": [1]}):
        with pytest.raises(ValidationFailed):
            service.acting_as(server).payments.receive(attrs.evolve(payment, **changes))  # type: ignore[arg-type]
    with pytest.raises(ValidationFailed):
        service.acting_as(server).accounts.create(attrs.evolve(ACCOUNT, subject_type="company"))
    with pytest.raises(ValidationFailed):
        service.acting_as(server).accounts.change(world.payer.id, status="frozen")  # type: ignore[arg-type]
    send = attrs.evolve(SEND, account_id=world.payer.id, metadata=[1])
    with pytest.raises(ValidationFailed):
        service.acting_as(server).payments.send(send)
    assert service.acting_as(server).payments.list().records == ()
    accounts = {it.account.id for it in service.acting_as(server).accounts.list().records}
    assert accounts == {world.payer.id, world.merchant.id}
