"""The content of a checkout page, as values for its template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from urllib.parse import urljoin

import attrs

from payments_core.chains.port import NetworkKind
from payments_core.clock import MINUTE, format_iso
from payments_core.evolve import evolve
from payments_core.explorers import Explorer
from payments_core.networks import Networks
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.payments.checkout.stages import Stage
from payments_core.payments.record import Payment
from payments_core.payments.transitions import IN_REVIEW
from payments_core.pricing.shown import ShownPrice
from payments_core_http.pages.languages import Language
from payments_core_http.pages.methods import MethodPart, list_methods
from payments_core_http.pages.transfer_request import TransferRequest, build_request
from payments_core_http.pages.transfers import (
    PaidReceipt,
    Progress,
    TransferRow,
    build_progress,
    build_receipt,
    build_transfer,
    describe_receipt,
    is_in_review,
)
from payments_core_http.pages.words import (
    AMOUNT,
    AMOUNT_DUE,
    AMOUNT_STILL_DUE,
    ELSEWHERE_WORDS,
    HELD_AT_CLOSE_WORDS,
    IN_REVIEW_WORDS,
    LATE_PROCESSING_WORDS,
    MISDIRECTED_DUE_WORDS,
    MISDIRECTED_WORDS,
    NOT_LOOKED_WORDS,
    NOTICE_WORDS,
    PAID_WITH_NEWS_WORDS,
    PART_PROCESSING_WORDS,
    SAID_BEFORE,
    STAGE_WORDS,
    UNDONE_WORDS,
    Tone,
    Words,
)

_TIMED: tuple[Stage, ...] = ("waiting", "part_paid")
"""The stages in which the payer must know when the Payment expires."""

_PASSING: tuple[Stage, ...] = (*_TIMED, "ending", "processing", "received")
"""The stages that pass by themselves, so that the page polls."""

_POLL_MS = 10_000
_SOON_MS = 2_000
"""How often the script checks whether the page has changed: more often after a wallet has sent a
transfer, and while one will soon count."""

_STALE_MS = 10 * MINUTE
"""From then on the last scan says nothing of the present; a scan is due at least each minute."""

_RETURN_MS = 5 * MINUTE
"""So long after the change the page leads back to the merchant by itself: who opens it later wants
to read it."""

_ENDED_EMPTY: tuple[Stage, ...] = ("expired", "cancelled")

_MAX_NAMED = 5
"""How many misdirected transfers the notice about them names; the list has all."""

ChooseExplorer = Callable[[int], Explorer]
"""The explorer of a chain, by its number."""

_WITH_WALLETS: tuple[NetworkKind, ...] = ("real", "testnet", "local")
"""Where wallets have buttons: the script compares the wallet's network with ours."""

_GOOD: tuple[Stage, ...] = ("received", "paid")
_UNPAID: tuple[Stage, ...] = (*_TIMED, *_ENDED_EMPTY)
_ON_THE_WAY: tuple[Stage, ...] = ("ending", "processing")
"""The stages in which a transfer may be on its way, so that the payer should stay."""


@attrs.frozen(kw_only=True)
class Message:
    """A heading and a text in the reader's language."""

    tone: Tone
    heading: str
    text: str


@attrs.frozen(kw_only=True)
class CheckoutView:
    """The whole page; the script asks for it again every `poll_ms` while it `may_change`.

    `shown_amount` is what is still due, or the whole `amount` while nothing is. `total` is about
    what an amount that is due is worth, and None without a recent price. `accent` is
    the partner's color as six hexadecimal digits. `landmark` is a block (height, hash) that the
    script looks for on the wallet's network. `client_secret` is set while the script may pay from a
    wallet.
    """

    payment_id: str
    status_version: int
    client_secret: str | None = attrs.field(repr=False)
    merchant: str
    logo_url: str | None
    accent: str | None
    amount: str
    amount_label: str
    shown_amount: str
    total: str | None
    network: str
    network_kind: NetworkKind
    landmark: tuple[int, str] | None
    description: str | None
    reference: str | None
    stage: Stage
    state: Message
    notices: tuple[Message, ...]
    progress: Progress | None
    request: TransferRequest | None
    methods: tuple[MethodPart, ...]
    transfers: tuple[TransferRow, ...]
    receipt: PaidReceipt | None
    expires_at: str | None
    expires_iso: str | None
    left_ms: int | None
    may_change: bool
    poll_ms: int
    is_elsewhere: bool
    """Whether it waits for a payment that this page cannot take: the merchant's app does."""
    warns_first: bool
    """Whether the payer must look elsewhere before paying, so that no way to pay is filled."""
    return_url: str | None
    returns_soon: bool
    """Whether the script leads back by itself."""


def build_view(
    page: CheckoutPage,
    language: Language,
    kind: NetworkKind,
    networks: Networks,
    choose_explorer: ChooseExplorer,
    price: ShownPrice | None = None,
) -> CheckoutView:
    """The page in the reader's language; `kind` is where the Payment's chain is, and `price` what
    one whole token of its asset is worth."""
    payment = page.payment
    network = _name_network(networks.name_network(payment.chain_id), kind, language)
    amounts = _format_amounts(page, language, networks)
    is_submitted = "submitted" in page.notices
    words = _choose_words(page)
    is_timed = (page.stage in _TIMED or page.due_atomic > 0) and not is_submitted
    is_late = _is_late_pending(page)
    progress = build_progress(page, page.receipts, language, networks)
    return_url = None if is_submitted or is_late else _choose_return_url(payment, page.stage)
    return CheckoutView(
        payment_id=payment.id,
        status_version=payment.status_version,
        client_secret=page.client_secret if kind in _WITH_WALLETS and page.landmark else None,
        merchant=page.branding.name or page.app_name,
        logo_url=page.branding.logo_url,
        accent=_strip_color(page.branding.primary_color),
        amount=amounts["amount"],
        amount_label=language.translate(_choose_amount_label(page)),
        shown_amount=amounts["due" if page.due_atomic else "amount"],
        total=_describe_total(page, price, language),
        network=network,
        network_kind=kind,
        landmark=page.landmark,
        description=payment.description,
        reference=payment.reference,
        stage=page.stage,
        state=_translate_words(words, language, amounts),
        notices=tuple(
            _translate_words(notice, language, amounts)
            for name in page.notices
            if (notice := NOTICE_WORDS[name]) is not words and name != SAID_BEFORE.get(words)
        ),
        progress=progress,
        request=None
        if not page.due_atomic
        else build_request(
            page, language, network, networks, kind, choose_explorer(payment.chain_id)
        ),
        methods=list_methods(page, language, networks),
        transfers=tuple(
            build_transfer(page, receipt, language, networks, choose_explorer(receipt.chain_id))
            for receipt in page.receipts
        ),
        receipt=build_receipt(page, language),
        expires_at=language.format_instant(payment.expires_at_ms) if is_timed else None,
        expires_iso=format_iso(payment.expires_at_ms) if is_timed else None,
        left_ms=payment.expires_at_ms - page.looked_at if is_timed else None,
        may_change=page.stage in _PASSING or is_late,
        poll_ms=_SOON_MS if is_submitted or (progress and progress.is_soon) else _POLL_MS,
        is_elsewhere=_is_elsewhere(page),
        warns_first=words is UNDONE_WORDS,
        return_url=return_url,
        returns_soon=page.stage in _GOOD
        and return_url is not None
        and not page.notices  # they are to be read
        and IN_REVIEW not in payment.labels
        and page.looked_at - payment.updated_at_ms < _RETURN_MS,
    )


def _format_amounts(page: CheckoutPage, language: Language, networks: Networks) -> dict[str, str]:
    """The amounts of the Payment, by the names that the texts have for them."""
    payment = page.payment
    amounts = {
        name: language.format_amount(amount_atomic, payment.asset)
        for name, amount_atomic in {
            "amount": payment.amount_atomic,
            "received": payment.received_atomic,
            "remaining": payment.remaining.amount_atomic,
            "due": page.due_atomic,
            "refunded": payment.refunded_atomic,
            "refunding": page.refunding_atomic,
            "excess": payment.excess_atomic,
            "held": max(0, payment.books.held_atomic),
        }.items()
    }
    held = [
        describe_receipt(one, payment, language, networks)
        for one in page.receipts
        if one.holds_misdirected
    ]
    more = ["…"] if len(held) > _MAX_NAMED else []
    amounts["misdirected"] = language.join((*held[:_MAX_NAMED], *more))
    return amounts


def _describe_total(page: CheckoutPage, price: ShownPrice | None, language: Language) -> str | None:
    """About what is due in the price's currency; None if that is not known, or nothing."""
    if price is None:
        return None
    due = Fraction(page.due_atomic, 10**page.payment.asset.decimals)
    return language.format_currency(price.per_token * due, price.currency)


def _choose_amount_label(page: CheckoutPage) -> str:
    if not page.due_atomic:
        return AMOUNT
    return AMOUNT_DUE if page.due_atomic == page.payment.amount_atomic else AMOUNT_STILL_DUE


def _choose_words(page: CheckoutPage) -> Words:
    """The first words of the page: usually those of its stage."""
    if page.stage == "waiting" and "submitted" in page.notices:
        return NOTICE_WORDS["submitted"]
    if page.stage == "processing" and page.due_atomic:
        return PART_PROCESSING_WORDS
    if _is_late_pending(page):
        return LATE_PROCESSING_WORDS
    if page.stage == "waiting" and "misdirected" in page.notices:
        return MISDIRECTED_DUE_WORDS
    if "misdirected" in page.payment.labels and page.stage in MISDIRECTED_WORDS:
        return MISDIRECTED_WORDS[page.stage]
    if page.stage == "waiting" and any(one.status == "reorged" for one in page.receipts):
        return UNDONE_WORDS
    if page.stage in NOT_LOOKED_WORDS and _is_unseen(page):
        words = NOT_LOOKED_WORDS[page.stage]
        is_elsewhere = page.stage == "waiting" and _is_elsewhere(page)
        return evolve(words, heading=ELSEWHERE_WORDS.heading) if is_elsewhere else words
    if page.stage == "waiting" and _is_elsewhere(page):
        return ELSEWHERE_WORDS
    if is_in_review(page):
        return IN_REVIEW_WORDS
    if page.stage == "paid" and page.notices:
        return PAID_WITH_NEWS_WORDS
    if page.stage == "failed" and page.payment.books.held_atomic > 0:
        return HELD_AT_CLOSE_WORDS
    return STAGE_WORDS[page.stage]


def _is_unseen(page: CheckoutPage) -> bool:
    """Whether nobody has looked at the network for so long that nothing can be said of it."""
    return page.scanned_at_ms is None or page.looked_at - page.scanned_at_ms > _STALE_MS


def _is_elsewhere(page: CheckoutPage) -> bool:
    """Whether it waits for a payment that the page cannot take."""
    return page.stage in _TIMED and not page.due_atomic and "submitted" not in page.notices


def _is_late_pending(page: CheckoutPage) -> bool:
    """Whether a transfer is in transit to a Payment that ended with nothing received."""
    return page.stage in _ENDED_EMPTY and page.pending_atomic > 0


def _strip_color(color: str | None) -> str | None:
    """The color as in the address of its style sheet."""
    return None if color is None else color.removeprefix("#").lower()


def _choose_return_url(payment: Payment, stage: Stage) -> str | None:
    """Where the page leads back to: where the merchant sends a payer who has paid, or who cancels.

    After any other end it is the front page of the merchant's site: the one of these URLs would
    promise what is not so, and the other may offer the cart again to a payer who has paid. None
    while a transfer may be on its way.
    """
    if stage in _GOOD:
        return payment.success_url
    if stage in _UNPAID:
        return payment.cancel_url
    named = payment.cancel_url or payment.success_url
    return None if stage in _ON_THE_WAY or named is None else urljoin(named, "/")


def _translate_words(words: Words, language: Language, amounts: Mapping[str, str]) -> Message:
    return Message(
        tone=words.tone,
        heading=language.translate(words.heading),
        text=language.translate(words.text, **amounts),
    )


def _name_network(name: str, kind: NetworkKind, language: Language) -> str:
    """The network's name, which says if it is not the network that wallets know by it."""
    if kind == "real":
        return name
    return language.translate("%(network)s (test network)", network=name)
