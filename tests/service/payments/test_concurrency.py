"""Many callers at once: what one may have, one gets."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import ActionAlreadyUsed, InsufficientBalance, PaymentsError
from tests.service.world import World, atomic, once

THREADS = 16
ROUNDS = 12


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Threads take turns more often than they usually do, so that they meet."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    yield
    sys.setswitchinterval(before)


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each call returned or raised, all of them begun together."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def run(place: int, call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            outcomes[place] = call()
        except Exception as error:
            outcomes[place] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def kinds(outcomes: list[Any]) -> Counter[str]:
    return Counter(type(outcome).__name__ for outcome in outcomes)


def test_of_two_payments_a_vault_covers_one(world: World) -> None:
    for _ in range(ROUNDS):
        options = [world.option(world.payment("60.00")) for _ in range(2)]
        outcomes = at_once([lambda option=option: world.authorize(option) for option in options])
        assert kinds(outcomes) == {"OptionDetails": 1, "InsufficientBalance": 1}
        [refused] = [item for item in outcomes if isinstance(item, InsufficientBalance)]
        assert refused.available_atomic == atomic("40")
        assert refused.required_atomic == atomic("60")
        assert world.held() == (atomic("100"), atomic("60"), atomic("40"))
        [won] = [item for item in outcomes if not isinstance(item, Exception)]
        world.resources.payments.cancel(won.payment.id)  # for the next round
        assert world.held() == (atomic("100"), 0, atomic("100"))


def test_of_two_payments_a_vault_covers_one_while_others_finish(world: World) -> None:
    """The chain's total falls at the same time as reservations end."""
    for _ in range(4):
        world.authorized("70.00")
        world.run()
        world.advance(3)
        options = [world.option(world.payment("30.00")) for _ in range(2)]
        calls: list[Callable[[], Any]] = [
            lambda option=option: world.authorize(option) for option in options
        ]
        outcomes = at_once([*calls, world.run])
        assert kinds(outcomes) == {"OptionDetails": 1, "InsufficientBalance": 1, "int": 1}
        world.finish()
        assert world.held() == (0, 0, 0)
        world.fund("100.00")


def test_an_action_works_once_however_many_use_it(world: World) -> None:
    option = world.option(world.payment())
    outcomes = at_once([lambda: world.authorize(option)] * THREADS)
    assert kinds(outcomes) == {"OptionDetails": 1, "ActionAlreadyUsed": THREADS - 1}
    world.finish()
    assert world.sent() == 2
    with pytest.raises(ActionAlreadyUsed):
        world.authorize(option)


def test_an_idempotency_key_has_one_effect_however_many_use_it(world: World) -> None:
    option = world.option(world.payment())
    outcomes = at_once(
        [lambda: world.authorize(option, idempotency_key=once("authorize-1"))] * THREADS
    )
    assert kinds(outcomes) == {"OptionDetails": 1, "AlreadyResponded": THREADS - 1}
    answers = {item.response for item in outcomes if isinstance(item, AlreadyResponded)}
    assert len(answers) == 1
    assert world.held()[1] == atomic("25")
    assert world.event_names(option.payment.id)["payment.processing"] == 1


def test_many_creations_under_one_key_make_one_payment(world: World) -> None:
    from payments_core.payments.destinations import ToAccount
    from payments_core.payments.operations import NewPayment

    server = world.server
    new = NewPayment(amount="5", destination=ToAccount(account_id=world.merchant.id))
    outcomes = at_once(
        [
            lambda: world.service.acting_as(server).payments.receive(
                new, idempotency_key=once("create-1")
            )
        ]
        * THREADS
    )
    assert kinds(outcomes) == {"PaymentDetails": 1, "AlreadyResponded": THREADS - 1}
    assert len(world.service.acting_as(server).payments.list().records) == 1
    assert world.event_names()["payment.created"] == 1


def test_many_payments_from_one_vault_are_all_authorized_when_it_covers_them(world: World) -> None:
    options = [world.option(world.payment("5.00")) for _ in range(THREADS)]
    outcomes = at_once([lambda option=option: world.authorize(option) for option in options])
    assert kinds(outcomes) == {"OptionDetails": THREADS}
    assert world.held() == (atomic("100"), atomic("80"), atomic("20"))
    world.finish()
    assert world.held() == (atomic("20"), 0, atomic("20"))
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("80")
    assert world.sent() == 2 * THREADS


def test_two_workers_share_the_work_and_do_it_once(world: World) -> None:
    options = [world.authorized("5.00") for _ in range(6)]
    workers = [world.service.worker("sandbox"), world.restarted().worker("sandbox")]
    for _ in range(30):
        outcomes = at_once([worker.run_until_idle for worker in workers])
        assert not [item for item in outcomes if isinstance(item, Exception)]
        world.system.advance(30)
    assert {world.paid(option.payment.id).status for option in options} == {"succeeded"}
    assert world.sent() == 12
    names = world.event_names()
    for name in ("processing", "accepted", "executing", "succeeded"):
        assert names[f"payment.{name}"] == 6
    assert world.held() == (atomic("70"), 0, atomic("70"))


def test_cancelling_and_authorizing_at_once_never_leaves_a_reservation_behind(
    world: World,
) -> None:
    for _ in range(ROUNDS):
        option = world.option(world.payment("60.00"))
        id = option.payment.id
        at_once(
            [
                lambda option=option: world.authorize(option),
                lambda id=id: world.resources.payments.cancel(id),
                world.run,
            ]
        )
        payment = world.paid(id)
        if payment.status == "cancelled":
            assert world.held()[1] == 0
            assert not payment.is_pending
        else:
            assert world.held()[1] == atomic("60")
            world.finish()
            assert world.paid(id).status == "succeeded"
            world.fund("60.00")


def test_sixteen_options_at_once_are_ten(world: World) -> None:
    payment = world.payment()
    outcomes = at_once([lambda: world.option(payment)] * THREADS)
    assert kinds(outcomes) == {"OptionDetails": 10, "PaymentOptionLimitReached": 6}
    options = world.service.acting_as(world.client).options.list(payment.payment.id)
    assert len({item.option.id for item in options}) == 10
    assert Counter(item.option.selection_status for item in options) == {
        "selected": 1,
        "superseded": 9,
    }


def test_one_session_token_is_exchanged_once(world: World) -> None:
    token = world.resources.client_sessions.create(account_id=world.payer.id).token
    outcomes = at_once(
        [lambda: world.service.client_tokens.exchange(token, mode="sandbox")] * THREADS
    )
    assert kinds(outcomes) == {"ExchangedSession": 1, "Unauthorized": THREADS - 1}


def test_one_account_for_one_user_however_many_create_it(world: World) -> None:
    outcomes = at_once([lambda: world.account("twin", username="twin")] * 8)
    assert kinds(outcomes)["Account"] == 1
    assert all(isinstance(item, PaymentsError) for item in outcomes if "acct" not in repr(item))
    page = world.resources.accounts.list(external_user_id="twin")
    assert len(page.records) == 1
