from django.utils import timezone

from payments_core_http.django import on_event

from .models import Order


@on_event("payment.succeeded")
def ship(event):
    order = Order.objects.get(payment_id=event.payload["paymentId"])
    Order.objects.filter(pk=order.pk, shipped_at=None).update(shipped_at=timezone.now())
