"""The shop's addresses."""

from django.urls import path

from shop.views import order

urlpatterns = [path("orders/<number>", order)]
