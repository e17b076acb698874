"""The rows of the reference. They ask for no credential, and their answers may be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from payments_core.engine.idempotency.record import Answer
from payments_core_http.calls import Call
from payments_core_http.openapi.document import document, text_of
from payments_core_http.routing import Route

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, nothing inline, no evaluation, and in nobody's frame."""

_KEPT = "public, max-age=300"
_STATIC = {
    "reference.css": "text/css; charset=utf-8",
    "reference.js": "text/javascript; charset=utf-8",
}

Make = Callable[[str, str], bytes]
"""The bytes of a page, by the version of the contract and the mode of the process."""


def rows(routes: Sequence[Route]) -> tuple[Route, ...]:
    """The rows of the reference to these routes; pages are made when they are first asked for."""

    @cache
    def made(version: str) -> dict[str, Any]:
        return document(version, routes)

    @cache
    def openapi(version: str, mode: str) -> bytes:
        return text_of(made(version)).encode()

    @cache
    def page(version: str, mode: str) -> bytes:
        # Templates are loaded by whoever reads the reference, and by no other process.
        from payments_core_http.reference.pages import rendered

        return rendered(made(version), mode).encode()

    return (
        _row("/openapi.json", openapi, "application/json", "The OpenAPI document of this API."),
        _row("/docs", page, "text/html; charset=utf-8", "The reference of this API, for people."),
        *(
            _row(f"/docs/{name}", _file(name), media_type, "A part of the reference.")
            for name, media_type in _STATIC.items()
        ),
    )


def _row(path: str, make: Make, media_type: str, summary: str) -> Route:
    headers = {
        "Content-Type": media_type,
        "Cache-Control": _KEPT,
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
    }

    def answer(service: PaymentsService, call: Call[None, None]) -> Answer:
        version = service.settings.versions.current
        return call.unless_known(Answer(200, make(version, call.mode), version, headers))

    return Route("GET", path, answer, needs=None, answers=Any, tagged=True, summary=summary)


def _file(name: str) -> Make:
    @cache
    def read(version: str, mode: str) -> bytes:
        return (files(__package__) / "static" / name).read_bytes()

    return read
