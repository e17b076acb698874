"""What a request names is screened before it is stored: wallets, and destinations of refunds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_core.accounts.new_wallets import NewWallet
from payments_core.accounts.operations import NewAccount
from payments_core.accounts.record import Account
from payments_core.accounts.wallet_signatures import MessageSignature
from payments_core.errors import DependencyFailed, PaymentsError, ScreeningRefused
from payments_core.payments.details import PaymentDetails
from payments_core.screening.port import Outcome
from payments_core.storage.port import Storage
from tests.service.accounts.test_wallets import WALLET as WALLET_OF_PAYER
from tests.service.accounts.test_wallets import answer, challenge, linked
from tests.service.deposits.test_misdirected_deposits import AT_BASE, deposit_wrongly, only_deposit
from tests.service.notices.office import notice
from tests.service.screening.desk import Desk, case_of
from tests.service.screening.owners import list_held, screened
from tests.service.world import OTHER_WALLET, World, answer_of, once

ADDRESS = WALLET_OF_PAYER.address
Link = Callable[[World], object]


@pytest.fixture
def world_and_desk(storage: Storage) -> tuple[World, Desk]:
    return screened(storage)


def by_challenge(world: World) -> object:
    return answer(world, challenge(world, WALLET_OF_PAYER), WALLET_OF_PAYER)


def by_message(world: World) -> object:
    text = "These are my words"
    signature = WALLET_OF_PAYER.sign(text, "")
    message = MessageSignature(chain_type="evm", address=ADDRESS, message=text, signature=signature)
    return world.resources.wallets.add_by_message(world.payer.id, message)


def at_creation(world: World) -> object:
    new = NewAccount(
        external_user_id="newcomer",
        subject_type="individual",
        wallets=[NewWallet(chain_type="evm", address=ADDRESS)],
    )
    return world.resources.accounts.create(new)


LINKS: dict[str, Link] = {
    "challenge": by_challenge, "message": by_message, "creation": at_creation,
}  # fmt: skip


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
class TestWallets:
    def test_a_clear_one_is_linked(self, world_and_desk: tuple[World, Desk], link: Link) -> None:
        world, desk = world_and_desk
        assert link(world)
        [asked] = desk.asked
        assert (asked.subject.reference, asked.subject.chain_id) == (ADDRESS, None)
        assert (asked.direction, asked.amount_atomic, asked.asset) == ("link", None, None)

    @pytest.mark.parametrize("outcome", ["review", "blocked"])
    def test_any_other_is_refused_and_not_stored(
        self, world_and_desk: tuple[World, Desk], link: Link, outcome: Outcome
    ) -> None:
        world, desk = world_and_desk
        desk.says[ADDRESS] = outcome
        refused = refusal(lambda: link(world), ScreeningRefused)
        assert refused.details == {"outcome": outcome, "reason": f"listed as {outcome}"}
        assert_nothing_is_linked(world)
        desk.says.clear()
        assert link(world)

    def test_without_an_answer_it_is_refused_for_now(
        self, world_and_desk: tuple[World, Desk], link: Link
    ) -> None:
        world, desk = world_and_desk
        desk.is_down = True
        refused = refusal(lambda: link(world), DependencyFailed)
        assert refused.details == {"dependency": "screening", "retryable": True}
        assert_nothing_is_linked(world)
        desk.is_down = False
        assert link(world)

    def test_a_notice_of_a_refused_one_is_known(
        self, world_and_desk: tuple[World, Desk], link: Link
    ) -> None:
        world, desk = world_and_desk
        desk.says[ADDRESS] = "review"
        refusal(lambda: link(world), ScreeningRefused)
        door = world.service.parts.provider_notices
        door.receive("sandbox", "screening", "desk", *notice(("n1", case_of(ADDRESS))))
        world.run()
        assert len(door.list("sandbox", "routed").records) == 1


def test_a_repeated_request_has_its_answer_whatever_is_said_now(memory_world: World) -> None:
    world = memory_world
    desk = Desk(world.clock)
    world.service = world.restarted(screening=desk)
    asked = challenge(world, WALLET_OF_PAYER)

    def first() -> object:
        return answer(world, asked, WALLET_OF_PAYER, idempotency_key=once("k1"))

    first()
    desk.says[ADDRESS] = "blocked"
    assert answer_of(first) is not None
    assert len(desk.asked) == 1


def test_a_wallet_that_does_not_sign_is_not_asked_for(memory_world: World) -> None:
    world = memory_world
    desk = Desk(world.clock)
    world.service = world.restarted(screening=desk)
    asked = challenge(world, WALLET_OF_PAYER)
    with pytest.raises(PaymentsError):
        world.resources.wallets.add(world.payer.id, asked.id, "0x" + "11" * 65)
    assert desk.asked == []


def refund(world: World, payment: PaymentDetails) -> object:
    return world.refund(payment, "10.00", OTHER_WALLET)


def reconcile(world: World, payment: PaymentDetails) -> object:
    return world.reconcile(payment, "refund", destination=OTHER_WALLET)


def succeeded(world: World) -> PaymentDetails:
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.finish()
    return payment


def underpaid(world: World) -> PaymentDetails:
    payment = world.payment("25.00")
    world.pay(payment, "5.00")
    world.finish()
    world.advance_until(lambda: world.paid(payment.payment.id).status == "action_required", 1_800)
    return payment


REFUNDS = {"refund": (succeeded, refund), "reconcile": (underpaid, reconcile)}


@pytest.mark.parametrize(("prepare", "send"), REFUNDS.values(), ids=REFUNDS)
class TestDestinations:
    def test_a_blocked_one_is_refused_until_an_operator_clears_it(
        self,
        world_and_desk: tuple[World, Desk],
        prepare: Callable[[World], PaymentDetails],
        send: Callable[[World, PaymentDetails], object],
    ) -> None:
        world, desk = world_and_desk
        payment = prepare(world)
        desk.says[OTHER_WALLET] = "blocked"
        for _ in range(2):
            refusal(lambda: send(world, payment), ScreeningRefused)
        assert not world.resources.payments.list_refunds(payment.payment.id).records
        [held] = list_held(world, "blocked")
        assert (held.resource, held.transfer_id) == (payment.payment.id, None)
        shop = world.service.environment(world.environment_id)
        shop.screening.decide(held.id, "clear", operator="ann")
        assert list_held(world, "blocked") == []
        send(world, payment)
        world.finish()
        [done] = world.resources.payments.list_refunds(payment.payment.id).records
        assert (done.status, done.destination) == ("succeeded", OTHER_WALLET)

    @pytest.mark.parametrize("outcome", ["review", "silent"])
    def test_one_in_review_is_accepted_and_held(
        self,
        world_and_desk: tuple[World, Desk],
        prepare: Callable[[World], PaymentDetails],
        send: Callable[[World, PaymentDetails], object],
        outcome: str,
    ) -> None:
        world, desk = world_and_desk
        payment = prepare(world)
        if outcome == "review":
            desk.says[OTHER_WALLET] = "review"
        desk.is_down = outcome == "silent"
        send(world, payment)
        world.finish()
        [waits] = world.resources.payments.list_refunds(payment.payment.id).records
        assert (waits.status, waits.in_review) == ("created", True)
        told = world.last_payload(payment.payment.id, "payment.in_review")
        assert told["refundId"] == waits.id


def test_a_deposit_is_not_sent_to_a_blocked_destination(
    world_and_desk: tuple[World, Desk],
) -> None:
    world, desk = world_and_desk
    deposit_wrongly(world, AT_BASE)
    world.finish()
    deposit = only_deposit(world)
    desk.says[OTHER_WALLET] = "blocked"

    def send() -> object:
        return world.resources.deposits.send_back(world.payer.id, deposit.id, OTHER_WALLET)

    refusal(send, ScreeningRefused)
    assert only_deposit(world).sent_back is None
    [held] = list_held(world, "blocked")
    shop = world.service.environment(world.environment_id)
    shop.screening.decide(held.id, "blocked", operator="ann")
    desk.says.clear()
    refusal(send, ScreeningRefused)  # the operator's word stays
    [held] = list_held(world, "blocked")
    assert held.decided_by == "ann"
    shop.screening.decide(held.id, "clear", operator="ann")  # until an operator takes it back
    send()
    assert list_held(world, "blocked") == []


def refusal(call: Callable[[], object], kind: type[PaymentsError]) -> PaymentsError:
    with pytest.raises(kind) as refused:
        call()
    return refused.value


def assert_nothing_is_linked(world: World) -> None:
    assert linked(world) == []
    stored = world.storage.read(
        world.environment_id,
        lambda snapshot: snapshot.find(Account, "by_external_user", ("newcomer",)).records,
    )
    assert list(stored) == []
