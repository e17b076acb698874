"""The partner's own settings: `/v2/partners/...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.credentials.authorization import effective_scopes
from payments_core.idempotency.record import Answer
from payments_core_http.calls import Call
from payments_core_http.v2 import views, webhook_views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def config(service: PaymentsService, call: Call[None, None]) -> Answer:
    """What this credential is; a 200 confirms that it opens this environment."""
    environment, key = call.authority.environment, call.authority.key
    assert key is not None
    assert key.kind != "publishable"  # which opens no route of v2
    return call.answer(
        views.PartnerConfig(
            appId=environment.app_id,
            environmentId=environment.id,
            mode=environment.mode,
            partnerId=environment.partner_id,
            credentialType=key.kind,
            apiVersion=environment.api_version,
            supportedApiVersions=service.settings.versions.supported,
            scopes=effective_scopes(environment, key),
            products=environment.products,
            capabilities=views.DeploymentCapabilities(
                webhooks=views.WebhookCapabilities(
                    deliveryPolicy=webhook_views.delivery_policy(service.settings.webhooks)
                )
            ),
        )
    )
