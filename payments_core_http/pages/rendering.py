"""Fills the templates: the bytes of a page, of a Payment or of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import jinja2

from payments_core.errors import PaymentsError
from payments_core.evolve import evolve
from payments_core.payments.options.submissions import SUBMISSION_LOCK_MS
from payments_core_http.calls import make_etag
from payments_core_http.errors import status_of
from payments_core_http.pages.checkout import CheckoutView, build_view
from payments_core_http.pages.choices import make_choice_token
from payments_core_http.pages.error_words import find_error_words
from payments_core_http.pages.languages import LANGUAGES, Language, choose_language
from payments_core_http.pages.pairing import PAIRING_WORDS, Pairing, find_pairing
from payments_core_http.pages.qr_codes import render_qr_code
from payments_core_http.pages.sandbox_panel import PanelForm, build_panel
from payments_core_http.pages.words import NETWORK_WORDS, REACH_WORDS, WALLET_WORDS

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

RETURN_DELAY_MS = 3_000
"""How long the page of a Payment that was paid stays before it leads back to the merchant."""

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("payments_core_http.pages"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


@attrs.frozen
class ChoiceForms:
    """What the forms of the methods' parts send besides, and the method shown first."""

    token: str = attrs.field(repr=False)
    lang: str
    shown: str | None


@attrs.frozen
class BuiltPage:
    """The content of a page, before it is rendered; the `etag` differs if anything differs.

    The remaining time differs in each answer and does not change the tag: a header of every answer
    has it, and the page counts it down. Nor does the landmark: an older one serves as well.
    """

    api_version: str
    language: Language
    view: CheckoutView
    panel: tuple[PanelForm, ...]
    choices: ChoiceForms
    frame_origin: str | None
    """The shop's origin that frames the page; None if the page may not be framed."""
    pairing: Pairing | None
    """How a wallet is paired by WalletConnect; None where the page cannot pay so."""
    etag: str

    @property
    def has_forms(self) -> bool:
        """Whether the page has a form, which its policy must then allow."""
        return bool(self.panel) or any(one.name != "direct" for one in self.view.methods)

    def render(self, mode: str) -> bytes:
        """The page's bytes."""
        is_pairing = self.pairing is not None and self.pairing.is_asking
        return _render(
            "checkout.html",
            self.language,
            view=self.view,
            panel=self.panel,
            choices=self.choices,
            frame_origin=self.frame_origin,
            etag=self.etag,
            network_words=NETWORK_WORDS[self.view.network_kind] if mode == "sandbox" else None,
            reach_words=REACH_WORDS.get(self.view.network_kind),
            pairing=self.pairing,
            wallet_words={**WALLET_WORDS, **(PAIRING_WORDS if is_pairing else {})},
            lock_ms=SUBMISSION_LOCK_MS,
            return_ms=RETURN_DELAY_MS,
        )


def build_checkout(
    service: PaymentsService,
    mode: str,
    code: str,
    wanted: str | None,
    accept_language: str | None,
    shown: str | None = None,
    framing: str | None = None,
    wallet: str | None = None,
) -> BuiltPage:
    """The page of a link, in the language that its reader chose or that the browser prefers, with
    the part of the method that is to be `shown` first. The origin `framing` may frame it if the
    payment settings allow that origin. `wallet` is the kind of wallet that the payer asks for.

    Raises NotFound, EntitlementRequired.
    """
    page = service.checkout.read_page(code, mode=mode)
    language = choose_language(wanted, accept_language)
    kind = service.find_network_kind(page.payment.chain_id)
    shown_prices, currency = service.parts.shown_prices, page.branding.currency
    price = shown_prices.find(mode, page.payment.asset, currency) if page.due_atomic else None
    networks, settings = service.networks, service.settings
    view = build_view(page, language, kind, networks, service.choose_explorer, price)
    pairing = None
    if view.request and view.client_secret:
        network = networks.get(page.payment.chain_id)
        pairing = find_pairing(settings.walletconnect, kind, network, wallet)
    panel = build_panel(service, mode, code, page, language)
    token = make_choice_token(service.parts.ports.key_ring, code)
    choices = ChoiceForms(token, language.tag, shown)
    timeless = attrs.asdict(evolve(view, left_ms=None, landmark=None))
    frame_origin = framing if framing in page.allowed_origins else None
    tag = make_etag(repr((language.tag, timeless, panel, shown, frame_origin, pairing)).encode())
    version = page.payment.api_version
    return BuiltPage(version, language, view, panel, choices, frame_origin, pairing, tag)


def render_pairing_code(uri: str) -> bytes:
    """A page of nothing but the code of a WalletConnect URI, which the script takes out of it."""
    return f"<!doctype html><title>WalletConnect</title>{render_qr_code(uri)}".encode()


def render_error_page(
    error: PaymentsError,
    request_id: str,
    wanted: str | None,
    accept_language: str | None,
    *,
    is_form: bool,
) -> bytes:
    """The page of an error, in words for a payer, with a way back to the page of a form."""
    words = find_error_words(error, status_of(type(error)), is_form=is_form)
    language = choose_language(wanted, accept_language)
    return _render(
        "error.html",
        language,
        words=words,
        code=error.code,
        request_id=request_id,
        is_form=is_form,
    )


def _render(template: str, language: Language, **values: Any) -> bytes:
    page = _TEMPLATES.get_template(template).render(
        _=language.translate, language=language, languages=LANGUAGES, **values
    )
    return page.encode()
