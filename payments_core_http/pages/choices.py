"""The forms by which a payer asks for an offer: to the page's own address, with a token of ours.

The link's code is known to nobody else. The token is there so that another site that has seen the
link cannot send the form.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from payments_core.credentials.keyring import KeyRing
from payments_core.errors import InsufficientPermissions, ValidationFailed
from payments_core.payments.checkout.checkout import PAYER
from payments_core.tenants.authorization import Authority, authorize
from payments_core_http.calls import PageCall

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_PURPOSE = "checkout choices"


def make_choice_token(key_ring: KeyRing, code: str) -> str:
    """The token of the forms on the page of a link."""
    return base64.urlsafe_b64encode(key_ring.tag(_PURPOSE, code.encode())).decode()


def require_choice_form(key_ring: KeyRing, code: str, token: str) -> None:
    """Return if the form is one of ours. Raises InsufficientPermissions."""
    try:
        tag = base64.urlsafe_b64decode(token.encode("ascii"))
    except ValueError:
        tag = b""
    if not key_ring.tag_matches(_PURPOSE, code.encode(), tag):
        raise InsufficientPermissions(("a form of this page",))


def choose(service: PaymentsService, call: PageCall) -> None:
    """Carry out a form: ask for an offer, or for a new one.

    Raises NotFound, InsufficientPermissions, and what the operations on options raise.
    """
    code, fields = call.path["code"], call.body
    link = service.checkout.exchange_link(code, mode=call.mode)  # an unknown link is refused first
    require_choice_form(service.parts.ports.key_ring, code, fields.get("token", ""))
    environment, claims = service.checkout.authenticate(link.client_secret, mode=call.mode)
    authorize(PAYER, environment, None, None, claims.subject)
    authority = Authority(
        requirement=PAYER,
        environment=environment,
        payment_id=claims.subject,
        api_version=claims.api_version,
        source=call.source,
    )
    options, method = service.acting_as(authority).public_options, fields.get("method", "")
    if "option" in fields:
        options.refresh(claims.subject, fields["option"])
    elif method == "routing":
        chain_id, _, symbol = fields.get("asset", "").partition("/")
        if not chain_id.isdecimal() or len(chain_id) > _MAX_DIGITS:
            raise ValidationFailed.at("asset", "must be a chain's number and a symbol")
        options.create(
            claims.subject,
            method="routing",
            chain_id=int(chain_id),
            asset_symbol=symbol,
            refund_address=fields.get("refundAddress", "").strip(),
        )
    else:
        options.create(claims.subject, method="hosted_onramp")


_MAX_DIGITS = 15
"""The maximum length of a chain's number."""
