"""What callers do in a life: public operations, with choices of its chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from payments_core.accounts.vaults.record import PolicyTerms, Vault
from payments_core.money import format_amount
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.checkout.checkout import PAYER
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount, ToWallet
from payments_core.payments.operations import NewPayment
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.sends import NewSend
from payments_core.tenants.authorization import Authority
from tests.chains.evm.life.network import CHAIN, WALLETS

if TYPE_CHECKING:
    from tests.chains.evm.life.life import Life

AMOUNTS = ("0.000001", "0.5", "1", "2", "3.333333", "5", "7.5", "10", "25")


def receive(life: Life) -> None:
    """A Payment, at times under new terms."""
    if life.rng.random() < 0.15:
        terms = PaymentTerms(
            fee_bps=life.rng.choice((0, 100, 250, 9_999)),
            tolerance_bps=life.rng.choice((0, 0, 500, 1_000)),
            confirmations=life.rng.choice(({}, {}, {CHAIN: 1}, {CHAIN: 12})),
        )
        life.attempt(
            "settings",
            lambda service, key: service.acting_as(life.server).payment_settings.replace(
                terms, idempotency_key=key
            ),
        )
    new = NewPayment(
        amount=life.rng.choice(AMOUNTS),
        destination=_choose_destination(life),
        chain_id=CHAIN,
        asset_symbol="USDC",
        expires_in_s=life.rng.choice((300, 300, 600, 3_600)),
        reference=life.name("ref"),
    )
    life.attempt(
        "receive",
        lambda service, key: service.acting_as(life.server).payments.receive(
            new, idempotency_key=key
        ),
    )


def send(life: Life) -> None:
    """Money out of a vault."""
    new = NewSend(
        amount=life.rng.choice(AMOUNTS),
        account_id=life.rng.choice(life.accounts).id,
        destination=_choose_destination(life),
        chain_id=CHAIN,
        asset_symbol="USDC",
        reference=life.name("ref"),
    )
    life.attempt(
        "send",
        lambda service, key: service.acting_as(life.server).payments.send(new, idempotency_key=key),
    )


def collect(life: Life) -> None:
    """Money by a mandate."""
    new = NewCollect(
        amount=life.rng.choice(AMOUNTS),
        mandate_id=life.rng.choice(life.mandates).id,
        destination=_choose_destination(life),
        reference=life.name("ref"),
    )
    life.attempt(
        "collect",
        lambda service, key: service.acting_as(life.server).payments.collect(
            new, idempotency_key=key
        ),
    )


def add_option(life: Life) -> None:
    """A payer's vault as a way to pay."""
    payment = life.pick_payment("awaiting_payment")
    if payment is None:
        return
    payer = life.rng.choice((1, 1, 2))
    details = life.attempt(
        "option",
        lambda service, key: service.acting_as(life.clients[payer]).options.create(
            payment.id, idempotency_key=key
        ),
    )
    if details is not None:
        life.options.append((payer, details.option))


def authorize(life: Life) -> None:
    """The payer agrees to an option, most often the last one."""
    if not life.options:
        return
    newest = life.rng.random() < 0.7
    payer, option = life.options[-1] if newest else life.rng.choice(life.options)
    life.attempt(
        "authorize",
        lambda service, key: service.acting_as(life.clients[payer]).options.authorize(
            option.payment_id,
            option.id,
            action_id=option.action_id,
            idempotency_key=key,
        ),
    )


def check_out(life: Life) -> None:
    """From the Payment to the authorization."""
    receive(life)
    add_option(life)
    authorize(life)


def pay_directly(life: Life) -> None:
    """A wallet as a way to pay."""
    payment = life.pick_payment("awaiting_payment", "processing")
    if payment is None:
        return
    payer, wallet = payer_of(life, payment), life.rng.choice((None, WALLETS[0]))
    details = life.attempt(
        "direct option",
        lambda service, key: service.acting_as(payer).public_options.create(
            payment.id, method="direct", payer_address=wallet, idempotency_key=key
        ),
    )
    if details is not None and life.rng.random() < 0.7:
        life.attempt(
            "select",
            lambda service, key: service.acting_as(payer).public_options.select(
                payment.id, details.option.id, idempotency_key=key
            ),
        )


def cancel(life: Life) -> None:
    """The partner ends a Payment."""
    payment = life.pick_payment("awaiting_payment", "processing")
    if payment is not None:
        life.attempt(
            "cancel",
            lambda service, key: service.acting_as(life.server).payments.cancel(
                payment.id, idempotency_key=key
            ),
        )


def refund(life: Life) -> None:
    """Some of a Payment, or all, back to a payer or to anybody; at times twice."""
    statuses = life.rng.choice(
        (
            ("action_required",),
            ("succeeded", "partially_refunded"),
            ("expired", "cancelled", "failed"),
            (),
        )
    )
    payment = life.pick_payment(*statuses)
    if payment is None:
        return
    books = payment.books
    most = life.rng.choice((books.held_amount, books.recipient, payment.received, 1))
    amount = life.rng.choice((None, None, most, life.rng.randint(0, max(1, most))))
    payers = [payer.address for payer in payment.paid_by]
    new = NewRefund(
        amount=UNSET if amount is None else format_amount(max(0, amount), 6),
        destination=life.rng.choice((UNSET, UNSET, *payers, life.rng.choice(WALLETS))),
    )
    for _ in range(life.rng.choice((1, 1, 2))):
        life.attempt(
            "refund",
            lambda service, key: service.acting_as(life.server).payments.refund(
                payment.id, new, idempotency_key=key
            ),
        )


def reconcile(life: Life) -> None:
    """The partner decides what becomes of a Payment that waits for that."""
    action: Any = life.rng.choice(
        ("accept", "refund", "refund_excess", "retry_execution", "retry_execution", "write_off")
    )
    if action == "refund_excess":
        payment = life.rng.choice([one for one in life.all(Payment) if one.excess] or [None])
    else:
        payment = life.pick_payment("action_required")
    if payment is not None:
        life.attempt(
            f"reconcile {action}",
            lambda service, key: service.acting_as(life.server).payments.reconcile(
                payment.id, action, idempotency_key=key
            ),
        )


def replace_policy(life: Life) -> None:
    """What a vault allows."""
    account = life.rng.choice(life.accounts)
    vault = next(
        one for one in life.all(Vault) if one.account_id == account.id and one.chain_id == CHAIN
    )
    terms = life.rng.choice(
        (
            PolicyTerms(),
            PolicyTerms(),
            PolicyTerms(),
            PolicyTerms(status="paused"),
            PolicyTerms(daily_limit="40"),
            PolicyTerms(per_payment_limit="6"),
        )
    )
    life.attempt(
        "policy",
        lambda service, key: service.acting_as(life.server).vaults.replace_policy(
            account.id, vault.id, terms, idempotency_key=key
        ),
    )


def check_deposits(life: Life) -> None:
    """Look at a deposit address now."""
    account = life.rng.choice(life.accounts)
    life.attempt(
        "check",
        lambda service, key: service.acting_as(life.server).deposits.check(
            account.id, CHAIN, idempotency_key=key
        ),
    )


def payer_of(life: Life, payment: Payment) -> Authority:
    """The authority of a holder of a Payment's link."""
    return Authority(
        requirement=PAYER,
        environment=life.server.environment,
        payment_id=payment.id,
        api_version=payment.api_version,
    )


def _choose_destination(life: Life) -> Any:
    if life.rng.random() < 0.3:
        return ToWallet(address=life.rng.choice(WALLETS))
    return ToAccount(account_id=life.rng.choice(life.accounts).id)


_OFTEN: tuple[tuple[int, Callable[[Life], None]], ...] = (
    (3, receive),
    (5, send),
    (3, collect),
    (6, check_out),
    (1, add_option),
    (2, authorize),
    (1, pay_directly),
    (2, cancel),
    (5, refund),
    (6, reconcile),
    (1, replace_policy),
    (1, check_deposits),
)
CALLERS = [act for weight, act in _OFTEN for _ in range(weight)]
