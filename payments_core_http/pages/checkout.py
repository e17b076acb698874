"""The content of a checkout page, as values for its template."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import markupsafe

from payments_core.chains.port import NetworkKind
from payments_core.clock import MINUTE, format_iso
from payments_core.explorers import Explorer
from payments_core.money import format_amount
from payments_core.networks import Asset, Networks
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.payments.checkout.stages import Stage
from payments_core.payments.receipts.progress import find_progress
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core_http.pages.languages import Language
from payments_core_http.pages.qr_codes import render_qr_code
from payments_core_http.pages.words import (
    HELD_AT_CLOSE_WORDS,
    LATE_PROCESSING_WORDS,
    MISDIRECTED_WORDS,
    NOTICE_WORDS,
    PART_PROCESSING_WORDS,
    RECEIPT_WORDS,
    SENT_BACK,
    STAGE_WORDS,
    UNDONE_WORDS,
    UNKNOWN_TOKEN,
    Tone,
    Words,
)

_TIMED: tuple[Stage, ...] = ("waiting", "part_paid")
"""The stages in which the payer must know when the Payment expires."""

_PASSING: tuple[Stage, ...] = (*_TIMED, "ending", "processing", "received")
"""The stages that pass by themselves, so that the page polls."""

_POLL_MS = 10_000
_SOON_MS = 2_000
"""How often the script checks whether the page has changed: more often after a transfer."""

_ENDED_EMPTY: tuple[Stage, ...] = ("expired", "cancelled")

_MAX_NAMED = 5
"""How many misdirected transfers the notice about them names; the list has all."""

ChooseExplorer = Callable[[int], Explorer]
"""The explorer of a chain, by its number."""

_WITH_WALLETS: tuple[NetworkKind, ...] = ("real", "testnet", "local")
"""Where wallets have buttons: the script compares the wallet's network with ours."""

_WITH_LINKS: tuple[NetworkKind, ...] = ("real", "testnet")
"""Where a payment request is a link and a code. Nothing compares the network that these lead to:
it is the public one, whatever the sandbox has instead."""

_GOOD: tuple[Stage, ...] = ("received", "paid")
_UNPAID: tuple[Stage, ...] = (*_TIMED, *_ENDED_EMPTY)


@attrs.frozen(kw_only=True)
class Message:
    """A heading and a text in the reader's language."""

    tone: Tone
    heading: str
    text: str


@attrs.frozen(kw_only=True)
class TransferRequest:
    """What to send, where, and how: in words, to copy, and as two codes to scan.

    `typed_amount` is the amount as wallets take it. The script pays with `amount_atomic`, and
    compares `decimals` with what the wallet's network has. `codes` is None where wallets must not
    be led to the network. `to_url` and `token_url` are the explorer's pages of the two addresses.
    """

    amount: str
    typed_amount: str
    amount_atomic: int
    decimals: int
    symbol: str
    network: str
    chain_id: int
    token_address: str
    token_url: str | None
    to: str
    to_url: str | None
    codes: RequestCodes | None


@attrs.frozen(kw_only=True)
class RequestCodes:
    """EIP-681's request to pay, as a link and as a code, and the code of the address alone."""

    payment_uri: str
    payment_code: markupsafe.Markup
    address_code: markupsafe.Markup


@attrs.frozen(kw_only=True)
class TransferRow:
    """A transfer that was seen; `progress` counts the blocks on top while it is not final, and
    `transaction_url` is the explorer's page of it."""

    amount: str
    status: str
    progress: str | None
    transaction_hash: str
    transaction_url: str | None


@attrs.frozen(kw_only=True)
class CheckoutView:
    """The whole page; the script asks for it again every `poll_ms` while it `may_change`.

    `accent` is the partner's color as six hexadecimal digits. `landmark` is a block (height, hash)
    that the script looks for on the wallet's network. `client_secret` is set while the script may
    pay from a wallet.
    """

    payment_id: str
    status_version: int
    client_secret: str | None = attrs.field(repr=False)
    merchant: str | None
    logo_url: str | None
    accent: str | None
    amount: str
    network: str
    network_kind: NetworkKind
    landmark: tuple[int, str] | None
    description: str | None
    reference: str | None
    stage: Stage
    state: Message
    notices: tuple[Message, ...]
    request: TransferRequest | None
    transfers: tuple[TransferRow, ...]
    expires_at: str | None
    expires_iso: str | None
    left_ms: int | None
    may_change: bool
    poll_ms: int
    is_elsewhere: bool
    """Whether it waits for a payment that this page cannot take: the merchant's app does."""
    return_url: str | None


def build_view(
    page: CheckoutPage,
    language: Language,
    kind: NetworkKind,
    networks: Networks,
    choose_explorer: ChooseExplorer,
) -> CheckoutView:
    """The page in the reader's language; `kind` is where the Payment's chain is."""
    payment = page.payment
    network = _name_network(networks.name_network(payment.chain_id), kind, language)
    amounts = {
        name: language.format_amount(amount_atomic, payment.asset)
        for name, amount_atomic in {
            "amount": payment.amount_atomic,
            "received": payment.received_atomic,
            "remaining": payment.remaining.amount_atomic,
            "due": page.due_atomic,
            "refunded": payment.refunded_atomic,
            "excess": payment.excess_atomic,
            "held": max(0, payment.books.held_atomic),
        }.items()
    }
    held = [
        _describe(one, payment, language, networks)
        for one in page.receipts
        if one.holds_misdirected
    ]
    more = ["…"] if len(held) > _MAX_NAMED else []
    amounts["misdirected"] = ", ".join([*held[:_MAX_NAMED], *more])
    is_submitted = "submitted" in page.notices
    words = _choose_words(page)
    is_timed = (page.stage in _TIMED or page.due_atomic > 0) and not is_submitted
    return CheckoutView(
        payment_id=payment.id,
        status_version=payment.status_version,
        client_secret=page.client_secret if kind in _WITH_WALLETS and page.landmark else None,
        merchant=page.branding.name,
        logo_url=page.branding.logo_url,
        accent=_strip_color(page.branding.primary_color),
        amount=amounts["amount"],
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
            if (notice := NOTICE_WORDS[name]) is not words
        ),
        request=_build_request(page, language, network, kind, choose_explorer(payment.chain_id))
        if page.due_atomic
        else None,
        transfers=tuple(
            _build_transfer(page, receipt, language, networks, choose_explorer(receipt.chain_id))
            for receipt in page.receipts
        ),
        expires_at=language.format_instant(payment.expires_at_ms) if is_timed else None,
        expires_iso=format_iso(payment.expires_at_ms) if is_timed else None,
        left_ms=payment.expires_at_ms - page.looked_at if is_timed else None,
        may_change=page.stage in _PASSING or _is_late_pending(page),
        poll_ms=_SOON_MS if is_submitted else _POLL_MS,
        is_elsewhere=page.stage in _TIMED and not page.due_atomic and not is_submitted,
        return_url=None
        if is_submitted or _is_late_pending(page)
        else _choose_return_url(payment, page.stage),
    )


def _choose_words(page: CheckoutPage) -> Words:
    """The first words of the page: usually those of its stage."""
    if page.stage == "waiting" and "submitted" in page.notices:
        return NOTICE_WORDS["submitted"]
    if page.stage == "processing" and page.due_atomic:
        return PART_PROCESSING_WORDS
    if _is_late_pending(page):
        return LATE_PROCESSING_WORDS
    if "misdirected" in page.payment.labels and page.stage in MISDIRECTED_WORDS:
        return MISDIRECTED_WORDS[page.stage]
    if page.stage == "waiting" and any(one.status == "reorged" for one in page.receipts):
        return UNDONE_WORDS
    if page.stage == "failed" and page.payment.books.held_atomic > 0:
        return HELD_AT_CLOSE_WORDS
    return STAGE_WORDS[page.stage]


def _is_late_pending(page: CheckoutPage) -> bool:
    """Whether a transfer is in transit to a Payment that ended with nothing received."""
    return page.stage in _ENDED_EMPTY and page.pending_atomic > 0


def _strip_color(color: str | None) -> str | None:
    """The color as in the address of its style sheet."""
    return None if color is None else color.removeprefix("#").lower()


def _choose_return_url(payment: Payment, stage: Stage) -> str | None:
    """Where the merchant sends the payer back to; None while the merchant itself must act."""
    if stage in _GOOD:
        return payment.success_url
    return payment.cancel_url if stage in _UNPAID else None


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


def _build_request(
    page: CheckoutPage,
    language: Language,
    network: str,
    kind: NetworkKind,
    explorer: Explorer,
) -> TransferRequest:
    payment, asset = page.payment, page.payment.asset
    to = payment.escrow_address
    assert to is not None, "nothing is due without an escrow"
    return TransferRequest(
        amount=language.format_amount(page.due_atomic, asset),
        typed_amount=format_amount(page.due_atomic, asset.decimals),
        amount_atomic=page.due_atomic,
        decimals=asset.decimals,
        symbol=asset.symbol,
        network=network,
        chain_id=asset.chain_id,
        token_address=asset.address,
        token_url=explorer.link_address(asset.address),
        to=to,
        to_url=explorer.link_address(to),
        codes=_build_codes(asset, to, page.due_atomic) if kind in _WITH_LINKS else None,
    )


def _build_codes(asset: Asset, to: str, amount: int) -> RequestCodes:
    uri = f"ethereum:{asset.address}@{asset.chain_id}/transfer?address={to}&uint256={amount}"
    return RequestCodes(
        payment_uri=uri, payment_code=render_qr_code(uri), address_code=render_qr_code(to)
    )


def _build_transfer(
    page: CheckoutPage,
    receipt: Receipt,
    language: Language,
    networks: Networks,
    explorer: Explorer,
) -> TransferRow:
    is_back = receipt.is_misdirected and not receipt.holds_misdirected
    return TransferRow(
        amount=_describe(receipt, page.payment, language, networks),
        status=language.translate(SENT_BACK if is_back else RECEIPT_WORDS[receipt.status]),
        progress=_describe_progress(page, receipt, language, networks),
        transaction_hash=receipt.transaction_hash,
        transaction_url=explorer.link_transaction(receipt.transaction_hash),
    )


def _describe(receipt: Receipt, payment: Payment, language: Language, networks: Networks) -> str:
    """What arrived: the amount with its own token, and the network if it is another."""
    token = receipt.token
    if token is None:
        return language.translate(UNKNOWN_TOKEN)
    amount = language.format_amount(receipt.amount_atomic, token)
    if receipt.chain_id == payment.chain_id:
        return amount
    return f"{amount} ({networks.name_network(receipt.chain_id)})"


def _describe_progress(
    page: CheckoutPage, receipt: Receipt, language: Language, networks: Networks
) -> str | None:
    """How far a transfer is that does not count yet, and when it counts, about."""
    network = networks.get(receipt.chain_id)
    progress = find_progress(page.payment, (receipt,), network, page.scanned_height)
    if progress is None:
        return None
    blocks = language.format_number(progress.confirmations)
    if progress.required:
        wanted = language.format_number(progress.required)
        said = language.translate(
            "confirmations: %(blocks)s of %(wanted)s", blocks=blocks, wanted=wanted
        )
    else:
        said = language.translate("confirmations: %(blocks)s", blocks=blocks)
    if progress.estimated_at_ms is None or progress.estimated_at_ms <= page.looked_at:
        return said
    minutes = -(-(progress.estimated_at_ms - page.looked_at) // MINUTE)
    left = language.translate(
        "accepted in about %(minutes)s min", minutes=language.format_number(minutes)
    )
    return f"{said} · {left}"
