"""The three ways in which a request for a path below a prefix comes to the application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from payments_core_http.app import create_app
from tests.http.api_harness import ApiHarness

PREFIX = "/shop/payments"
PUBLIC_URL = f"http://127.0.0.1:8080{PREFIX}"


def mount(app: Any) -> Any:
    """A server that mounts the application: it moves the prefix to `SCRIPT_NAME` (PEP 3333)."""
    return _forward(
        app, lambda path: {"SCRIPT_NAME": PREFIX, "PATH_INFO": path.removeprefix(PREFIX)}
    )


def pass_on(app: Any) -> Any:
    """A proxy that passes the whole path on."""
    return _forward(app, lambda path: {"PATH_INFO": path})


def take_away(app: Any) -> Any:
    """A proxy that takes the prefix away, and says so to nobody."""
    return _forward(app, lambda path: {"PATH_INFO": path.removeprefix(PREFIX)})


PLACES = {place.__name__: place for place in (mount, pass_on, take_away)}
OUTSIDE = "418 Outside of the prefix"


def _forward(app: Any, change: Callable[[str], Mapping[str, str]]) -> Any:
    def serve(environ: dict[str, Any], start_response: Any) -> Any:
        path = environ["PATH_INFO"]
        if not f"{path}/".startswith(f"{PREFIX}/"):
            start_response(OUTSIDE, [])
            return [b""]
        environ.update(change(path))
        return app(environ, start_response)

    return serve


def place(api: ApiHarness, name: str) -> Any:
    """The API's application below the prefix, with the public URL that says so."""
    api.service.settings = attrs.evolve(api.service.settings, public_url=PUBLIC_URL)
    return PLACES[name](create_app(api.service, mode="sandbox"))  # type: ignore[arg-type]
