"""A transfer of a router counts once in a deployment, whichever environments look at it at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from payments_core.payments.destinations import ToWallet
from payments_core.quotes.operations import QuoteDetails
from payments_core.quotes.record import RouteDelivery
from payments_core.routers.port import RouteProgress
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.service.faults import Crashed, FaultyStorage, commit_failed, commit_lost, crash
from tests.service.quotes.shop import POLYGON, QuoteShop
from tests.service.quotes.test_lying_routers import lie
from tests.service.world import OTHER_WALLET
from tests.shipped import asset_of


class StaleLook(FaultyStorage):
    """A storage on which another process works between a look at the deliveries and its answer."""

    def __init__(self, inner: Storage, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner, 0, lambda call: call())
        self._meanwhile: Callable[[], object] | None = meanwhile

    def locate(self, kind: Any, *given: Any, **more: Any) -> Sequence[Any]:
        found = super().locate(kind, *given, **more)
        meanwhile = self._meanwhile
        if kind is RouteDelivery and meanwhile is not None:
            self._meanwhile = None
            meanwhile()
        return found


class Street:
    """Two apps of one deployment that pay the same wallet, and a router that pays it once."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.shops = (QuoteShop(storage, "acme"), QuoteShop(storage, "other"))
        to = ToWallet(address=OTHER_WALLET)
        self.quotes = [shop.routed(destination=to) for shop in self.shops]
        lie(self.first, RouteProgress(state="waiting"))
        for shop, quoted in zip(self.shops, self.quotes, strict=True):
            shop.pay(quoted)
        self.first.world.advance(30)
        assert [self.status(n) for n in (0, 1)] == ["executing", "executing"]
        self.hash = str(
            self.first.service.chains[POLYGON].transfer(
                asset_of(POLYGON, "USDC").address,
                None,
                OTHER_WALLET,
                self.quote.output_atomic,
                "one",
            )
        )

    @property
    def first(self) -> QuoteShop:
        return self.shops[0]

    @property
    def quote(self) -> Any:
        return self.quotes[0].quote

    def status(self, number: int) -> str:
        quoted: QuoteDetails = self.quotes[number]
        return self.shops[number].payment(quoted).status

    def with_lying_router(self, service: Any) -> Any:
        """A process whose router says that this one transfer delivers every order."""
        answer = RouteProgress(state="delivered", transaction_hash=self.hash)
        self.first.world.service = service
        lie(self.first, answer)
        return service

    def work(self, service: Any, seconds: int = 60) -> None:
        clock = self.first.world.clock
        service.worker("sandbox").run_through(clock.now() + seconds * 1_000, clock.advance_to)

    def check(self) -> None:
        assert sorted([self.status(0), self.status(1)]) == ["executing", "succeeded"]


def test_two_environments_that_look_at_one_moment_count_it_once(storage: Storage) -> None:
    street = Street(storage)
    other = street.with_lying_router(street.first.world.restarted())
    stale = StaleLook(storage, lambda: street.work(other, 4))
    street.work(street.with_lying_router(street.first.world.restarted(stale)))
    assert stale._meanwhile is None
    street.work(other)
    street.check()


@pytest.mark.parametrize("fault", [crash, commit_lost, commit_failed])
def test_a_process_that_dies_with_a_claim_loses_no_delivery(fault: Any) -> None:
    for at in range(1, 100):
        street = Street(MemoryStorage())
        storage = FaultyStorage(street.storage, at, fault, ("transact",))
        with contextlib.suppress(Crashed):
            street.work(street.with_lying_router(street.first.world.restarted(storage)), 10)
        street.work(street.with_lying_router(street.first.world.restarted()), 120)
        street.check()
        if not storage.had_its_fault:
            return
    raise AssertionError("the flow never ended")


class Batch:
    """Two quotes that pay the same wallet, and one transaction of the router for both.

    The second one is not funded yet.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.shop = QuoteShop(MemoryStorage())
        to = ToWallet(address=OTHER_WALLET)
        self.first, self.second = (self.shop.routed(destination=to) for _ in range(2))
        lie(self.shop, RouteProgress(state="waiting"))
        self.shop.pay(self.first)
        self.shop.world.advance(30)
        chain, amount = self.shop.service.chains[POLYGON], self.first.quote.output_atomic
        self.hash = str(
            chain.transfer(asset_of(POLYGON, "USDC").address, None, OTHER_WALLET, amount, "both")
        )

    def with_lying_router(self, storage: Storage | None = None) -> Any:
        """A process whose router says that this transaction delivers every order."""
        service = self.shop.world.restarted(storage)
        self.shop.world.service = service
        lie(self.shop, RouteProgress(state="delivered", transaction_hash=self.hash))
        chain: Any = service.chains[POLYGON]
        look_up = chain.transaction

        def show_both(hash: str) -> Any:
            view = look_up(hash)
            if hash != self.hash or not view.logs:
                return view
            [log] = view.logs
            return attrs.evolve(view, logs=(log, attrs.evolve(log, position=1, log_index=1)))

        self._patch.setattr(chain, "transaction", show_both)
        return service

    def work(self, service: Any, seconds: int) -> None:
        clock = self.shop.world.clock
        service.worker("sandbox").run_through(clock.now() + seconds * 1_000, clock.advance_to)


def test_a_worker_that_was_overtaken_keeps_no_delivery_from_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At any call its lease ends, and another worker counts the delivery that it looks for."""
    for at in range(1, 100):
        batch = Batch(monkeypatch)

        def be_overtaken(call: Callable[[], Any], batch: Batch = batch) -> Any:
            batch.work(batch.with_lying_router(), 20)
            return call()

        storage = FaultyStorage(batch.shop.world.storage, at, be_overtaken, ("transact", "read"))
        batch.work(batch.with_lying_router(storage), 4)
        batch.shop.pay(batch.second)
        batch.work(batch.with_lying_router(), 120)
        assert batch.shop.is_done(batch.first)
        assert batch.shop.is_done(batch.second), at
        if not storage.had_its_fault:
            return
    raise AssertionError("the flow never ended")
