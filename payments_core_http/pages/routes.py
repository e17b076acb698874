"""The rows of the pages: a checkout link, and the files that its page loads.

The link's code is exchanged here, on the server: the Payment's secret is in no address, and no
other site learns the page's address. The page holds the secret while its script can use it, to ask
for this one Payment's state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, get_args
from urllib.parse import urlencode

import attrs
from msgspec import Meta

from payments_core import errors
from payments_core.engine.idempotency.record import Response
from payments_core.errors import PaymentsError
from payments_core.payment_settings.record import PaymentMethod
from payments_core.validation.metadata import shorten_name
from payments_core_http.calls import ApiCall, PageCall
from payments_core_http.errors import status_of
from payments_core_http.page_headers import PRIVATE_PAGE_HEADERS, allow_frame
from payments_core_http.pages.choices import choose
from payments_core_http.pages.colors import make_accent
from payments_core_http.pages.sandbox_panel import read_action, require_own_form
from payments_core_http.routing import PageRoute, Route, Row
from payments_core_http.wire.query import read_page_query

if TYPE_CHECKING:
    from payments_core.service import PaymentsService
    from payments_core_http.pages.rendering import BuiltPage

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "base-uri 'none'; require-trusted-types-for 'script'"
)
"""Nothing from other origins, and nothing inline."""
CONTENT_SECURITY_POLICY = (
    f"{_POLICY}; connect-src 'self'; trusted-types 'none'; frame-ancestors 'none';"
    " form-action 'none'"
)

PAGE_HEADERS: Mapping[str, str] = {
    **PRIVATE_PAGE_HEADERS,
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Vary": "Accept-Language",
}
"""The headers of every page, including errors."""

_CSS = "text/css; charset=utf-8"
_SCRIPT = "text/javascript; charset=utf-8"
_STATIC: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "/assets/style.css": (_CSS, ("style.css",)),  # of the dashboard, too
    "/assets/copy.js": (_SCRIPT, ("copy.js",)),  # of the dashboard alone
    "/pay/assets/checkout.js": (_SCRIPT, ("copy.js", "checkout.js")),
    "/pay/assets/wallet.js": (_SCRIPT, ("wallet.js",)),
    "/pay/assets/pairing.js": (_SCRIPT, ("pairing.js",)),
}
"""By path: the type, and the files one after the other. One request less is 0.3 s on a slow
telephone."""

_COMMENTS = re.compile(rb"^ *//.*\n", re.MULTILINE)
"""A fifth of a script that is sent. No text of the scripts has a line that begins so."""


_FILE_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-cache",  # cached, but revalidated: a page and its style belong together
    "Cross-Origin-Resource-Policy": "same-origin",
}


@attrs.frozen(kw_only=True)
class AccentQuery:
    """A color, as six hexadecimal digits."""

    color: Annotated[str, Meta(pattern="^[0-9a-f]{6}$", extra={"rule": "six digits 0 to f"})] = (
        "0b4fb3"
    )


def show_checkout(service: PaymentsService, call: PageCall) -> Response:
    """The page of a link: the state of its Payment, and how to pay it."""
    # Templates and locales are loaded with the first page, so that a start is fast.
    from payments_core_http.pages.rendering import build_checkout

    service.refresh()  # no credential has read the clock yet
    code, wanted = call.path["code"], call.query.get("lang")
    shown, framing, wallet = (call.query.get(name) for name in ("method", "frame", "wallet"))
    built = build_checkout(
        service, call.mode, code, wanted, call.accept_language, shown, framing, wallet
    )
    common = PAGE_HEADERS if built.frame_origin is None else allow_frame(PAGE_HEADERS)
    headers = {**common, "Content-Security-Policy": build_policy(built)}
    if built.view.left_ms is not None:  # also in a 304, whose reader may have slept
        headers["Payment-Left-Ms"] = str(built.view.left_ms)
    return call.respond_tagged(
        f'"{built.etag}"', built.api_version, headers, lambda: built.render(call.mode)
    )


_TARGET_FIELDS = frozenset({"play", "token", "lang", "frame"})
"""What the target of a form of the page may name."""


def act(service: PaymentsService, call: PageCall) -> Response:
    """A form of the page: carry it out, and show the page again.

    It asks a method's provider for an offer, or is one of the sandbox's panel.
    """
    from payments_core_http.pages.languages import LANGUAGES

    service.refresh()
    code, fields, query = call.path["code"], call.body, call.query
    service.checkout.read_page(code, mode=call.mode)  # an unknown link is refused first
    for name in query.keys() - _TARGET_FIELDS:
        raise errors.ValidationFailed.at(shorten_name(name), "is not a field of this form")
    lang, shown = query.get("lang"), fields.get("method")
    try:
        if shown is not None:
            choose(service, call)
        elif "play" in query:
            action = read_action(query["play"])
            token = query.get("token", "")
            require_own_form(service.parts.ports.key_ring, code, action, token)
            service.sandbox_payer(call.mode).play(code, action, mode=call.mode)
    except errors.InvalidState:
        pass  # the page had changed meanwhile: it shows the current state
    back = {"lang": lang} if lang in LANGUAGES else {}
    if shown in get_args(PaymentMethod):
        back["method"] = shown
    if "frame" in query:
        back["frame"] = query["frame"]
    headers = {name: text for name, text in PAGE_HEADERS.items() if name != "Content-Type"}
    location = code + (f"?{urlencode(back)}" if back else "")
    version = service.settings.versions.current
    return Response(303, b"", version, {**headers, "Location": location})


def show_error(error: PaymentsError, request_id: str, environ: Mapping[str, Any]) -> Response:
    """The page of an error."""
    from payments_core_http.pages.rendering import render_error_page

    try:
        wanted = read_page_query(environ.get("QUERY_STRING", "")).get("lang")
    except PaymentsError:
        wanted = None  # the query itself may be wrong
    accept_language = environ.get("HTTP_ACCEPT_LANGUAGE")
    is_form = environ.get("REQUEST_METHOD") == "POST"
    html = render_error_page(error, request_id, wanted, accept_language, is_form=is_form)
    return Response(status_of(type(error)), html, "", PAGE_HEADERS)


def build_policy(built: BuiltPage) -> str:
    """The Content-Security-Policy of a page: the common one, with the page's forms and logo, with
    the origin that may frame it, and with what WalletConnect needs where a payer has asked for it:
    its relay, the chain's node, and the right to load its script, one of our own files."""
    ancestors = built.frame_origin or "'none'"
    forms = "'self'" if built.has_forms else "'none'"
    pairing, connect, types = built.pairing, "'self'", "'none'"
    if pairing is not None and pairing.is_asking:
        sources = (connect, _name_source(pairing.relay_url), _name_source(pairing.rpc_url))
        connect, types = " ".join(sources), "walletconnect"
    policy = (
        f"{_POLICY}; connect-src {connect}; trusted-types {types};"
        f" frame-ancestors {ancestors}; form-action {forms}"
    )
    logo_url = built.view.logo_url
    return policy if logo_url is None else f"{policy}; img-src {_name_source(logo_url)}"


def _name_source(url: str) -> str:
    """A URL as a source of a policy: without its query, and without separators of a policy
    (CSP Level 3, "host-source")."""
    return re.sub("[;,']", lambda found: f"%{ord(found[0]):02X}", re.split("[?#]", url)[0])


def show_accent(service: PaymentsService, call: ApiCall[None, AccentQuery]) -> Response:
    """The style sheet of a partner's color, the same for all partners with that color."""
    accent = make_accent(call.query.color)
    style = (
        f":root {{ --accent: #{call.query.color}; --link: {accent.light}; }}\n"
        "@media (prefers-color-scheme: dark) {\n"
        f"  :root {{ --link: {accent.dark}; }}\n"
        "}\n"
    )
    version = service.settings.versions.current
    headers = {**_FILE_HEADERS, "Content-Type": _CSS}
    return call.add_etag(Response(200, style.encode(), version, headers))


def show_walletconnect(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """WalletConnect's script, as the operator has supplied it."""
    given = service.settings.walletconnect
    if given is None:
        raise errors.NotFound("script")
    headers = {**_FILE_HEADERS, "Content-Type": _SCRIPT}
    version = service.settings.versions.current
    return call.add_etag(Response(200, given.script, version, headers))


def show_pairing_code(service: PaymentsService, call: PageCall) -> Response:
    """The code of a WalletConnect URI, for the script of a link's page: the URI, which lets its
    holder take part in the pairing, is in the body, and is not kept."""
    from payments_core_http.pages.rendering import render_pairing_code

    service.refresh()
    service.checkout.read_page(call.path["code"], mode=call.mode)  # an unknown link is refused
    if service.settings.walletconnect is None:
        raise errors.NotFound("code")
    uri = call.body.get("uri", "")
    if not _PAIRING_URI.fullmatch(uri):
        raise errors.ValidationFailed.at("uri", "must be a WalletConnect URI")
    version = service.settings.versions.current
    return Response(200, render_pairing_code(uri), version, PAGE_HEADERS)


_PAIRING_URI = re.compile(r"wc:[!-~]{1,600}", re.ASCII)


def show_element(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The script of the element for shops: for pages of any origin."""
    from payments_core_http.pages.element import build_element

    headers = {
        **_FILE_HEADERS,
        "Content-Type": _SCRIPT,
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    version = service.settings.versions.current
    return call.add_etag(Response(200, build_element(), version, headers))


def _make_file_route(path: str, media_type: str, names: Sequence[str]) -> Route:
    headers = {**_FILE_HEADERS, "Content-Type": media_type}

    @cache
    def read_file() -> bytes:
        folder = files(__package__) / "static"
        whole = b"\n".join((folder / name).read_bytes() for name in names)
        return _COMMENTS.sub(b"", whole) if media_type == _SCRIPT else whole

    def answer(service: PaymentsService, call: ApiCall[None, None]) -> Response:
        version = service.settings.versions.current
        return call.add_etag(Response(200, read_file(), version, headers))

    return Route(
        "GET", path, answer, needs=None, response=Any, has_etag=True,
        summary="A part of the pages.",
    )  # fmt: skip


ROUTES: tuple[Row, ...] = (
    PageRoute(
        "GET", "/pay/{code}", show_checkout, needs=None, policy="payment_page",
        miss_policy="payment_link", errors=(errors.NotFound, errors.EntitlementRequired),
        render_error=show_error,
        summary="The page on which a payer pays.",
    ),
    PageRoute(
        "POST", "/pay/{code}", act, needs=None, policy="payment_page",
        miss_policy="payment_link", render_error=show_error, has_own_form=False,
        errors=(
            errors.NotFound, errors.EntitlementRequired, errors.InsufficientPermissions,
            errors.PaymentExpired, errors.CapabilityNotActive, errors.OptionLocked,
            errors.OptionExpired, errors.OptionSuperseded, errors.PaymentOptionLimitReached,
            errors.UnsupportedChain, errors.UnsupportedAsset, errors.DestinationNotAllowed,
            errors.ScreeningRefused, errors.DependencyFailed,
        ),
        summary="Ask a router or an on-ramp for an offer; in a sandbox, play the payer.",
    ),
    PageRoute(
        "POST", "/pay/{code}/pairing-code", show_pairing_code, needs=None, policy="payment_page",
        miss_policy="payment_link", render_error=show_error, has_own_form=False,
        errors=(errors.NotFound, errors.EntitlementRequired),
        summary="The code of a WalletConnect URI, for a wallet to scan.",
    ),
    Route(
        "GET", "/pay/assets/walletconnect.js", show_walletconnect, needs=None, response=Any,
        has_etag=True, errors=(errors.NotFound,), summary="The script of WalletConnect.",
    ),
    Route(
        "GET", "/pay/assets/accent.css", show_accent, needs=None, query=AccentQuery, response=Any,
        has_etag=True, summary="The color of a partner, made readable.",
    ),
    Route(
        "GET", "/checkout/element.js", show_element, needs=None, response=Any, has_etag=True,
        summary="The element that shows the checkout page in a shop's own page.",
    ),
    *(_make_file_route(path, *one) for path, one in _STATIC.items()),
)  # fmt: skip
"""The payer's pages are not part of the API, so the OpenAPI document does not have them."""
