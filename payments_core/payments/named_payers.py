"""Which senders of a Payment are its payers, where a provider may have sent the funds."""

from __future__ import annotations

from payments_core.payments.options.offer import Offer, list_offer_ids
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot


def find_named_payers(snapshot: Snapshot, payment: Payment) -> frozenset[str] | None:
    """The addresses that payers named; None if no provider may have paid, so any sender is a payer.

    The sender of a provider's transfer is its own wallet, and a refund that goes there is lost. As
    long as an offer has delivered, or may still do it, no other sender is known to be a payer.
    """
    if not payment.option_ids:
        return None
    options = snapshot.get_many(PaymentOption, payment.option_ids).values()
    ids = [id for option in options for id in list_offer_ids(option)]
    if not any(offer.may_have_paid for offer in snapshot.get_many(Offer, ids).values()):
        return None
    named = {option.payer_address for option in options}
    named |= {option.vault_address for option in options}
    named |= {option.refund_address for option in options if option.deliveries}
    return frozenset(address for address in named if address is not None)
