"""Answers of a router or an on-ramp that are of the wrong type, or out of every range.

They are typed by their adapters, and no type checker sees those: none may reach the storage.
"""

from __future__ import annotations

import logging
import math
from decimal import Decimal
from typing import Any

import pytest

from payments_core.errors import DependencyFailed
from payments_core.hosted_onramps.port import OnrampOffer, OnrampOrder, OnrampProgress
from payments_core.networks import Asset
from payments_core.payments.offers import lifecycle
from payments_core.payments.offers.jobs import follow_job
from payments_core.payments.options.offer import Offer, offer_id
from payments_core.payments.options.record import PaymentOption
from payments_core.routers.port import OfferOrder, OfferProgress, RouteOffer
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.reads import Get
from tests.service.payments.offers.shopper import Shopper
from tests.service.world import World, atomic

ADDRESS = "0x000000000000000000000000000000000000d0D0"
METHODS = ("routing", "hosted_onramp")


class Liar:
    """A router and an on-ramp: what it answers is changed by `says`, or raised, or replaced."""

    name = "liar"

    def __init__(self, world: World) -> None:
        self.world = world
        self.says: dict[str, Any] = {}
        self.instead: Any = self
        """What it answers instead, if that is not itself."""
        self.sources: Any = [world.service.networks.find_asset(137, "USDC")]

    def list_sources(self, destination: Asset) -> Any:
        return self.sources

    def open(self, order: object) -> str:
        raise NotImplementedError

    def deliver(self, key: str, payment_hash: str) -> Any:
        raise NotImplementedError

    def offer(self, order: Any) -> Any:
        until = self.world.clock.now() + 600_000
        if isinstance(order, OfferOrder):
            sound: dict[str, Any] = {"address": ADDRESS, "amount_atomic": order.amount_atomic}
            return self.answer(RouteOffer, {**sound, "expires_at_ms": until})
        assert isinstance(order, OnrampOrder)
        sound = {"reference": order.key, "url": "https://pay.example/1", "price": "25.50"}
        return self.answer(OnrampOffer, {**sound, "currency": "USD", "expires_at_ms": until})

    def look(self, reference: str) -> Any:
        return self.answer(OnrampProgress, {"state": "waiting"})

    def follow_offer(self, key: str) -> Any:
        return self.answer(OfferProgress, {"state": "waiting"})

    def answer(self, kind: Any, sound: dict[str, Any]) -> Any:
        if isinstance(self.instead, Exception):
            raise self.instead
        return kind(**{**sound, **self.says}) if self.instead is self else self.instead


@pytest.fixture
def liar(memory_world: World) -> Liar:
    liar = Liar(memory_world)
    memory_world.service = memory_world.restarted(router=liar, onramp=liar)
    return liar


def ask(shopper: Shopper, method: str) -> Any:
    return shopper.routed() if method == "routing" else shopper.bought()


def stored(shopper: Shopper) -> Offer:
    """The first offer of the newest option."""
    return shopper.world.get(Offer, offer_id(shopper.paid().option_ids[-1], 1))


def has_job(shopper: Shopper) -> bool:
    """Whether the offer is followed, and its job not parked."""
    world, offer = shopper.world, stored(shopper)
    id = follow_job("sandbox", world.environment_id, offer, 0).id
    [job] = world.storage.fetch(world.environment_id, Get(Job, id))
    return job is not None and job.lease_until != NEVER


UNUSABLE_OFFERS: dict[str, list[dict[str, Any]]] = {
    "routing": [
        *[{"amount_atomic": one} for one in (0, -1, 25.5, "25", None, True, 2**256, math.inf)],
        *[{"address": one} for one in (None, 7, "", "nowhere", "0x" + "0" * 999)],
    ],
    "hosted_onramp": [
        *[{"reference": one} for one in ("", "r" * 501, None)],
        *[{"url": f"{one}pay.example"} for one in ("javascript:", "https://\n", "https://" * 600)],
        *[{"price": one} for one in (25.5, "1e9", "-1", "NaN", "")],
        {"currency": "usd"},
    ],
}
NO_TIMES = (math.nan, 1e15, "soon", None, True, 2**63, -1)
UNUSABLE_REPORTS: list[dict[str, Any]] = [
    *[{"state": one} for one in ("refunding", None, ["paid"], "asked")],
    *[
        {"state": "paid", "amount_atomic": one}
        for one in (-1, 1.5, "25", True, 2**256, math.nan, Decimal(25))
    ],
]
NO_ANSWERS = (None, {}, "an offer", KeyError("state"), TimeoutError())
NO_HASHES = (7, "", "0x12", "0x" + "g" * 64, b"\x00" * 32)


@pytest.mark.parametrize("method", METHODS)
def test_an_offer_that_cannot_be_used_is_no_offer(
    memory_world: World, liar: Liar, method: str
) -> None:
    shopper = Shopper(memory_world)
    for says in (*UNUSABLE_OFFERS[method], *({"expires_at_ms": one} for one in NO_TIMES)):
        liar.says = says
        with pytest.raises(DependencyFailed):
            ask(shopper, method)
        assert stored(shopper).status == "asked", says
    liar.says = {}
    memory_world.advance(60)
    assert stored(shopper).status == "waiting"


@pytest.mark.parametrize("method", METHODS)
def test_what_is_no_answer_is_none(memory_world: World, liar: Liar, method: str) -> None:
    shopper = Shopper(memory_world)
    for liar.instead in NO_ANSWERS:
        with pytest.raises(DependencyFailed):
            ask(shopper, method)
    liar.instead = liar
    ask(shopper, method)
    for liar.instead in NO_ANSWERS * 5:
        memory_world.advance(600)
    assert stored(shopper).status == "waiting"
    assert has_job(shopper)


@pytest.mark.parametrize("method", METHODS)
def test_a_report_that_cannot_be_used_is_no_news(
    memory_world: World, liar: Liar, method: str
) -> None:
    shopper = Shopper(memory_world)
    ask(shopper, method)
    for liar.says in UNUSABLE_REPORTS * 2:
        memory_world.advance(600)
        assert stored(shopper).status == "waiting", liar.says
    assert has_job(shopper)
    liar.says = {"state": "paid", "amount_atomic": atomic("25.00")}
    memory_world.advance(2 * 3_600)
    assert stored(shopper).status == "paid"


@pytest.mark.parametrize("method", METHODS)
def test_a_transaction_that_cannot_be_one_is_none(
    memory_world: World, liar: Liar, method: str
) -> None:
    shopper = Shopper(memory_world)
    ask(shopper, method)
    for hash in NO_HASHES:
        liar.says = {"state": "delivered", "transaction_hash": hash}
        memory_world.advance(30)
        found = stored(shopper)
        assert (found.status, found.transaction_hash) == ("delivered", None), hash


def test_a_router_that_lists_no_assets_is_silent(memory_world: World, liar: Liar) -> None:
    shopper = Shopper(memory_world)
    for liar.sources in (None, ["USDC"], 7):
        with pytest.raises(DependencyFailed):
            ask(shopper, "routing")
        memory_world.advance(60)


def test_a_provider_that_names_another_transaction_at_each_look_fills_no_option(
    memory_world: World,
    liar: Liar,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(lifecycle, "MAX_DELIVERIES", 3)
    shopper = Shopper(memory_world)
    id = ask(shopper, "routing").option.id
    hashes = [f"0x{number:064x}" for number in range(1, 7)]
    with caplog.at_level(logging.CRITICAL):
        for hash in hashes:
            liar.says = {"state": "delivered", "transaction_hash": hash}
            memory_world.advance(60)
    option = memory_world.get(PaymentOption, id)
    assert list(option.deliveries) == hashes[:3]
    assert stored(shopper).transaction_hash == hashes[2]
    assert [one for one in caplog.messages if "ALARM" in one] == [
        f"ALARM: the provider has named 3 transactions for {id}; no more are noted"
    ]
    assert has_job(shopper)
