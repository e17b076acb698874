"""Every deadline of the service, one millisecond before it, at it and one after it.

A deadline is over from its instant on. The one exception is a Payment's receipt: in a block at
`expires_at` it is in time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs
import pytest

from payments_core.clock import HOUR, MINUTE, SECOND, Instant, to_datetime
from payments_core.engine.idempotency.record import RETENTION_MS, StoredResponse
from payments_core.errors import (
    ActionExpired,
    ClientTokenExpired,
    InvalidState,
    OptionLocked,
    PaymentExpired,
    PaymentsError,
    Unauthorized,
    ValidationFailed,
)
from payments_core.maintenance.retention import Retention, RetentionPurge
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount
from payments_core.payments.details import PaymentDetails
from payments_core.payments.mandates.operations import MandateDetails, NewMandate
from payments_core.payments.operations import NewPayment
from payments_core.payments.options.submissions import (
    SUBMISSION_LOCK_EVERY_MS,
    SUBMISSION_LOCK_MS,
)
from payments_core.quotes.request import NewQuote
from payments_core.tenants.operator_sessions import IDLE_MS, LIFETIME_MS
from payments_core.tenants.record import Key
from tests.service.payer import Payer
from tests.service.world import WALLET, World
from tests.signers import EvmWallet

EXPIRES_S = 600

Outcome = object
"""What an attempt returns, or the class of the error that it raises."""

Begun = tuple[Instant, Callable[[], Outcome]]
"""A deadline's instant, and an attempt whose outcome depends on it."""


@attrs.frozen
class Deadline:
    """One deadline: what is prepared, and what comes of the attempt before its end and after."""

    begin: Callable[[World], Begun]
    before: Outcome
    after: Outcome
    last_in_time_ms: int = -1


def move_to(world: World, instant: Instant) -> None:
    """Move the clock alone: the service does not run meanwhile."""
    world.system.advance((instant - world.clock.now() + 0.5) / SECOND)
    assert world.clock.now() == instant


def outcome(attempt: Callable[[], Outcome]) -> tuple[Outcome, Instant | None]:
    """What comes of an attempt, and the instant that its error names, if any."""
    try:
        return attempt(), None
    except PaymentsError as error:
        return type(error), getattr(error, "expired_at", None)


# Payments and their options.


def pay_by_transfer(world: World) -> Begun:
    world.run()
    payment = world.payment(expires_in_s=EXPIRES_S)
    return payment.payment.expires_at_ms, lambda: received(world, payment)


def pay_a_quote(world: World) -> Begun:
    world.run()
    to = ToAccount(account_id=world.merchant.id)
    new = NewQuote(amount="25.00", source_address=WALLET, destination=to)
    quote = world.resources.legacy.create_quote(new).quote
    payment = PaymentDetails(world.paid(quote.payment_id))
    return quote.expires_at_ms, lambda: received(world, payment)


def received(world: World, payment: PaymentDetails) -> Outcome:
    world.pay(payment, "25.00")
    world.service.parts.scanner("sandbox").wake(8453)
    world.run()
    world.advance(60)
    found = world.paid(payment.payment.id)
    return found.status, found.labels


def offer_a_vault(world: World) -> Begun:
    payment = world.payment(expires_in_s=EXPIRES_S)
    return payment.payment.expires_at_ms, lambda: world.option(payment).option.status


def refresh_a_vault_option(world: World) -> Begun:
    option = world.option(world.payment(expires_in_s=EXPIRES_S))
    return (
        option.option.expires_at_ms,
        lambda: (
            world.service.acting_as(world.client)
            .options.refresh(option.payment.id, option.option.id)
            .option.status
        ),
    )


def authorize_before_the_payment_expires(world: World) -> Begun:
    option = world.option(world.payment(expires_in_s=300))
    assert option.option.action_expires_at_ms == option.payment.expires_at_ms
    return option.payment.expires_at_ms, lambda: world.authorize(option).option.status


def authorize_by_an_action(world: World) -> Begun:
    option = world.option(world.payment(expires_in_s=EXPIRES_S))
    instant = option.option.action_expires_at_ms
    assert instant is not None
    assert instant < option.payment.expires_at_ms
    return instant, lambda: world.authorize(option).option.status


def offer_a_transfer(world: World) -> Begun:
    payer = Payer(world, expires_in_s=EXPIRES_S)
    return payer.paid().expires_at_ms, lambda: payer.option().option.status


def select_a_transfer(world: World) -> Begun:
    payer = Payer(world, expires_in_s=EXPIRES_S)
    option = payer.option()
    return payer.paid().expires_at_ms, lambda: payer.select(option).option.selection_status


def refresh_a_transfer(world: World) -> Begun:
    payer = Payer(world, expires_in_s=EXPIRES_S)
    option = payer.option()
    return payer.paid().expires_at_ms, lambda: payer.refresh(option).option.status


def choose_while_a_submission_locks(world: World) -> Begun:
    payer = Payer(world)
    chosen, other = payer.select(payer.option()), payer.another()
    payer.submit(chosen)
    return (
        world.clock.now() + SUBMISSION_LOCK_MS,
        lambda: payer.select(other).option.selection_status,
    )


def lock_again(world: World) -> Begun:
    payer = Payer(world)
    chosen, other = payer.select(payer.option()), payer.another()
    payer.submit(chosen)

    def attempt() -> Outcome:
        payer.submit(chosen, "0x" + "cd" * 32)
        return payer.select(other).option.selection_status

    return world.clock.now() + SUBMISSION_LOCK_EVERY_MS, attempt


# The page of a payment link.


def code_of(payer: Payer) -> str:
    url = payer.world.service.parts.links.build_url(payer.paid())
    assert url is not None
    return url.rpartition("/")[2]


def exchange_a_link(world: World) -> Begun:
    payer = Payer(world, expires_in_s=EXPIRES_S)
    code = code_of(payer)
    return (
        payer.paid().expires_at_ms,
        lambda: world.service.checkout.exchange_link(code, mode="sandbox").payment_id == payer.id,
    )


def show_a_link(world: World) -> Begun:
    payer = Payer(world, expires_in_s=EXPIRES_S)
    code = code_of(payer)

    def attempt() -> Outcome:
        page = world.service.checkout.read_page(code, mode="sandbox")
        return page.stage, page.due_atomic, page.client_secret is not None

    return payer.paid().expires_at_ms, attempt


def show_a_link_after_a_submission(world: World) -> Begun:
    payer = Payer(world)
    payer.submit(payer.option())
    code = code_of(payer)

    def attempt() -> Outcome:
        page = world.service.checkout.read_page(code, mode="sandbox")
        return page.due_atomic, page.notices

    return world.clock.now() + SUBMISSION_LOCK_MS, attempt


# Mandates.


def mandate(world: World, expires_at: Instant) -> MandateDetails:
    new = NewMandate(
        vault_id=world.vault_of().id,
        amount_per_period="40.00",
        period="month",
        expires_at=to_datetime(expires_at),
    )
    return world.resources.mandates.create(world.payer.id, new)


def collect_under_a_mandate(world: World) -> Begun:
    instant = world.clock.now() + HOUR
    to = ToAccount(account_id=world.merchant.id)
    id = mandate(world, instant).mandate.id
    new = NewCollect(amount="25.00", mandate_id=id, destination=to)
    return (
        instant,
        lambda: world.resources.payments.collect(new).payment.status,
    )


def list_a_mandate(world: World) -> Begun:
    instant = world.clock.now() + HOUR
    mandate(world, instant)

    def attempt() -> Outcome:
        [found] = world.resources.mandates.list(world.payer.id).records
        return found.status, found.remaining_atomic

    return instant, attempt


def create_a_mandate(world: World) -> Begun:
    instant = world.clock.now() + HOUR
    return instant, lambda: mandate(world, instant).status


# Credentials.


def answer_a_wallet_challenge(world: World) -> Begun:
    wallet, wallets = EvmWallet(11), world.resources.wallets
    asked = wallets.create_challenge(world.payer.id, wallet.address, "evm")
    signature = wallet.sign(asked.message, asked.nonce)
    return (
        asked.expires_at_ms,
        lambda: wallets.add(world.payer.id, asked.id, signature).verified,
    )


def new_session(world: World, expires_in_s: int) -> Any:
    return world.resources.client_sessions.create(
        account_id=world.payer.id, expires_in_s=expires_in_s
    )


def exchange_a_session_token(world: World) -> Begun:
    made = new_session(world, 86_400)
    assert made.session.exchange_expires_at_ms < made.session.expires_at_ms
    return (
        made.session.exchange_expires_at_ms,
        lambda: (
            world.service.client_tokens.exchange(made.token, mode="sandbox").session.id
            == made.session.id
        ),
    )


def look_up_a_session_token(world: World) -> Begun:
    made = new_session(world, 86_400)
    return (
        made.session.exchange_expires_at_ms,
        lambda: (
            world.service.client_tokens.find_exchangeable(made.token, mode="sandbox")[1].id
            == made.session.id
        ),
    )


def use_an_access_token(world: World) -> Begun:
    made = new_session(world, 3_600)
    access = world.service.client_tokens.exchange(made.token, mode="sandbox").access_token
    return (
        made.session.expires_at_ms,
        lambda: (
            world.service.client_tokens.authenticate(access, mode="sandbox")[1].id
            == made.session.id
        ),
    )


def expiring_key(world: World, kind: Literal["restricted", "publishable"]) -> tuple[Key, str]:
    expires_at = world.clock.now() + HOUR
    tenants = world.service.tenants
    return tenants.create_key(world.environment_id, kind, "k", expires_at=to_datetime(expires_at))


def use_a_server_key(world: World) -> Begun:
    key, secret = expiring_key(world, "restricted")
    authenticate = world.service.tenants.authenticate
    return int(
        key.expires_at_ms or 0
    ), lambda: authenticate(world.app.id, secret, mode="sandbox")[1].id == key.id


def use_a_bearer_key(world: World) -> Begun:
    key, secret = expiring_key(world, "restricted")
    authenticate = world.service.tenants.authenticate_bearer
    return int(key.expires_at_ms or 0), lambda: authenticate(secret, mode="sandbox")[1].id == key.id


def use_a_publishable_key(world: World) -> Begun:
    key, shown = expiring_key(world, "publishable")
    authenticate = world.service.tenants.authenticate_publishable
    return int(key.expires_at_ms or 0), lambda: authenticate(shown, mode="sandbox")[1].id == key.id


def log_in(world: World) -> tuple[Instant, Callable[[], Outcome]]:
    """When an operator's session began, and a use of it."""
    sessions = world.service.operator_sessions
    password = world.service.operators.create(world.environment_id, "ann").password
    begun = sessions.begin("ann", password, mode="sandbox")
    return (
        begun.session.began_at_ms,
        lambda: sessions.authenticate(begun.token, mode="sandbox")[1].id == begun.session.id,
    )


def use_an_idle_operator_session(world: World) -> Begun:
    began_at, use = log_in(world)
    return began_at + IDLE_MS, use


def use_an_old_operator_session(world: World) -> Begun:
    began_at, use = log_in(world)
    while world.clock.now() < began_at + LIFETIME_MS - 20 * MINUTE:
        move_to(world, world.clock.now() + 20 * MINUTE)
        assert use()
    return began_at + LIFETIME_MS, use


# Stored answers.


def ask_again_with_a_key(world: World) -> Begun:
    new = NewPayment(amount="5", destination=ToAccount(account_id=world.merchant.id))

    def create() -> str:
        made = world.resources.payments.receive(new, idempotency_key="k")
        return made.payment.id

    first = create()
    return world.clock.now() + RETENTION_MS, lambda: create() == first


def answered(world: World) -> Instant:
    """When the only stored answer expires."""
    ask_again_with_a_key(world)
    [answer] = stored_answers(world)
    return answer.expires_at_ms


def stored_answers(world: World) -> tuple[StoredResponse, ...]:
    return world.storage.read(
        world.environment_id,
        lambda snapshot: tuple(snapshot.find(StoredResponse, "by_expiry", limit=100).records),
    )


def delete_answers_by_the_job(world: World) -> Begun:
    instant = answered(world)
    world.run()

    def attempt() -> Outcome:
        world.run()
        return len(stored_answers(world))

    return instant, attempt


def delete_answers_by_the_purge(world: World) -> Begun:
    instant = answered(world)

    def attempt() -> Outcome:
        RetentionPurge(world.service.parts.ports).run(Retention())
        return len(stored_answers(world))

    return instant, attempt


FULL = 25_000_000
DEADLINES = (
    Deadline(pay_by_transfer, ("succeeded", ()), ("action_required", ("late",)), 0),
    Deadline(pay_a_quote, ("succeeded", ()), ("action_required", ("late",)), 0),
    Deadline(offer_a_vault, "pending", PaymentExpired),
    Deadline(refresh_a_vault_option, "pending", PaymentExpired),
    Deadline(authorize_before_the_payment_expires, "processing", PaymentExpired),
    Deadline(authorize_by_an_action, "processing", ActionExpired),
    Deadline(offer_a_transfer, "pending", PaymentExpired),
    Deadline(select_a_transfer, "selected", PaymentExpired),
    Deadline(refresh_a_transfer, "pending", PaymentExpired),
    Deadline(choose_while_a_submission_locks, OptionLocked, "selected"),
    Deadline(lock_again, "selected", OptionLocked),
    Deadline(exchange_a_link, True, PaymentExpired),
    Deadline(show_a_link, ("waiting", FULL, True), ("ending", 0, False)),
    Deadline(show_a_link_after_a_submission, (0, ("submitted",)), (FULL, ())),
    Deadline(collect_under_a_mandate, "processing", InvalidState),
    Deadline(list_a_mandate, ("active", 40_000_000), ("expired", 0)),
    Deadline(create_a_mandate, "active", ValidationFailed),
    Deadline(answer_a_wallet_challenge, True, ActionExpired),
    Deadline(exchange_a_session_token, True, ClientTokenExpired),
    Deadline(look_up_a_session_token, True, ClientTokenExpired),
    Deadline(use_an_access_token, True, ClientTokenExpired),
    Deadline(use_a_server_key, True, Unauthorized),
    Deadline(use_a_bearer_key, True, Unauthorized),
    Deadline(use_a_publishable_key, True, Unauthorized),
    Deadline(use_an_idle_operator_session, True, Unauthorized),
    Deadline(use_an_old_operator_session, True, Unauthorized),
    Deadline(ask_again_with_a_key, True, False),
    Deadline(delete_answers_by_the_job, 1, 0),
    Deadline(delete_answers_by_the_purge, 1, 0),
)


@pytest.mark.parametrize("offset_ms", [-1, 0, 1])
@pytest.mark.parametrize("deadline", DEADLINES, ids=lambda deadline: deadline.begin.__name__)
def test_a_deadline_ends_to_the_millisecond(
    memory_world: World, deadline: Deadline, offset_ms: int
) -> None:
    instant, attempt = deadline.begin(memory_world)
    move_to(memory_world, instant + offset_ms)
    wanted = deadline.before if offset_ms <= deadline.last_in_time_ms else deadline.after
    found, named = outcome(attempt)
    assert found == wanted
    assert named in (None, instant)
