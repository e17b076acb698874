"""Stablecoin Payments and accounts as an embeddable library.

`PaymentsService` puts the ports together; `open_storage` opens a storage by its URL. What else
is public stands in the module of its name, such as `payments_core.webhooks.verify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payments_core.accounts.operations import NewAccount as NewAccount
    from payments_core.credentials.keyring import KeyRing as KeyRing
    from payments_core.payments.collects import NewCollect as NewCollect
    from payments_core.payments.destinations import ToAccount as ToAccount
    from payments_core.payments.destinations import ToPaymentAddress as ToPaymentAddress
    from payments_core.payments.destinations import ToWallet as ToWallet
    from payments_core.payments.operations import NewPayment as NewPayment
    from payments_core.payments.refunds.operations import NewRefund as NewRefund
    from payments_core.payments.sends import NewSend as NewSend
    from payments_core.service import PaymentsService as PaymentsService
    from payments_core.service import Settings as Settings
    from payments_core.storage_loader import open_storage as open_storage

__version__ = "0.1.0"

# Looked up when first used: a receiver that only verifies webhooks need not load the service.
_PUBLIC = {
    "KeyRing": "payments_core.credentials.keyring",
    "NewAccount": "payments_core.accounts.operations",
    "NewCollect": "payments_core.payments.collects",
    "NewPayment": "payments_core.payments.operations",
    "NewRefund": "payments_core.payments.refunds.operations",
    "NewSend": "payments_core.payments.sends",
    "PaymentsService": "payments_core.service",
    "Settings": "payments_core.service",
    "ToAccount": "payments_core.payments.destinations",
    "ToPaymentAddress": "payments_core.payments.destinations",
    "ToWallet": "payments_core.payments.destinations",
    "open_storage": "payments_core.storage_loader",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
