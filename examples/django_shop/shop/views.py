from django.db import transaction
from django.http import JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from .models import Order
from .payments import request_payment


@require_POST
def buy(request):
    with transaction.atomic():
        order = Order.objects.create(amount="25.00")
    return redirect(request_payment(order))


def show(request, pk):
    order = get_object_or_404(Order, pk=pk)
    return JsonResponse({"number": order.pk, "shipped": order.shipped_at is not None})
