from django.db import models


class Order(models.Model):
    amount = models.CharField(max_length=40)  # a text, as the service expects it
    payment_id = models.CharField(max_length=100, null=True, unique=True)
    shipped_at = models.DateTimeField(null=True)
