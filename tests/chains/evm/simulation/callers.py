"""What callers do in a run: public operations, chosen at random."""

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
from tests.chains.evm.simulation.network import CHAIN, WALLETS

if TYPE_CHECKING:
    from tests.chains.evm.simulation.run import Run

AMOUNTS = ("0.000001", "0.5", "1", "2", "3.333333", "5", "7.5", "10", "25")


def receive(run: Run) -> None:
    """A Payment, at times under new terms."""
    if run.rng.random() < 0.15:
        terms = PaymentTerms(
            fee_bps=run.rng.choice((0, 100, 250, 9_999)),
            tolerance_bps=run.rng.choice((0, 0, 500, 1_000)),
            confirmations=run.rng.choice(({}, {}, {CHAIN: 1}, {CHAIN: 12})),
        )
        run.attempt(
            "settings",
            lambda service, key: service.acting_as(run.server).payment_settings.replace(
                terms, idempotency_key=key
            ),
        )
    new = NewPayment(
        amount=run.rng.choice(AMOUNTS),
        destination=_choose_destination(run),
        chain_id=CHAIN,
        asset_symbol="USDC",
        expires_in_s=run.rng.choice((300, 300, 600, 3_600)),
        reference=run.name("ref"),
    )
    run.attempt(
        "receive",
        lambda service, key: service.acting_as(run.server).payments.receive(
            new, idempotency_key=key
        ),
    )


def send(run: Run) -> None:
    """Money out of a vault."""
    new = NewSend(
        amount=run.rng.choice(AMOUNTS),
        account_id=run.rng.choice(run.accounts).id,
        destination=_choose_destination(run),
        chain_id=CHAIN,
        asset_symbol="USDC",
        reference=run.name("ref"),
    )
    run.attempt(
        "send",
        lambda service, key: service.acting_as(run.server).payments.send(new, idempotency_key=key),
    )


def collect(run: Run) -> None:
    """Money by a mandate."""
    new = NewCollect(
        amount=run.rng.choice(AMOUNTS),
        mandate_id=run.rng.choice(run.mandates).id,
        destination=_choose_destination(run),
        reference=run.name("ref"),
    )
    run.attempt(
        "collect",
        lambda service, key: service.acting_as(run.server).payments.collect(
            new, idempotency_key=key
        ),
    )


def add_option(run: Run) -> None:
    """A payer's vault as a way to pay."""
    payment = run.pick_payment("awaiting_payment")
    if payment is None:
        return
    payer = run.rng.choice((1, 1, 2))
    details = run.attempt(
        "option",
        lambda service, key: service.acting_as(run.clients[payer]).options.create(
            payment.id, idempotency_key=key
        ),
    )
    if details is not None:
        run.options.append((payer, details.option))


def authorize(run: Run) -> None:
    """The payer agrees to an option, most often the last one."""
    if not run.options:
        return
    newest = run.rng.random() < 0.7
    payer, option = run.options[-1] if newest else run.rng.choice(run.options)
    run.attempt(
        "authorize",
        lambda service, key: service.acting_as(run.clients[payer]).options.authorize(
            option.payment_id,
            option.id,
            action_id=option.action_id,
            idempotency_key=key,
        ),
    )


def check_out(run: Run) -> None:
    """From the Payment to the authorization."""
    receive(run)
    add_option(run)
    authorize(run)


def pay_directly(run: Run) -> None:
    """A wallet as a way to pay."""
    payment = run.pick_payment("awaiting_payment", "processing")
    if payment is None:
        return
    payer, wallet = payer_of(run, payment), run.rng.choice((None, WALLETS[0]))
    details = run.attempt(
        "direct option",
        lambda service, key: service.acting_as(payer).public_options.create(
            payment.id, method="direct", payer_address=wallet, idempotency_key=key
        ),
    )
    if details is not None and run.rng.random() < 0.7:
        run.attempt(
            "select",
            lambda service, key: service.acting_as(payer).public_options.select(
                payment.id, details.option.id, idempotency_key=key
            ),
        )


def cancel(run: Run) -> None:
    """The partner ends a Payment."""
    payment = run.pick_payment("awaiting_payment", "processing")
    if payment is not None:
        run.attempt(
            "cancel",
            lambda service, key: service.acting_as(run.server).payments.cancel(
                payment.id, idempotency_key=key
            ),
        )


def refund(run: Run) -> None:
    """Some of a Payment, or all, back to a payer or to anybody; at times twice."""
    statuses = run.rng.choice(
        (
            ("action_required",),
            ("succeeded", "partially_refunded"),
            ("expired", "cancelled", "failed"),
            (),
        )
    )
    payment = run.pick_payment(*statuses)
    if payment is None:
        return
    books = payment.books
    most = run.rng.choice((books.held_atomic, books.recipient, payment.received_atomic, 1))
    amount = run.rng.choice((None, None, most, run.rng.randint(0, max(1, most))))
    payers = [payer.address for payer in payment.paid_by]
    new = NewRefund(
        amount=UNSET if amount is None else format_amount(max(0, amount), 6),
        destination=run.rng.choice((UNSET, UNSET, *payers, run.rng.choice(WALLETS))),
    )
    for _ in range(run.rng.choice((1, 1, 2))):
        run.attempt(
            "refund",
            lambda service, key: service.acting_as(run.server).payments.refund(
                payment.id, new, idempotency_key=key
            ),
        )


def reconcile(run: Run) -> None:
    """The partner decides what becomes of a Payment that waits for that."""
    action: Any = run.rng.choice(
        ("accept", "refund", "refund_excess", "retry_execution", "retry_execution", "write_off")
    )
    if action == "refund_excess":
        payment = run.rng.choice([one for one in run.all(Payment) if one.excess_atomic] or [None])
    else:
        payment = run.pick_payment("action_required")
    if payment is not None:
        run.attempt(
            f"reconcile {action}",
            lambda service, key: service.acting_as(run.server).payments.reconcile(
                payment.id, action, idempotency_key=key
            ),
        )


def replace_policy(run: Run) -> None:
    """What a vault allows."""
    account = run.rng.choice(run.accounts)
    vault = next(
        one for one in run.all(Vault) if one.account_id == account.id and one.chain_id == CHAIN
    )
    terms = run.rng.choice(
        (
            PolicyTerms(),
            PolicyTerms(),
            PolicyTerms(),
            PolicyTerms(status="paused"),
            PolicyTerms(daily_limit="40"),
            PolicyTerms(per_payment_limit="6"),
        )
    )
    run.attempt(
        "policy",
        lambda service, key: service.acting_as(run.server).vaults.replace_policy(
            account.id, vault.id, terms, idempotency_key=key
        ),
    )


def check_deposits(run: Run) -> None:
    """Look at a deposit address now."""
    account = run.rng.choice(run.accounts)
    run.attempt(
        "check",
        lambda service, key: service.acting_as(run.server).deposits.check(
            account.id, CHAIN, idempotency_key=key
        ),
    )


def payer_of(run: Run, payment: Payment) -> Authority:
    """The authority of a holder of a Payment's link."""
    return Authority(
        requirement=PAYER,
        environment=run.server.environment,
        payment_id=payment.id,
        api_version=payment.api_version,
    )


def _choose_destination(run: Run) -> Any:
    if run.rng.random() < 0.3:
        return ToWallet(address=run.rng.choice(WALLETS))
    return ToAccount(account_id=run.rng.choice(run.accounts).id)


_OFTEN: tuple[tuple[int, Callable[[Run], None]], ...] = (
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
