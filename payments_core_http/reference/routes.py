"""The rows of the reference. They require no credential, and their responses may be cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import attrs

from payments_core.contracts.versions import Versions
from payments_core.engine.idempotency.record import Response
from payments_core.evolve import evolve
from payments_core_http.calls import ApiCall
from payments_core_http.openapi.document import build_document, format_document
from payments_core_http.reference.error_advice import ADVICE
from payments_core_http.routing import Route

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from other origins, nothing inline, no evaluation, and no frames."""

_HTML = "text/html; charset=utf-8"
_CACHE_CONTROL = "public, max-age=300"
_STATIC = {
    "reference.css": "text/css; charset=utf-8",
    "reference.js": "text/javascript; charset=utf-8",
}


@attrs.frozen
class Deployment:
    """What the pages and documents say of a deployment: the contract's version, the mode of the
    process, and the public URL."""

    version: str
    mode: str
    public_url: str | None


RenderPage = Callable[[Deployment], bytes]
"""The bytes of a page."""


def build_routes(routes: Sequence[Route], versions: Versions) -> tuple[Route, ...]:
    """The rows of the reference to these routes; pages are made when they are first requested.

    The newest contract has the pages, and each contract its document.
    """

    @cache
    def build_once(version: str, public_url: str | None) -> dict[str, Any]:
        return build_document(version, routes, versions, public_url)

    @cache
    def render_openapi(one: Deployment) -> bytes:
        return format_document(build_once(one.version, one.public_url)).encode()

    @cache
    def render_html(one: Deployment) -> bytes:
        # Templates are loaded only in a process that serves the reference.
        from payments_core_http.reference.pages import render_page

        return render_page(build_once(one.version, one.public_url), one.mode).encode()

    return (
        _make_route("/", _render_front, _HTML, "What this server serves, for people."),
        _make_route(
            "/openapi.json", render_openapi, "application/json", "The OpenAPI document of this API."
        ),
        _make_route(
            "/docs",
            render_html,
            _HTML,
            "The reference of this API, for people.",
        ),
        *(
            _make_route(
                f"/openapi-{date}.json",
                partial(_render_for, date, render_openapi),
                "application/json",
                f"The OpenAPI document of the contract {date}.",
            )
            for date in versions.supported
        ),
        *_FIXED_ROUTES,
    )


def _make_route(path: str, make: RenderPage, media_type: str, summary: str) -> Route:
    headers = {
        "Content-Type": media_type,
        "Cache-Control": _CACHE_CONTROL,
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Referrer-Policy": "no-referrer",
    }

    def respond(service: PaymentsService, call: ApiCall[None, None]) -> Response:
        settings = service.settings
        version = settings.versions.current
        public_url = settings.public_url if settings.has_public_url else None
        deployment = Deployment(version, call.mode, public_url)
        return call.add_etag(Response(200, make(deployment), version, headers))

    return Route("GET", path, respond, needs=None, response=Any, has_etag=True, summary=summary)


def _render_for(date: str, render: RenderPage, one: Deployment) -> bytes:
    return render(evolve(one, version=date))


def _render_front(one: Deployment) -> bytes:
    from payments_core_http.reference.pages import TEMPLATES

    return TEMPLATES.get_template("front.html").render(deployment=one).encode()


def _render_error_list(one: Deployment) -> bytes:
    from payments_core_http.reference.error_pages import render_list

    return render_list().encode()


def _make_error_renderer(code: str) -> RenderPage:
    @cache
    def render_error(one: Deployment) -> bytes:
        from payments_core_http.reference.error_pages import render_page

        return render_page(code).encode()

    return render_error


def _make_file_renderer(name: str) -> RenderPage:
    @cache
    def read_file(one: Deployment) -> bytes:
        return (files(__package__) / "static" / name).read_bytes()

    return read_file


_FIXED_ROUTES = (
    _make_route("/docs/errors", _render_error_list, _HTML, "The errors of this API, for people."),
    *(
        _make_route(
            f"/docs/errors/{code}", _make_error_renderer(code), _HTML, "One error, for people."
        )
        for code in ADVICE
    ),
    *(
        _make_route(
            f"/docs/{name}", _make_file_renderer(name), media_type, "A part of the reference."
        )
        for name, media_type in _STATIC.items()
    ),
)
"""The pages that do not depend on the routes."""
