"""The partner's own settings: `/v2/partners/...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.credentials.authorization import effective_scopes
from payments_core.idempotency.record import Answer
from payments_core.versions import SUPPORTED
from payments_core_http.calls import Call
from payments_core_http.v2 import views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def config(service: PaymentsService, call: Call[None, None]) -> Answer:
    """What this credential is; a 200 confirms that it opens this environment."""
    environment, key = call.authority.environment, call.authority.key
    assert key is not None
    return call.answer(
        views.PartnerConfig(
            appId=environment.app_id,
            environmentId=environment.id,
            mode=environment.mode,
            partnerId=environment.partner_id,
            credentialType=key.kind,
            credentialMode="app_secret",
            apiVersion=environment.api_version,
            supportedApiVersions=SUPPORTED,
            scopes=effective_scopes(environment, key),
            products=environment.products,
            capabilities=views.Capabilities(
                webhooks=views.WebhookCapabilities(
                    deliveryPolicy=service.settings.webhooks.delivery_policy()
                )
            ),
        )
    )
