"""A typed client of the service for partners: `Client`, `AccountClient`, `PublicClient`, and each
of them asynchronous. Install it with `pip install 'payments-core[client]'`.

Nothing of the service itself is loaded, and nothing else of the package loads this.
"""

from __future__ import annotations

from payments_core.extras import naming_extra as _naming_extra

with _naming_extra("payments_core_http.client"):
    from payments_core.webhooks.received import ReceivedEvent
    from payments_core.webhooks.receiver import WebhookRefused
    from payments_core.webhooks.receiver import verify as verify_webhook
    from payments_core_http.client.async_clients import (
        AsyncAccountClient,
        AsyncClient,
        AsyncPublicClient,
    )
    from payments_core_http.client.bodies import (
        AccountDestination,
        BankDestination,
        PaymentAddressDestination,
        VaultSource,
        WalletDestination,
        WalletOnChainDestination,
    )
    from payments_core_http.client.clients import AccountClient, Client, PublicClient
    from payments_core_http.client.errors import (
        ApiError,
        ClientError,
        NoResponse,
        ResponseMalformed,
    )
    from payments_core_http.client.events import Event, UnknownEvent
    from payments_core_http.client.retries import Retries
    from payments_core_http.client.webhooks import EventMalformed, parse_event

__all__ = [
    "Client",
    "AccountClient",
    "PublicClient",
    "AsyncClient",
    "AsyncAccountClient",
    "AsyncPublicClient",
    "Retries",
    "AccountDestination",
    "BankDestination",
    "PaymentAddressDestination",
    "VaultSource",
    "WalletDestination",
    "WalletOnChainDestination",
    "ClientError",
    "ApiError",
    "NoResponse",
    "ResponseMalformed",
    "verify_webhook",
    "ReceivedEvent",
    "WebhookRefused",
    "parse_event",
    "Event",
    "UnknownEvent",
    "EventMalformed",
]
