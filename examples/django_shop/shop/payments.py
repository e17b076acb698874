from payments_core import NewPayment, ToWallet
from payments_core_http.django import get_resources

SHOP_WALLET = ToWallet(address="0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")  # your own wallet


def request_payment(order):
    """The link for the payer; a repeat makes no second Payment."""
    payments = get_resources().payments
    new = NewPayment(amount=order.amount, destination=SHOP_WALLET, reference=str(order.pk))
    payment = payments.receive(new, idempotency_key=f"order-{order.pk}").payment
    type(order).objects.filter(pk=order.pk).update(payment_id=payment.id)
    return payments.build_url(payment)
