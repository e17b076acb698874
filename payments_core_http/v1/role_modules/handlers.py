"""Role modules of vaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v1.role_modules import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def deploy(service: PaymentsService, call: ApiCall[bodies.DeployRoleModule, None]) -> Response:
    """The role module and its state."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.legacy.deploy_role_module(
            body.userId,
            body.txData.tx_data,
            body.signature,
            idempotency_key=idempotent,
        ),
        lambda installation: views.RoleModuleResponse(
            data=views.role_module(installation), requestId=call.request_id
        ),
    )
