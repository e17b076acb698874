"""The door for providers: `POST /providers/{kind}/{provider}` (contract §14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.errors import NotFound, ProviderSignatureInvalid, ServiceUnavailable
from payments_core_http.calls import NoticeCall
from payments_core_http.routing import NoticeRoute

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def receive(service: PaymentsService, call: NoticeCall) -> Response:
    """Store the provider's notices; 204 after the commit, also if all are stored already.

    They are counted in between: a forgery or a repeat uses up nothing of what the provider may
    send.
    """
    notices, kind, name = service.parts.provider_notices, call.path["kind"], call.path["provider"]
    new = notices.read_new(call.mode, kind, name, call.headers, call.body)
    call.count(f"{call.mode}:{kind}:{name}", len(new))
    notices.store(call.mode, new)
    return Response(204, b"", call.caller.api_version)


ROUTES = (
    NoticeRoute(
        "POST",
        "/providers/{kind}/{provider}",
        receive,
        needs=None,
        summary="Receive the notices of a provider.",
        policy="provider_notices",
        miss_policy="provider_notice_misses",
        errors=(NotFound, ProviderSignatureInvalid, ServiceUnavailable),
    ),
)
