"""A request whose transfer the operator cannot pay for is refused, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments_core.chains.gas import MAX_AGE_MS, READ_AGAIN_MS
from payments_core.chains.port import AddressSpec, SignerRefused
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.chains.simulated.records import SimulatedSender
from payments_core.clock import SECOND
from payments_core.errors import DependencyFailed
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import SIMULATED
from tests.service.conftest import funded
from tests.service.deposits.test_misdirected_deposits import AT_BASE, deposit_wrongly, only_deposit
from tests.service.faults import FaultyChain
from tests.service.payments.test_collects import collect, mandate
from tests.service.payments.test_sends import send
from tests.service.payments.test_underpaid import expired_short
from tests.service.world import BASE, USDC, World, atomic

OUT_OF_GAS = {"dependency": "chain", "retryable": True, "reason": "operator_out_of_gas"}


def simulated(world: World) -> SimulatedChain:
    chain = world.service.chains[BASE]
    assert isinstance(chain, SimulatedChain)
    return chain


def set_coins(world: World, transactions: int | None) -> None:
    """Have the operator own that, and let all readings of before be old."""
    simulated(world).set_coins(world.environment_id, transactions)
    world.clock.advance_to(world.clock.now() + READ_AGAIN_MS)


def to_authorize(world: World) -> Callable[[], object]:
    return partial(world.authorize, world.option(world.payment()))


def to_send(world: World) -> Callable[[], object]:
    return partial(send, world)


def to_collect(world: World) -> Callable[[], object]:
    return partial(collect, world, mandate(world))


def to_refund(world: World) -> Callable[[], object]:
    """What the recipient's vault has is refunded."""
    payment = world.payment()
    world.authorize(world.option(payment))
    world.advance_until(lambda: world.paid(payment.payment.id).status == "succeeded")
    return partial(world.refund, payment)


def to_return_a_deposit(world: World) -> Callable[[], object]:
    """A token of the watch list goes back to its sender."""
    deposit_wrongly(world, AT_BASE)
    world.advance_until(lambda: only_deposit(world).status == "rejected")
    return partial(world.resources.deposits.send_back, world.payer.id, only_deposit(world).id)


REQUESTS = [to_authorize, to_send, to_collect, to_refund, to_return_a_deposit]


def stored(world: World) -> Any:
    """All that an environment has stored, by what its reads show."""
    return (
        world.held(),
        world.held(world.merchant),
        [event.id for event in world.events()],
        world.resources.payments.list(),
    )


@pytest.mark.parametrize("to_request", REQUESTS)
def test_a_request_is_refused_while_the_operator_has_no_coins(
    world: World, to_request: Callable[[World], Callable[[], object]]
) -> None:
    request = to_request(world)
    set_coins(world, 0)
    before = stored(world)
    for _ in range(2):
        with pytest.raises(DependencyFailed) as caught:
            request()
        assert caught.value.details == OUT_OF_GAS
    assert stored(world) == before
    assert world.run() == 0 or stored(world) == before
    set_coins(world, 5)
    request()
    world.finish()


@pytest.mark.parametrize("action", ["refund", "accept", "write_off"])
def test_a_decision_about_an_escrow_is_refused_by_what_is_known(
    memory_world: World, action: str
) -> None:
    world = memory_world
    payment = expired_short(world)
    to_decide = partial(world.reconcile, payment, action)
    set_coins(world, 0)
    with pytest.raises(DependencyFailed):
        world.authorize(world.option(world.payment()))  # it reads the heads
    if action == "write_off":  # which needs no transaction
        to_decide()
        return
    for request in (to_decide, partial(world.refund, payment)):
        with pytest.raises(DependencyFailed) as caught:
            request()
        assert caught.value.details == OUT_OF_GAS
    assert world.paid(payment.payment.id).status == "action_required"
    world.clock.advance_to(world.clock.now() + MAX_AGE_MS + SECOND)
    to_decide()  # nobody has read the coins since


def test_a_refund_from_escrow_is_made_if_nobody_has_read_the_coins(memory_world: World) -> None:
    payment = expired_short(memory_world)
    set_coins(memory_world, 0)
    memory_world.clock.advance_to(memory_world.clock.now() + MAX_AGE_MS)
    assert memory_world.refund(payment).status == "created"


def test_a_replay_gets_its_answer_without_coins(memory_world: World) -> None:
    world = memory_world
    option = world.option(world.payment())
    first = world.authorize(option, idempotency_key="once")
    sent = send(world, "1.00", idempotency_key="once-sent")
    set_coins(world, 0)
    assert world.authorize(option, idempotency_key="once").option.id == first.option.id
    assert send(world, "1.00", idempotency_key="once-sent").payment.id == sent.payment.id


def test_a_refused_request_can_be_repeated_under_its_key(memory_world: World) -> None:
    world = memory_world
    option = world.option(world.payment())
    set_coins(world, 0)
    with pytest.raises(DependencyFailed):
        world.authorize(option, idempotency_key="again")
    set_coins(world, 3)
    assert world.authorize(option, idempotency_key="again").option.status == "processing"


def test_another_environment_with_coins_is_not_refused(memory_world: World) -> None:
    world = memory_world
    set_coins(world, 0)
    with pytest.raises(DependencyFailed):
        world.authorize(world.option(world.payment()))
    other = World(world.storage, system=world.system).open("other")
    vault = other.vault_address()
    simulated(world).mint(USDC.address, vault, atomic("100.00"), "the other's")
    assert other.authorized().option.status == "processing"


class Silent(FaultyChain):
    """A chain that does not report gas."""


def test_a_chain_that_does_not_report_gas_refuses_nothing() -> None:
    world = funded(MemoryStorage())
    simulated(world).set_coins(world.environment_id, 0)
    foreign = {BASE: Silent(world.service.chains[BASE], at=0, fault=lambda call: call())}
    world.service = world.restarted(chains=foreign)
    assert world.authorized().option.status == "processing"


def test_an_operator_without_a_key_refuses_nothing(
    memory_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = memory_world
    derive = SimulatedChain.derive

    def refuse(chain: SimulatedChain, spec: AddressSpec) -> str:
        if spec.kind == "operator":
            raise SignerRefused("no operator is configured")
        return derive(chain, spec)

    set_coins(world, 0)
    option = world.option(world.payment())
    monkeypatch.setattr(SimulatedChain, "derive", refuse)
    assert world.authorize(option).option.status == "processing"


def test_a_silent_chain_is_what_a_request_without_coins_hears_of(memory_world: World) -> None:
    world = memory_world
    option = world.option(world.payment())
    set_coins(world, 0)
    world.fail("heads")
    with pytest.raises(DependencyFailed) as caught:
        world.authorize(option)
    assert caught.value.details == {"dependency": "chain", "retryable": True}


def test_what_was_authorized_waits_for_coins_and_is_sent_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    option = world.authorized()
    set_coins(world, 0)
    world.advance_until(lambda: "ALARM: funding.send of pay_funding" in caplog.text)
    assert world.operation_now(option).status in ("authorized", "unknown")
    assert world.held()[1] == atomic("25")
    set_coins(world, 2)
    world.advance_until(lambda: world.paid(option.payment.id).status == "succeeded")
    assert world.held(world.merchant)[0] == atomic("25")
    assert simulated(world).list_affordable()[operator(world)] < 2


def operator(world: World) -> str:
    return simulated(world).derive(AddressSpec(world.environment_id, "operator", "operator"))


def test_a_reorg_gives_the_coins_back(memory_world: World) -> None:
    world = memory_world
    option = world.authorized()
    set_coins(world, 1)
    world.run()
    assert world.operation_now(option).status == "broadcast"
    world.reorg(2)
    world.advance_until(lambda: world.operation_now(option).status == "confirmed")


def test_coins_for_any_number_are_not_listed(memory_world: World) -> None:
    world = memory_world
    world.authorized()
    assert simulated(world).list_affordable() == {}
    set_coins(world, 7)
    world.authorized("1.00")
    assert simulated(world).list_affordable() == {operator(world): 7}


def coins_now(world: World) -> int | None:
    id = f"{BASE}:{operator(world)}"
    row = world.storage.read(SIMULATED, lambda snapshot: snapshot.get(SimulatedSender, id))
    return None if row is None else row.coins


def catch(request: Callable[[], object]) -> DependencyFailed | None:
    """The refusal of a request, if it is refused."""
    try:
        request()
    except DependencyFailed as error:
        return error
    return None


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.one_of(
            st.integers(0, 2).map(lambda coins: ("coins", coins)),
            st.sampled_from([("pay", 0), ("fail", 0), ("run", 0)]),
            st.integers(1, 40).map(lambda seconds: ("wait", seconds)),
        ),
        min_size=3,
        max_size=12,
    )
)
def test_whatever_the_coins_do_a_request_is_carried_out_or_leaves_nothing(
    steps: list[tuple[str, int]],
) -> None:
    """Balances that flip, nodes that fail: no refusal stores, and all that was accepted ends."""
    world = funded(MemoryStorage())
    accepted, had_none_at = 0, 0
    for step, number in steps:
        if step == "coins":
            simulated(world).set_coins(world.environment_id, number)
        elif step == "wait":
            world.advance(number)
        elif step == "run":
            world.run()
        elif step == "fail":
            world.fail("heads")
        else:
            option, before = world.option(world.payment("1.00")), world.held()
            refused = catch(partial(world.authorize, option))
            accepted += refused is None
            if refused is not None:
                assert refused.reason is None or world.clock.now() - had_none_at <= MAX_AGE_MS
                assert world.option_now(option).status == "pending"
                assert world.held() == before
        if coins_now(world) == 0:
            had_none_at = world.clock.now()
    simulated(world).set_coins(world.environment_id, 100)
    world.advance(150)
    total, reserved, _ = world.held()
    assert (total, reserved) == (atomic("100") - accepted * atomic("1"), 0)
    assert world.held(world.merchant)[0] == accepted * atomic("1")
