"""What the pages say of webhooks is what the code does: numbers, shapes, and the short verifier."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import attrs
import msgspec
import pytest

from payments_core.clock import SECOND
from payments_core.payments.record import CreatedBy
from payments_core.webhooks.dispatch.replay import MAX_RECOVERY_DAYS
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.retry_schedule import retry_delay_ms
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import TransportResult
from payments_core_http.v2.webhooks import views as webhook_views
from tests.test_docs import blocks
from tests.webhooks.webhook_bench import Bench, Wire

ROOT = Path(__file__).resolve().parents[2]
RECEIVING = ROOT / "docs/how-to/receive-webhooks.md"
VECTORS = json.loads((ROOT / "tests/vectors/webhook_signatures.json").read_text(encoding="utf-8"))

MOST = WebhookSettings().max_attempts
NUMBERS = {10: "ten"}


def failing() -> tuple[Bench, Endpoint]:
    """A delivery whose first attempt was answered 500, as all that follow."""
    bench = Bench(wire=Wire([TransportResult(500, b"down")]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.run()
    return bench, endpoint


def the_block(page: Path, info: str, part: str) -> str:
    [found] = [body for _, body in blocks(page, info) if part in body]
    return found


def test_the_page_says_how_long_attempts_go_on() -> None:
    text = RECEIVING.read_text(encoding="utf-8")
    whole_s = sum(retry_delay_ms(attempt, None, 0) for attempt in range(1, MOST)) // SECOND
    hours, minutes, seconds = (int(part) for part in str(timedelta(seconds=whole_s)).split(":"))
    assert f"{hours} hours, {minutes} minutes and {seconds} seconds after the first" in text
    assert f"{NUMBERS[MOST]} times in all" in text
    assert f"nothing within {WebhookSettings().attempt_s} seconds" in text
    assert f"at most {MAX_RECOVERY_DAYS} days ago" in text


def test_the_page_says_which_creator_vouches_for_a_reference() -> None:
    text = RECEIVING.read_text(encoding="utf-8")
    section = text.partition("## Check a Payment before you deliver")[2].partition("\n## ")[0]
    [row] = [line for line in section.splitlines() if line.startswith("| `createdBy` |")]
    vouching, _, others = row.partition(";")
    assert [who for who in get_args(CreatedBy) if f"`{who}`" in vouching] == ["server"]
    assert all(f"`{who}`" in others for who in get_args(CreatedBy) if who != "server")
    assert "`metadata`: in a request with a client token it is refused" in section


def test_a_delivery_that_fails_until_its_last_attempt_is_abandoned_when_the_page_says() -> None:
    bench, endpoint = failing()
    began = bench.clock.now()
    while True:
        [delivery] = bench.stored(endpoint)
        if delivery.next_attempt_at_ms is None:
            break
        bench.clock.advance((delivery.next_attempt_at_ms - bench.clock.now()) / SECOND)
        bench.run()
    assert (delivery.status, delivery.attempts) == ("abandoned", MOST)
    assert bench.clock.now() - began == sum(
        retry_delay_ms(attempt, None, 0) for attempt in range(1, MOST)
    )


def test_the_list_of_deliveries_is_as_on_the_page() -> None:
    [line] = the_block(RECEIVING, "json", '"deliveries"').splitlines()
    shown = json.loads(line)
    [example] = shown["deliveries"]
    bench, endpoint = failing()
    [delivery] = bench.stored(endpoint)
    view = msgspec.to_builtins(webhook_views.delivery(delivery))
    assert list(example) == list(view)
    assert {name: type(value) for name, value in example.items()} == {
        name: type(value) for name, value in view.items()
    }
    assert list(shown) == [field.name for field in attrs.fields(webhook_views.DeliveriesView)]


def short_verifier(now: float) -> Any:
    """The ten lines of the page, at that time."""
    source = the_block(RECEIVING, "python", "def is_authentic").partition("\n\n\nbody")[0]
    names: dict[str, Any] = {}
    exec(compile(source, str(RECEIVING), "exec"), names)
    names["time"] = SimpleNamespace(time=lambda: now)
    return names["is_authentic"]


OWN = [
    case
    for case in VECTORS["cases"]
    if len(case["secrets"]) == 1
    and [name.lower() for name, _ in case["headers"]] == ["x-service-signature"]
]
PROVEN = ("accepted", "body_not_json", "body_not_event")
"""The short verifier does not look into the body."""
TAKEN = (
    "a right code and a malformed one",
    "a comma at the end",
    "4,097 characters",
    "signed at 01790000000",
)
"""Each has a right code in a header that ours does not read: they are authentic all the same."""


@pytest.mark.parametrize("case", OWN, ids=lambda case: case["name"])
def test_the_short_verifier_takes_and_refuses_what_ours_does(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["body_base64"]) if "body_base64" in case else case["body"].encode()
    [(_, header)] = case["headers"]
    taken = short_verifier(case["now"])(body, header, case["secrets"][0], case["tolerance_s"])
    assert taken == (case["outcome"] in PROVEN or case["name"] in TAKEN)
