"""What a router says is checked: the address that it names, and what it says of its transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.chains.port import AddressSpec
from payments_core.errors import DependencyFailed
from payments_core.quotes.record import RouteDelivery
from payments_core.routers.port import RouteOrder, RouteProgress, Router, RouteRefused
from tests.service.quotes.shop import POLYGON, POLYGON_USDC, QuoteShop
from tests.service.world import OTHER_WALLET, USDC, WALLET, write


class Naming:
    """The simulated router, which names an address in its own way."""

    def __init__(self, inner: Router, name: Callable[[str], str]) -> None:
        self._inner, self._name = inner, name

    def open(self, order: RouteOrder) -> str:
        return self._name(self._inner.open(order))

    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        return self._inner.deliver(key, payment_hash)


def let_name(shop: QuoteShop, name: Callable[[str], str]) -> None:
    shop.service.parts.quotes._routers = {
        "sandbox": Naming(shop.service.parts.quotes._routers["sandbox"], name)
    }


def test_the_letters_of_a_routers_address_do_not_matter(memory_shop: QuoteShop) -> None:
    """Its return would else be taken for another payment, and be paid out twice."""
    let_name(memory_shop, str.lower)
    quoted = memory_shop.routed()
    memory_shop.fail("return")
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    payment = memory_shop.payment(quoted)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert (payment.received_atomic, payment.excess_atomic) == (quoted.quote.input_atomic, 0)
    assert memory_shop.held(USDC, quoted.quote.deposit_address) == quoted.quote.input_atomic


UNFIT: dict[str, Callable[[QuoteShop], str]] = {
    "zero": lambda shop: "0x" + 40 * "0",
    "a token": lambda shop: USDC.address,
    "no address": lambda shop: "somewhere",
    "another escrow": lambda shop: shop.quote().quote.deposit_address,
    "the operator": lambda shop: str(
        shop.world.chain.derive(AddressSpec(shop.world.environment_id, "operator", "operator"))
    ),
}


@pytest.mark.parametrize("named", UNFIT)
def test_a_router_that_names_what_nobody_holds_gets_nothing(
    memory_shop: QuoteShop, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = UNFIT[named](memory_shop)
    let_name(memory_shop, lambda own: address)
    with pytest.raises(DependencyFailed) as refused:
        memory_shop.routed()
    assert (refused.value.dependency, refused.value.retryable) == ("router", False)
    assert "ALARM: the router names" in caplog.text


def test_a_router_cannot_name_the_escrow_that_pays_it(memory_shop: QuoteShop) -> None:
    escrows: list[str] = []

    class Mirror(Naming):
        def open(self, order: RouteOrder) -> str:
            escrows.append(order.return_to)
            return order.return_to

    memory_shop.service.parts.quotes._routers = {
        "sandbox": Mirror(memory_shop.service.parts.quotes._routers["sandbox"], str)
    }
    with pytest.raises(DependencyFailed):
        memory_shop.routed()
    assert escrows


class LyingRouter:
    """Says of every order what the test set."""

    def __init__(self, answers: list[RouteProgress | Exception]) -> None:
        self.answers = answers
        self.asked = 0

    def open(self, order: object) -> str:
        return OTHER_WALLET

    def deliver(self, key: str, payment_hash: str) -> RouteProgress:
        self.asked += 1
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def lie(shop: QuoteShop, *answers: RouteProgress | Exception) -> LyingRouter:
    """Let the worker ask a router that answers so from now on."""
    routers = shop.service.parts.background_jobs._routers
    routers["sandbox"] = LyingRouter(list(answers))
    router: LyingRouter = routers["sandbox"]
    return router


def test_nothing_that_a_router_says_moves_a_payment(memory_shop: QuoteShop) -> None:
    """Not a hash that does not exist, a transfer of less, nor one to somebody else."""
    world, chain = memory_shop.world, memory_shop.service.chains[POLYGON]
    quoted = memory_shop.routed()
    vault = chain.derive(AddressSpec(world.environment_id, "vault", world.merchant.id))
    minimum = quoted.quote.minimum_atomic
    address = POLYGON_USDC.address
    less = chain.transfer(address, None, vault, minimum - 1, "less than the minimum")
    elsewhere = chain.transfer(address, None, WALLET, minimum, "to somebody else")
    lie(
        memory_shop,
        RouteProgress(state="delivered", transaction_hash="0x" + "ab" * 32),
        RouteProgress(state="delivered", transaction_hash=less),
        RouteProgress(state="delivered", transaction_hash=elsewhere),
        RouteProgress(state="returned", transaction_hash="0x" + "cd" * 32),
        RouteProgress(state="returned", transaction_hash=memory_shop.pay(quoted)),
        RouteProgress(state="delivered"),
        RouteRefused("there is no such order"),
        RouteProgress(state="waiting"),
    )
    world.finish()
    payment = memory_shop.payment(quoted)
    assert (payment.status, memory_shop.is_done(quoted)) == ("executing", False)


def in_capitals(hash: str | None) -> str:
    return "0x" + str(hash)[2:].upper()


def take_any_letters(monkeypatch: pytest.MonkeyPatch, chain: Any) -> None:
    """As nodes do: a hash is a number to them."""
    look_up = chain.transaction
    monkeypatch.setattr(chain, "transaction", lambda hash: look_up(hash.lower()))


@pytest.mark.parametrize("name", [str, in_capitals])
def test_one_delivery_settles_one_quote(
    memory_shop: QuoteShop, monkeypatch: pytest.MonkeyPatch, name: Callable[[Any], str]
) -> None:
    world = memory_shop.world
    first, second = memory_shop.routed(), memory_shop.routed()
    memory_shop.pay(first)
    world.finish()
    route = memory_shop.payment(first).route
    assert route is not None
    lie(memory_shop, RouteProgress(state="delivered", transaction_hash=name(route.delivery_hash)))
    take_any_letters(monkeypatch, memory_shop.service.chains[POLYGON])
    memory_shop.pay(second)
    world.finish()
    assert (memory_shop.is_done(first), memory_shop.is_done(second)) == (True, False)


@pytest.mark.parametrize("name", [str, in_capitals])
def test_one_return_takes_one_payment_back(
    memory_shop: QuoteShop, monkeypatch: pytest.MonkeyPatch, name: Callable[[Any], str]
) -> None:
    world = memory_shop.world
    quoted = memory_shop.routed()
    memory_shop.fail("return")
    memory_shop.pay(quoted)
    world.finish()
    route = memory_shop.payment(quoted).route
    assert route is not None
    [back] = route.return_hashes
    lie(memory_shop, RouteProgress(state="returned", transaction_hash=name(back)))
    take_any_letters(monkeypatch, memory_shop.world.chain)
    world.reconcile(memory_shop.details(quoted), "retry_execution")
    world.finish()
    assert memory_shop.payment(quoted).status == "executing"


def test_what_is_no_hash_is_waited_for(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    lie(
        memory_shop,
        RouteProgress(state="delivered", transaction_hash="done"),
        RouteProgress(state="returned", transaction_hash="back"),
    )
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    assert memory_shop.payment(quoted).status == "executing"


def test_one_transaction_may_deliver_several_quotes(
    memory_shop: QuoteShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smaller quote takes the smaller transfer, and leaves the other's to the other."""
    world, chain = memory_shop.world, memory_shop.service.chains[POLYGON]
    large, small = memory_shop.routed("30.00"), memory_shop.routed("20.00")
    vault = chain.derive(AddressSpec(world.environment_id, "vault", world.merchant.id))
    address, amounts = POLYGON_USDC.address, (large.quote.output_atomic, small.quote.output_atomic)
    batch = chain.transfer(address, None, vault, amounts[0], "one of a batch")
    look_up = chain.transaction

    def show_batch(hash: str) -> Any:
        view = look_up(hash)
        if hash != batch or view is None or not view.logs:
            return view
        [log] = view.logs
        logs = (log, attrs.evolve(log, position=1, log_index=1, amount_atomic=amounts[1]))
        return attrs.evolve(view, logs=logs)

    monkeypatch.setattr(chain, "transaction", show_batch)
    lie(memory_shop, RouteProgress(state="delivered", transaction_hash=batch))
    for quoted in (small, large):
        memory_shop.pay(quoted)
        world.finish()
    routes = [memory_shop.payment(quoted).route for quoted in (large, small)]
    assert [route and route.delivered_atomic for route in routes] == list(amounts)
    assert memory_shop.is_done(large) and memory_shop.is_done(small)


def test_a_router_that_takes_long_is_asked_more_seldom(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    router = lie(memory_shop, RouteProgress(state="waiting"))
    memory_shop.pay(quoted)
    memory_shop.world.advance(60)
    soon = router.asked
    memory_shop.world.advance(240)
    assert soon > 10
    assert 5 < router.asked - soon < 20


def test_a_return_of_less_is_reported_and_moves_nothing(
    memory_shop: QuoteShop, caplog: pytest.LogCaptureFixture
) -> None:
    world, quoted = memory_shop.world, memory_shop.routed()
    memory_shop.pay(quoted)
    world.advance(5)
    payment = memory_shop.payment(quoted)
    assert payment.route is not None
    less = world.chain.transfer(
        USDC.address, payment.route.address, quoted.quote.deposit_address, 1, "a part"
    )
    lie(memory_shop, RouteProgress(state="returned", transaction_hash=less))
    world.finish()
    assert memory_shop.payment(quoted).status == "executing"
    assert "ALARM: the router's transaction" in caplog.text


def test_a_delivery_that_was_counted_meanwhile_counts_no_more(
    memory_shop: QuoteShop, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the look and the commit another quote has taken it."""
    world = memory_shop.world
    quoted = memory_shop.routed()
    memory_shop.pay(quoted)
    world.advance(9)
    payment = memory_shop.payment(quoted)
    assert payment.route is not None
    name = f"route/{payment.route.key}:{payment.route.payment_hash}"
    chain = memory_shop.service.chains[POLYGON]
    vault = payment.destination.address
    expected, minimum = payment.route.expected_atomic, payment.route.minimum_atomic
    amount = expected - (expected - minimum) // 2
    hash = chain.transfer(POLYGON_USDC.address, None, vault, amount, name)
    taken = RouteDelivery(
        id=f"{POLYGON}:{hash}:0", transfer="elsewhere", payment_id="payment_x", created_at_ms=0
    )
    write(world.storage, world.environment_id, lambda tx: tx.insert(taken))
    world.finish()
    assert memory_shop.payment(quoted).status == "executing"
    assert f"ALARM: transfer {taken.id} was already counted" in caplog.text
