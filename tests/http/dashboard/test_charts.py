"""Charts: which bars there are, what they count, and how much is read for them."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.clock import DAY, HOUR, MINUTE
from payments_core.payments.transitions import PAYMENT
from payments_core.storage.memory.transaction import MemorySnapshot
from payments_core.webhooks.lifecycle import DELIVERY
from payments_core_http.dashboard import activity
from payments_core_http.dashboard.activity import _TONE_OF_DELIVERY, PAYMENT_TONES
from payments_core_http.dashboard.charts import HEIGHT, MAX_BARS, MIN_BARS, WIDTH, Chart, make_chart
from payments_core_http.dashboard.words import STATUS_WORDS
from tests.http.checkout import Checkout
from tests.http.console import LATER, NEVER, OK, Console
from tests.http.dashboard.operator_browser import open_browser

NAMES = {"good": "Good", "warn": "Bad"}
NOW = 1_790_000_000_000 // (28 * DAY) * (28 * DAY) + 27 * DAY + 23 * HOUR + 59 * MINUTE


def draw(*points: tuple[int, str], is_cut: bool = False) -> Chart:
    chart = make_chart(NAMES, points, now=NOW, is_cut=is_cut)  # type: ignore[arg-type]
    assert chart is not None
    return chart


class TestBars:
    def test_nothing_is_not_a_chart(self) -> None:
        assert make_chart(PAYMENT_TONES, [], now=NOW, is_cut=False) is None

    @pytest.mark.parametrize(
        ("age", "step", "count"),
        [
            (0, "minute", 12), (29 * MINUTE, "minute", 30), (30 * MINUTE, "5 minutes", 12),
            (3 * HOUR, "15 minutes", 13), (20 * HOUR, "hour", 21), (6 * DAY, "6 hours", 25),
            (29 * DAY, "day", 30), (30 * DAY, "7 days", 12), (800 * DAY, "28 days", 29),
            (9_000 * DAY, "28 days", 30),
        ],
    )  # fmt: skip
    def test_the_step_fits_the_time(self, age: int, step: str, count: int) -> None:
        chart = draw((NOW - age, "good"), (NOW, "warn"))
        assert (chart.step, len(chart.bars)) == (step, count)
        assert chart.is_cut == (age == 9_000 * DAY)

    def test_each_record_is_in_its_bar(self) -> None:
        chart = draw((NOW - 5 * MINUTE, "good"), (NOW - 5 * MINUTE, "warn"), (NOW, "good"))
        assert [bar.total for bar in chart.bars] == [*[0] * 6, 2, 0, 0, 0, 0, 1]
        assert (chart.highest, chart.total, chart.totals) == (2, 3, {"good": 2, "warn": 1})

    def test_the_rectangles_fill_the_picture_and_do_not_overlap(self) -> None:
        points = [(NOW - n % 7 * MINUTE, "good" if n % 3 else "warn") for n in range(100)]
        chart = draw(*points)
        for index in range(len(chart.bars)):
            parts = [one for one in chart.rectangles if one.x == index * (WIDTH // len(chart.bars))]
            if not parts:
                continue
            assert sum(one.height for one in parts) <= HEIGHT
            edges = [(one.y, one.y + one.height) for one in parts]
            assert [low for low, _ in edges] == [high for _, high in edges[1:]] + [edges[-1][0]]
        assert min(one.y for one in chart.rectangles) == 0
        assert all(one.x + one.width <= WIDTH for one in chart.rectangles)
        assert MIN_BARS <= len(chart.bars) <= MAX_BARS


def test_an_axis_names_counts_and_times() -> None:
    day = 20_000 * DAY
    chart = make_chart(
        PAYMENT_TONES, [(day, "good"), (day, "good")], now=day + 3 * DAY // 24, is_cut=False
    )
    assert chart is not None
    assert chart.marks == [2, 1, 0]
    assert [len(tick) for tick in chart.ticks] == [len("10-04 00:00"), len("10-04 00:00"), 3]
    daily = make_chart(PAYMENT_TONES, [(day, "good")], now=day + 20 * DAY, is_cut=False)
    assert daily is not None
    assert daily.marks == [1, 0]
    assert daily.ticks[0] == "2024-10-04"


class TestPages:
    def test_volume(self, checkout: Checkout) -> None:
        browser = open_browser(checkout)
        assert "There are no Payments yet." in browser.open("/dashboard/activity").text
        paid = checkout.create(key="paid").json
        checkout.create(key="waits")
        checkout.transfer(paid["escrow"]["address"], "25")
        html = browser.open("/dashboard/activity")
        assert "Succeeded: 1" in html.text
        assert "Under way: 1" in html.text
        assert "Released to recipients: 25.00 USDC, by 1 of 2 Payments." in html.text
        assert len(list(html.all("rect"))) in (1, 2)
        [svg] = html.all("svg")
        labels = str(svg["aria-labelledby"]).split()
        assert [
            one["id"] for tag, one in html.elements if tag in ("title", "desc") and one
        ] == labels
        assert "The figures as a table" in html.text

    def test_health(self, console: Console) -> None:
        endpoint = console.endpoint()
        browser = open_browser(console)
        path = f"/dashboard/webhooks/{endpoint['id']}"
        assert f"{path}/health" in [one["href"] for one in browser.open(path).all("a")]
        assert "There are no deliveries yet." in browser.open(f"{path}/health").text
        for answer in (OK, OK, LATER, NEVER):
            console.receiver.answer = answer
            console.happen()
            console.run()
        text = browser.open(f"{path}/health").text
        for words in ("Delivered: 2", "Waiting for an attempt: 1", "Abandoned: 1"):
            assert words in text

    def test_what_is_released_is_counted_of_the_payments_in_the_chart(
        self, checkout: Checkout
    ) -> None:
        old = checkout.create(key="old").json
        checkout.transfer(old["escrow"]["address"], "25")
        checkout.system.advance((MAX_BARS + 1) * 28 * DAY // 1_000)
        browser = open_browser(checkout)
        assert "Released to recipients: 25.00 USDC" not in browser.open("/dashboard/activity").text
        for number in range(3):
            paid = checkout.create(key=f"k-{number}").json
            if number:
                checkout.transfer(paid["escrow"]["address"], "25")
        said = "Released to recipients: 50.00 USDC, by 2 of the newest 3 Payments."
        assert said in browser.open("/dashboard/activity").text

    def test_what_was_refunded_since_is_counted_beside(self, checkout: Checkout) -> None:
        for number in range(2):
            paid = checkout.create(key=f"k-{number}").json
            checkout.transfer(paid["escrow"]["address"], "25")
        checkout.advance(60)
        path = f"/v2/payments/{paid['id']}/refunds"
        assert checkout.api.call("POST", path, {"amount": "4.50"}, key="r").status == 201
        checkout.advance(60)
        text = open_browser(checkout).open("/dashboard/activity").text
        assert "Released to recipients: 50.00 USDC, by 2 of 2 Payments." in text
        assert "Refunded of it since: 4.50 USDC, by 1 of these Payments." in text

    def test_a_chart_reads_a_bounded_number(
        self, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(12):
            checkout.create(key=f"k-{number}")
        browser = open_browser(checkout)
        monkeypatch.setattr(activity, "MAX_PAYMENTS", 10)
        find, read = MemorySnapshot.find, []

        def note(snapshot: Any, *given: Any, **more: Any) -> Any:
            page = find(snapshot, *given, **more)
            read.append(len(page.records))
            return page

        monkeypatch.setattr(MemorySnapshot, "find", note)
        text = browser.open("/dashboard/activity").text
        assert read == [10]
        assert "Only the newest 10 Payments are counted" in text

    def test_every_state_has_a_place(self) -> None:
        assert {STATUS_WORDS[state].tone for state in PAYMENT.states} <= PAYMENT_TONES.keys()
        assert set(_TONE_OF_DELIVERY) == set(DELIVERY.states)
