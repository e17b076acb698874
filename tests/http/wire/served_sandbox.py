"""A sandbox as other WSGI servers and bridges load it, with Payments of 25.00 that were paid.

The first request makes it, in the process and thread where the server runs it; the credentials and
the ids of the Payments are then in the file that FACTS names. With SANDBOX_LIMITS it has rate
limits, and SANDBOX_PROXIES lists the trusted proxies; it may have several such lists, each after a
`|`, for which there are several applications: the header X-App has the number of one.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PAYMENTS = 6

_made: list[WSGIApplication] = []
_making = threading.Lock()
_open = ExitStack()


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The sandbox's application, or the one that was asked for."""
    with _making:
        if not _made:
            _made.extend(_make())
    return _made[int(environ.get("HTTP_X_APP", "0"))](environ, start_response)


def _make() -> list[WSGIApplication]:
    from payments_core.limiters.memory import MemoryLimiter
    from payments_core_http import create_app
    from payments_core_http.client_address import parse_networks
    from payments_core_http.testing import open_sandbox
    from payments_core_http.throttling import Throttle

    logging.basicConfig(level="INFO", stream=sys.stderr)
    sandbox = _open.enter_context(open_sandbox())
    facts = {
        "credentials": f"{sandbox.app_id}:{sandbox.app_secret}",
        "payments": [sandbox.make_payment("succeeded").id for _ in range(PAYMENTS)],
    }
    apps: list[WSGIApplication] = [
        create_app(
            sandbox.service,
            mode="sandbox",
            throttle=Throttle(MemoryLimiter(), trusted_proxies=parse_networks(proxies.split())),
        )
        for proxies in os.environ.get("SANDBOX_PROXIES", "").split("|")
    ]
    ready = Path(os.environ["FACTS"])
    ready.with_suffix(".new").write_text(json.dumps(facts))
    ready.with_suffix(".new").rename(ready)
    return apps


def _bridge() -> Any:
    from asgiref.wsgi import WsgiToAsgi

    return WsgiToAsgi(application)  # type: ignore[arg-type]


bridged = _bridge() if os.environ.get("SANDBOX_BRIDGED") else None
"""The same for an ASGI server."""
