"""Charts: the outcomes of the newest Payments and of an endpoint's newest deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from payments_core.engine.idempotency.record import Response
from payments_core.money import format_amount
from payments_core.networks import Asset
from payments_core.payments.record import Payment
from payments_core.webhooks.record import DeliveryStatus
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.charts import Chart, make_chart
from payments_core_http.dashboard.rendering import render_page
from payments_core_http.dashboard.words import STATUS_WORDS, Tone

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

MAX_PAYMENTS = 500
"""The number of Payments that are read for one chart."""

MAX_DELIVERIES = 200
"""The number of deliveries that are read for one chart: each contains its body."""

PAYMENT_TONES: Mapping[Tone, str] = {
    "good": "Succeeded",
    "wait": "Under way",
    "warn": "Needs a decision, or failed",
    "end": "Ended without payment, or refunded",
}
DELIVERY_TONES: Mapping[Tone, str] = {
    "good": "Delivered",
    "wait": "Waiting for an attempt",
    "warn": "Abandoned",
}
_TONE_OF_DELIVERY: Mapping[DeliveryStatus, Tone] = {
    "delivered": "good",
    "pending": "wait",
    "failed": "wait",
    "abandoned": "warn",
}


def show_activity(service: PaymentsService, call: PageCall) -> Response:
    """The volume of Payments over time, by their creation."""
    page = call.resources.payments.list_briefly(limit=MAX_PAYMENTS)
    chart = make_chart(
        PAYMENT_TONES,
        ((payment.created_at_ms, STATUS_WORDS[payment.status].tone) for payment in page.records),
        now=service.parts.ports.clock.now(),
        is_cut=page.next is not None,
    )
    return render_page(
        call,
        "activity.html",
        section="activity",
        chart=chart,
        released=_sum_released(page.records, chart),
    )


def show_health(service: PaymentsService, call: PageCall) -> Response:
    """The outcomes of an endpoint's deliveries over time, by their last change."""
    endpoint, page = call.resources.webhooks.list_deliveries(
        call.path["webhookId"], limit=MAX_DELIVERIES
    )
    chart = make_chart(
        DELIVERY_TONES,
        ((one.updated_at_ms, _TONE_OF_DELIVERY[one.status]) for one in page.records),
        now=service.parts.ports.clock.now(),
        is_cut=page.next is not None,
    )
    return render_page(call, "health.html", section="webhooks", endpoint=endpoint, chart=chart)


@attrs.frozen
class Released:
    """What Payments released to recipients: the amounts by token, in words, and how many did.

    `refunded` and `refunded_payments` are what these have refunded since.
    """

    amounts: Sequence[str]
    payments: int
    refunded: Sequence[str]
    refunded_payments: int


def _sum_released(payments: Sequence[Payment], chart: Chart | None) -> Released:
    """What the Payments in the chart released, and what of them was refunded later."""
    start = chart.bars[0].start if chart else 0
    found = [one for one in payments if one.settled_atomic and one.created_at_ms >= start]
    refunded = [one for one in found if one.refunded_atomic]
    return Released(
        amounts=_sum_by_token((one.asset, one.settled_atomic) for one in found),
        payments=len(found),
        refunded=_sum_by_token((one.asset, one.refunded_atomic) for one in refunded),
        refunded_payments=len(refunded),
    )


def _sum_by_token(amounts: Iterable[tuple[Asset, int]]) -> Sequence[str]:
    sums: Counter[tuple[str, int]] = Counter()
    for asset, amount_atomic in amounts:
        sums[asset.symbol, asset.decimals] += amount_atomic
    return [f"{format_amount(sums[one], one[1])} {one[0]}" for one in sorted(sums)]
