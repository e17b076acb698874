"""How the contract 2026-09-09 differs from 2026-12-01, for tests."""

from __future__ import annotations

from payments_core.contracts.changes import Added, DefaultChanged, Removed, Renamed, Reworded
from payments_core.contracts.versions import Changes

_PAYMENT = (
    Renamed("checkoutUrl", "paymentUrl"),
    Reworded("status", {"awaiting_payment": "open", "processing": "open"}),
)
_CURRENCY = Removed(
    "currency",
    {"type": "string", "description": "The symbol of the asset."},
    lambda payload: payload["assetSymbol"],
)

CHANGES: Changes = {
    "CreateAccount": (Added("subjectType", lambda body: "individual"),),
    "CreateClientSession": (DefaultChanged("expiresInSeconds", 600),),
    "CreatedPayment": _PAYMENT,
    "Payment": _PAYMENT,
    "PaymentPayload": (_CURRENCY,),
    "RecipientPayment": _PAYMENT,
    "Wallet": (Renamed("name", "label"),),
    "WalletInput": (Renamed("name", "label"),),
}
