"""The shop's pages."""

from __future__ import annotations

from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.forms import DecimalField
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404

from shop.models import Order
from shop.payments import pay_order, shop

AMOUNT = DecimalField(min_value=Decimal("0.01"), max_digits=12, decimal_places=2)


def order(request: HttpRequest, number: str) -> JsonResponse:
    """POST creates the order, GET returns its state."""
    if request.method == "POST":
        try:  # a refusal is permanent: ask the service before the order exists
            amount = f"{AMOUNT.clean(request.POST.get('amount')):.2f}"
        except ValidationError as error:
            return JsonResponse({"amount": error.messages}, status=400)
        with transaction.atomic():
            Order.objects.create(number=number, amount=amount)
            # The service commits by itself: inside this block a Payment could stay of an order
            # that is rolled back. If it fails, or the process dies, the worker does it. (Of a
            # `partial` that fails, Django cannot log the name, and raises from here.)
            transaction.on_commit(lambda: pay_order(number, amount), robust=True)
        return JsonResponse({"number": number}, status=201)
    found = get_object_or_404(Order, number=number)
    status = "placed"
    if found.payment_id is not None:
        status = shop().payments.read(found.payment_id).payment.status
    return JsonResponse({"number": number, "status": status, "shipped": bool(found.shipped_at)})
