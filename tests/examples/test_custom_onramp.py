"""The on-ramp adapter of the examples, held to the suite against its provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from examples.custom_onramp.adapter import ExampleOnramp, open_url
from examples.custom_onramp.service import DECLINED, Provider
from examples.custom_onramp.test_onramp import TestExampleOnramp as TestExampleOnramp
from payments_core.evolve import evolve
from payments_core.hosted_onramps.port import HostedOnramp, OnrampState
from payments_core.notices.port import ReadsNotices
from payments_core.plain_calls import port_members

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-an-onramp-adapter.md"
ADAPTER = Path(__file__).parents[2] / "examples" / "custom_onramp" / "adapter.py"


@pytest.fixture
def onramp() -> Iterator[ExampleOnramp]:
    provider = Provider(0, "key", "secret")
    provider.faults["deliveries"] = "by hand"
    thread = Thread(target=provider.serve_forever, args=(0.01,))
    thread.start()
    yield ExampleOnramp(f"http://127.0.0.1:{provider.server_port}", "key", b"secret")
    provider.shutdown()
    provider.server_close()
    thread.join()


@pytest.mark.parametrize(
    "url", ["example:", "example+http://h.example", "example+ftp://k:s@h.example", "x+http://k@h"]
)
def test_a_url_without_what_is_needed_is_refused_without_its_text(url: str) -> None:
    with pytest.raises(ValueError, match="the URL") as refused:
        open_url(url)
    assert "k:s" not in str(refused.value)


def test_the_page_names_every_method_of_the_ports() -> None:
    text = PAGE.read_text(encoding="utf-8")
    members = {name for port in (HostedOnramp, ReadsNotices) for name in port_members(port)}
    assert [name for name in sorted(members) if f"`{name}" not in text] == []


def test_the_adapter_is_short() -> None:
    assert len(ADAPTER.read_text(encoding="utf-8").splitlines()) < 150


@pytest.mark.parametrize(
    ("card", "button", "state"),
    [
        ("4242 4242 4242 4242", "pay", "paid"),
        (DECLINED, "pay", "failed"),
        ("", "cancel", "failed"),
        ("not a card", "pay", "waiting"),
    ],
)
def test_the_page_of_the_provider_takes_a_payment(
    onramp: ExampleOnramp, card: str, button: str, state: OnrampState
) -> None:
    order = evolve(TestExampleOnramp().new_order(), return_url=None)
    offer = onramp.offer(order)
    with urlopen(offer.url) as page:
        shown = page.read().decode()
    assert f"Pay {offer.price} {offer.currency}" in shown
    assert order.recipient in shown
    said = urlencode({"card": card, "do": button}).encode()
    with urlopen(Request(offer.url, said)) as page:
        ended = page.read().decode()
    assert onramp.look(offer.reference).state == state
    assert ("<form" in ended) == (state == "waiting")
