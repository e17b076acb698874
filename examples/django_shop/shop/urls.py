"""The shop's addresses, and those of the payments."""

from django.urls import include, path

from shop.views import buy, show

urlpatterns = [
    path("buy", buy),
    path("orders/<int:pk>", show),
    path("payments/", include("payments_core_http.django.urls")),
]
