"""The transfers that were seen: how far each is, and the receipt of a Payment that was paid."""

from __future__ import annotations

import attrs

from payments_core.clock import MINUTE, SECOND, format_iso
from payments_core.explorers import Explorer
from payments_core.networks import Networks
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.payments.checkout.stages import Stage
from payments_core.payments.receipts.progress import ReceiptProgress, find_progress
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.transitions import IN_REVIEW
from payments_core_http.pages.languages import Language
from payments_core_http.pages.words import RECEIPT_WORDS, SENT_BACK, UNKNOWN_TOKEN

_WITH_RECEIPT: tuple[Stage, ...] = ("received", "paid", "partially_refunded", "refunded")

_SOON_MS = 90 * SECOND
_STEP_MS = 5 * SECOND
"""An estimate below `_SOON_MS` is in seconds, in steps: the page changes no more often."""


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
class Progress:
    """How far the newest transfer is that does not count yet; `required` is None if nobody knows
    how many confirmations there must be, and `is_soon` if they are there within a minute."""

    text: str
    confirmations: int
    required: int | None
    is_soon: bool


@attrs.frozen(kw_only=True)
class PaidReceipt:
    """When the last transfer that counts arrived, in the reader's words and as ISO 8601, and what
    was sent back of it; None for nothing."""

    arrived_at: str
    arrived_iso: str
    refunded: str | None


def build_transfer(
    page: CheckoutPage,
    receipt: Receipt,
    language: Language,
    networks: Networks,
    explorer: Explorer,
) -> TransferRow:
    """The row of one transfer."""
    is_back = receipt.is_misdirected and not receipt.holds_misdirected
    progress = build_progress(page, (receipt,), language, networks)
    return TransferRow(
        amount=describe_receipt(receipt, page.payment, language, networks),
        status=language.translate(SENT_BACK if is_back else RECEIPT_WORDS[receipt.status]),
        progress=None if progress is None else progress.text,
        transaction_hash=receipt.transaction_hash,
        transaction_url=explorer.link_transaction(receipt.transaction_hash),
    )


def is_in_review(page: CheckoutPage) -> bool:
    """Whether what has arrived is held for a check, before it is passed on."""
    return page.stage == "received" and IN_REVIEW in page.payment.labels


def build_receipt(page: CheckoutPage, language: Language) -> PaidReceipt | None:
    """The receipt of a Payment that was paid; None if it was not, or is held for a check."""
    arrived = [one.observed_at_ms for one in page.receipts if one.status == "verified"]
    if page.stage not in _WITH_RECEIPT or is_in_review(page) or not arrived:
        return None
    payment = page.payment
    return PaidReceipt(
        arrived_at=language.format_instant(max(arrived)),
        arrived_iso=format_iso(max(arrived)),
        refunded=language.format_amount(payment.refunded_atomic, payment.asset)
        if payment.refunded_atomic
        else None,
    )


def describe_receipt(
    receipt: Receipt, payment: Payment, language: Language, networks: Networks
) -> str:
    """What arrived: the amount with its own token, and the network if it is another."""
    token = receipt.token
    if token is None:
        return language.translate(UNKNOWN_TOKEN)
    amount = language.format_amount(receipt.amount_atomic, token)
    if receipt.chain_id == payment.chain_id:
        return amount
    return f"{amount} ({networks.name_network(receipt.chain_id)})"


def build_progress(
    page: CheckoutPage, receipts: tuple[Receipt, ...], language: Language, networks: Networks
) -> Progress | None:
    """How far the newest of the transfers is that does not count yet; None without one."""
    network = networks.get(page.payment.chain_id)
    found = find_progress(page.payment, receipts, network, page.scanned_height)
    if found is None:
        return None
    left_ms = None
    if found.estimated_at_ms is not None and found.estimated_at_ms > page.looked_at:
        left_ms = found.estimated_at_ms - page.looked_at
    counted = _count_confirmations(found, language)
    return Progress(
        text=counted
        if left_ms is None
        else language.join((counted, _describe_left(left_ms, language))),
        confirmations=min(found.confirmations, found.required or 0),
        required=found.required or None,
        is_soon=left_ms is not None and left_ms <= MINUTE,
    )


def _count_confirmations(progress: ReceiptProgress, language: Language) -> str:
    blocks = language.format_number(progress.confirmations)
    if not progress.required:
        return language.translate_count(
            "%(blocks)s confirmation so far",
            "%(blocks)s confirmations so far",
            progress.confirmations,
            blocks=blocks,
        )
    return language.translate_count(
        "%(blocks)s of %(wanted)s confirmation",
        "%(blocks)s of %(wanted)s confirmations",
        progress.required,
        blocks=blocks,
        wanted=language.format_number(progress.required),
    )


def _describe_left(left_ms: int, language: Language) -> str:
    """Rounded up: who is promised too much looks too early."""
    if left_ms > _SOON_MS:
        minutes = -(-left_ms // MINUTE)
        return language.translate_count(
            "about %(minutes)s\u00a0min",
            "about %(minutes)s\u00a0min",
            minutes,
            minutes=language.format_number(minutes),
        )
    seconds = -(-left_ms // _STEP_MS) * _STEP_MS // SECOND
    return language.translate_count(
        "about %(seconds)s\u00a0s",
        "about %(seconds)s\u00a0s",
        seconds,
        seconds=language.format_number(seconds),
    )
