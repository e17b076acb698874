"""The shop's pages."""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404

from shop.models import Order
from shop.payments import authority, pay_order, payments


def order(request: HttpRequest, number: str) -> JsonResponse:
    """POST makes the order, GET says how it stands."""
    if request.method == "POST":
        amount = request.POST["amount"]
        with transaction.atomic():
            Order.objects.create(number=number, amount=amount)
            # The service commits by itself: inside this block a Payment could stay of an order
            # that is rolled back. Where it fails, or the process dies, the worker does it.
            transaction.on_commit(partial(pay_order, number, amount), robust=True)
        return JsonResponse({"number": number}, status=201)
    found = get_object_or_404(Order, number=number)
    status = "placed"
    if found.payment_id is not None:
        status = payments().payments.get(authority(), found.payment_id).payment.status
    return JsonResponse({"number": number, "status": status, "shipped": bool(found.shipped_at)})
