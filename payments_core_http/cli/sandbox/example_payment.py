"""An open Payment, so that a person who starts a sandbox has a checkout page to open."""

from __future__ import annotations

from payments_core.clock import DAY, HOUR, SECOND
from payments_core.errors import PaymentsError
from payments_core.payments.destinations import ToWallet
from payments_core.payments.operations import NewPayment
from payments_core.service import PaymentsService

REFERENCE = "payments sandbox"

_EXAMPLE = NewPayment(
    amount="4.50",
    destination=ToWallet(address="0x" + "5e" * 20),
    reference=REFERENCE,
    description="Two loaves of bread",
    expires_in_s=DAY // SECOND,
    allowed_methods=("direct",),
)


def open_example(service: PaymentsService, environment_id: str) -> str | None:
    """The link of a Payment that is open for another hour: of an earlier start, or a new one.

    None if the sandbox refuses to create one, because a product is disabled, for example.
    """
    authority = service.tenants.system_authority(environment_id)
    until = service.parts.ports.clock.now() + HOUR
    try:
        newest = service.acting_as(authority).payments.list()
        waiting = (
            found.payment
            for found in newest.records
            if found.payment.reference == REFERENCE
            and found.payment.status == "awaiting_payment"
            and found.payment.expires_at_ms > until
        )
        payment = (
            next(waiting, None) or service.acting_as(authority).payments.receive(_EXAMPLE).payment
        )
    except PaymentsError:
        return None
    return service.parts.links.build_url(payment)
