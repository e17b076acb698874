"""The shop's own records; Payments are in the service's own database."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """An order. `payment_id` is null until its Payment is made, `shipped_at` until it is paid."""

    number = models.CharField(primary_key=True, max_length=100)
    amount = models.CharField(max_length=40)  # a text, as the service expects it
    payment_id = models.CharField(max_length=100, null=True, unique=True)
    shipped_at = models.DateTimeField(null=True)
