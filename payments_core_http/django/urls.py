"""The API, the checkout pages, the reference and the dashboard, below the path of an `include`."""

from __future__ import annotations

from django.urls import path, re_path

from payments_core_http.django.views import serve

app_name = "payments_core"
urlpatterns = [
    path("", serve, {"path": ""}, name="root"),
    re_path(r"^(?P<path>[\s\S]+)$", serve),
]
