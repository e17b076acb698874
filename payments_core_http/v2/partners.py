"""The partner's own settings: `/v2/partners/...`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from payments_core.credentials.secrets import Mode
from payments_core.engine.idempotency.record import Response
from payments_core.tenants.authorization import effective_scopes
from payments_core_http.calls import ApiCall
from payments_core_http.routing import Route
from payments_core_http.v2.requirements import ANY_KEY
from payments_core_http.v2.webhooks import views as webhook_views
from payments_core_http.wire.classes import frozen_view

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


@frozen_view
class WebhookCapabilities:
    """What a receiver of this deployment's webhooks may rely on."""

    deliveryPolicy: webhook_views.DeliveryPolicyView


@frozen_view
class DeploymentCapabilities:
    """What this deployment can do."""

    webhooks: WebhookCapabilities
    """What this deployment's webhooks can do."""


@frozen_view
class PartnerConfig:
    """What a credential is, and what it gives access to (interface "Runtime configuration")."""

    appId: str
    environmentId: str
    mode: Mode
    """The environment's mode."""
    partnerId: str
    """The partner's name in payment addresses."""
    credentialType: Literal["standard", "restricted"]
    """Whether the key is standard or restricted."""
    credentialMode: Literal["app_secret"] = "app_secret"
    """What the credential is for: `app_secret`, for backends."""
    apiVersion: str
    """The dated contract that the environment is pinned to."""
    supportedApiVersions: tuple[str, ...]
    """The dated contracts that this deployment supports."""
    scopes: tuple[str, ...]
    """What the key may call."""
    products: tuple[str, ...]
    """The products that the environment has."""
    capabilities: DeploymentCapabilities
    """What this deployment can do."""


def read_config(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """What this credential is; a 200 confirms that it is valid for this environment."""
    environment, key = call.authority.environment, call.authority.key
    assert key is not None
    assert key.kind != "publishable"  # which gives access to no route of v2
    return call.respond(
        PartnerConfig(
            appId=environment.app_id,
            environmentId=environment.id,
            mode=environment.mode,
            partnerId=environment.partner_id,
            credentialType=key.kind,
            apiVersion=environment.api_version,
            supportedApiVersions=service.settings.versions.supported,
            scopes=effective_scopes(environment, key),
            products=environment.products,
            capabilities=DeploymentCapabilities(
                webhooks=WebhookCapabilities(
                    deliveryPolicy=webhook_views.delivery_policy(service.settings.webhooks)
                )
            ),
        )
    )


PARTNERS = (
    Route(
        "GET", "/v2/partners/config", read_config, needs=ANY_KEY,
        response=PartnerConfig,
        summary="Describe this credential and its permissions.",
    ),
)  # fmt: skip
