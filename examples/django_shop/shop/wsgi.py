"""One WSGI application: API, checkout and the reference of both; all else is the shop."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import Any

from django.core.wsgi import get_wsgi_application

from payments_core_http import create_app

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
site = get_wsgi_application()


@cache
def api() -> Any:
    """Made at its first request, so after a fork, and when Django is set up."""
    from shop.payments import payments

    return create_app(payments(), mode="sandbox")


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """What `gunicorn shop.wsgi` serves."""
    is_api = environ["PATH_INFO"].startswith(("/v2/", "/pay/", "/docs"))
    answer: Iterable[bytes] = (api() if is_api else site)(environ, start_response)
    return answer
