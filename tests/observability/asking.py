"""An API whose requests are observed, and a service whose core reports."""

from __future__ import annotations

from typing import NoReturn
from wsgiref.validate import validator

import attrs

from payments_core.telemetry import NOOP_TELEMETRY, Telemetry
from payments_core_http.app import create_app
from payments_core_http.observability.requests import RequestObserver
from payments_core_http.routes import ROUTES
from payments_core_http.throttling import Throttle
from tests.http.api_harness import ROWS, ApiHarness


def observed(
    observer: RequestObserver,
    throttle: Throttle | None = None,
    telemetry: Telemetry = NOOP_TELEMETRY,
) -> ApiHarness:
    """An API as the HTTP tests have it, with an observer, and a core that reports."""
    api = ApiHarness(telemetry=telemetry)
    api.app = create_app(
        api.service,  # type: ignore[arg-type]
        mode="sandbox",
        routes=(*ROUTES, *ROWS),
        throttle=throttle,
        observer=observer,
    )
    api.validated = validator(api.app)
    return api


@attrs.define
class BrokenWire:
    """A transport that fails by a fault of ours, and says more than it should."""

    says: str = "a fault"

    def send(self, *_: object) -> NoReturn:
        raise ValueError(self.says)

    def close(self) -> None:
        """Nothing is open."""
