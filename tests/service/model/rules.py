"""What callers do: every public operation that moves money, or may."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import get_args

from msgspec import UNSET

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import PolicyTerms
from payments_core.assets import Asset
from payments_core.deposits.record import Deposit
from payments_core.money import format_amount
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount, ToWallet
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.operations import NewPayment
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunding.reconciliation_rules import SENDS_BACK, ReconciliationAction
from payments_core.payments.sends import NewSend
from tests.service.model.banking import BANK_CALLERS
from tests.service.model.misdirected import RETURNS
from tests.service.model.paying import PAYERS
from tests.service.model.stage import ASSETS, BASE, ETHEREUM, NOBODY, WALLETS, Stage

Act = Callable[[Stage, random.Random], None]

HELD = ("action_required", "expired", "cancelled", "failed")
OPEN = ("awaiting_payment", "processing")
PAID = ("succeeded", "partially_refunded")


# Creation.


def receive(stage: Stage, rng: random.Random) -> None:
    """A Payment to receive, under terms that change from time to time."""
    if rng.random() < 0.2:
        _settings(stage, rng)
    asset = an_asset(rng)
    new = NewPayment(
        amount=an_amount(rng),
        destination=a_destination(stage, rng),
        asset_symbol=asset.symbol,
        chain_id=asset.chain_id,
        expires_in_s=rng.choice((300, 300, 300, 600, 600, 3_600, 3_600, 86_400)),
        reference=stage.name("reference"),
    )
    stage.tried(
        rng,
        "receive",
        lambda service, key: service.acting_as(stage.server).payments.receive(
            new, idempotency_key=key
        ),
    )


def _settings(stage: Stage, rng: random.Random) -> None:
    terms = PaymentTerms(
        fee_bps=rng.choice((0, 0, 100, 250)),
        tolerance_bps=rng.choice((0, 0, 500, 1_000)),
        confirmations=rng.choice(({}, {}, {BASE: 1}, {BASE: 8, ETHEREUM: 5})),
    )
    stage.tried(
        rng,
        "settings",
        lambda service, key: service.acting_as(stage.server).payment_settings.replace(
            terms, idempotency_key=key
        ),
    )


def send(stage: Stage, rng: random.Random) -> None:
    """A Payment from a vault to somebody."""
    asset = an_asset(rng)
    new = NewSend(
        amount=an_amount(rng),
        account_id=an_account(stage, rng).id,
        destination=a_destination(stage, rng),
        chain_id=asset.chain_id,
        asset_symbol=asset.symbol,
        reference=stage.name("reference"),
    )
    stage.tried(
        rng,
        "send",
        lambda service, key: service.acting_as(stage.server).payments.send(
            new, idempotency_key=key
        ),
    )


def collect(stage: Stage, rng: random.Random) -> None:
    """A Payment that draws on a mandate."""
    mandates = list(stage.all(Mandate).values())
    if not mandates:
        mandate(stage, rng)
        return
    new = NewCollect(
        amount=an_amount(rng),
        mandate_id=rng.choice(mandates).id,
        destination=a_destination(stage, rng),
        reference=stage.name("reference"),
    )
    stage.tried(
        rng,
        "collect",
        lambda service, key: service.acting_as(stage.server).payments.collect(
            new, idempotency_key=key
        ),
    )


# Paying from a vault.


def check_out(stage: Stage, rng: random.Random) -> None:
    """A Payment, its option, and the authorization of that."""
    receive(stage, rng)
    option(stage, rng)
    authorize(stage, rng)


def option(stage: Stage, rng: random.Random) -> None:
    """An option of one of the accounts."""
    payment = stage.payment(rng, "awaiting_payment")
    if payment is None:
        return
    payer = rng.choice((1, 1, 1, 2, 0))
    done = stage.tried(
        rng,
        "option",
        lambda service, key: service.acting_as(stage.clients[payer]).options.create(
            payment.id, idempotency_key=key
        ),
    )
    if done is not None:
        stage.options.append((payer, done.option))


def refresh(stage: Stage, rng: random.Random) -> None:
    """Another one-time action for an option."""
    if not stage.options:
        return
    place = _place(stage, rng)
    payer, known = stage.options[place]
    done = stage.tried(
        rng,
        "refresh",
        lambda service, key: service.acting_as(stage.clients[payer]).options.refresh(
            known.payment_id, known.id, idempotency_key=key
        ),
    )
    if done is not None:
        stage.options[place] = (payer, done.option)


def authorize(stage: Stage, rng: random.Random) -> None:
    """The transfer from the payer's vault; the action may be used, void or over."""
    if not stage.options:
        return
    payer, known = stage.options[_place(stage, rng)]
    stage.tried(
        rng,
        "authorize",
        lambda service, key: service.acting_as(stage.clients[payer]).options.authorize(
            known.payment_id,
            known.id,
            action_id=known.action_id,
            idempotency_key=key,
        ),
    )


def _place(stage: Stage, rng: random.Random) -> int:
    """Rather the newest option."""
    return -1 - min(rng.choice((0, 0, 0, 1, 2, 5)), len(stage.options) - 1)


# The partner's decisions.


def cancel(stage: Stage, rng: random.Random) -> None:
    """The end of a Payment that received nothing."""
    payment = stage.payment(rng, *OPEN)
    if payment is not None:
        stage.tried(
            rng,
            "cancel",
            lambda service, key: service.acting_as(stage.server).payments.cancel(
                payment.id, idempotency_key=key
            ),
        )


def refund(stage: Stage, rng: random.Random) -> None:
    """All of it or a part, to its sender or to somebody who is named; at times twice."""
    payment = stage.payment(rng, *rng.choice((HELD[:1], HELD, PAID)))
    if payment is None:
        return
    for _ in range(rng.choice((1, 1, 2))):
        _refund(stage, rng, payment)


def _refund(stage: Stage, rng: random.Random, payment: Payment) -> None:
    senders = [item.address for item in payment.paid_by]
    most = rng.choice((payment.books.held_amount, payment.books.recipient, payment.received))
    amount = rng.choice((None, None, most, rng.randint(0, max(1, most))))
    new = NewRefund(
        amount=UNSET if amount is None else format_amount(max(0, amount), 6),
        destination=rng.choice((UNSET, UNSET, *senders, rng.choice(WALLETS))),
    )
    stage.tried(
        rng,
        "refund",
        lambda service, key: service.acting_as(stage.server).payments.refund(
            payment.id, new, idempotency_key=key
        ),
    )


def reconcile(stage: Stage, rng: random.Random) -> None:
    """One of the decisions on a Payment that went out of the ordinary."""
    action: ReconciliationAction = rng.choice(get_args(ReconciliationAction))
    if action == "return_misdirected":  # of a receipt: see misdirected.py
        return
    if action == "refund_excess":
        excess = [payment for payment in stage.all(Payment).values() if payment.excess]
        payment = rng.choice(excess) if excess else None
    else:
        payment = stage.payment(rng, *rng.choice((HELD[:1], HELD[:1], HELD)))
    if payment is None:
        return
    goes_back = action in SENDS_BACK
    destination = rng.choice((UNSET, rng.choice((*WALLETS, *NOBODY)))) if goes_back else UNSET
    done = stage.tried(
        rng,
        f"reconcile {action}",
        lambda service, key: service.acting_as(stage.server).payments.reconcile(
            payment.id,
            action,
            destination=destination,
            idempotency_key=key,
        ),
    )
    if done is not None:
        stage.tally[f"reconcile {action}"] += 1


# Vaults, mandates, accounts.


def policy(stage: Stage, rng: random.Random) -> None:
    """Other terms for a vault: paused, limited, or as free as in the beginning."""
    account = an_account(stage, rng)
    vault = stage.vault(account, rng.choice((BASE, BASE, ETHEREUM)))
    terms = rng.choice(
        (
            PolicyTerms(),
            PolicyTerms(),
            PolicyTerms(status="paused"),
            PolicyTerms(status="paused"),
            PolicyTerms(per_payment_limit=rng.choice(("0.5", "5", "12"))),
            PolicyTerms(daily_limit=rng.choice(("3", "10", "30"))),
            PolicyTerms(allowed_chains=(BASE,), daily_limit="20"),
        )
    )
    stage.tried(
        rng,
        "policy",
        lambda service, key: service.acting_as(stage.server).vaults.replace_policy(
            account.id, vault.id, terms, idempotency_key=key
        ),
    )


def mandate(stage: Stage, rng: random.Random) -> None:
    """A standing approval to collect."""
    account = stage.accounts[rng.choice((1, 1, 2))]
    vault = stage.vault(account, rng.choice((BASE, BASE, ETHEREUM)))
    new = NewMandate(
        vault_id=vault.id,
        amount_per_period=rng.choice(("3", "10", "40")),
        period=rng.choice(("day", "week", "month")),
        expires_at=rng.choice((UNSET, stage.chain_clock.now() + 7_200_000)),
    )
    stage.tried(
        rng,
        "mandate",
        lambda service, key: service.acting_as(stage.server).mandates.create(
            account.id, new, idempotency_key=key
        ),
    )


def revoke(stage: Stage, rng: random.Random) -> None:
    """The end of a mandate."""
    mandates = list(stage.all(Mandate).values())
    if mandates:
        known = rng.choice(mandates)
        stage.tried(
            rng,
            "revoke",
            lambda service, key: service.acting_as(stage.server).mandates.revoke(
                known.account_id, known.id, idempotency_key=key
            ),
        )


def suspend(stage: Stage, rng: random.Random) -> None:
    """An account suspended, or active again."""
    account = an_account(stage, rng)
    known = stage.all(Account)[account.id]
    status = "active" if known.status == "suspended" else "suspended"
    stage.tried(
        rng,
        "suspend",
        lambda service, key: service.acting_as(stage.server).accounts.change(
            account.id, status=status, idempotency_key=key
        ),
    )


def forbid_and_pay(stage: Stage, rng: random.Random) -> None:
    """What was allowed a moment ago is tried right after it was forbidden."""
    rng.choice((policy, policy, suspend))(stage, rng)
    for _ in range(2):
        rng.choice((send, collect, check_out, authorize, refund))(stage, rng)


def deposit_address(stage: Stage, rng: random.Random) -> None:
    """A deposit address, new or the same as before."""
    account = an_account(stage, rng)
    done = stage.tried(
        rng,
        "deposit_address",
        lambda service, key: service.acting_as(stage.server).deposits.issue_address(
            account.id, rng.choice((BASE, ETHEREUM)), idempotency_key=key
        ),
    )
    if done is not None and done.address.address not in stage.deposit_addresses:
        stage.deposit_addresses.append(done.address.address)


def check_deposits(stage: Stage, rng: random.Random) -> None:
    """A look at the chains for an account's deposits; rather where one failed."""
    failed = {d.account_id for d in stage.all(Deposit).values() if d.status == "failed"}
    accounts = [account for account in stage.accounts if account.id in failed]
    account = rng.choice(accounts or stage.accounts)
    stage.tried(
        rng,
        "check_deposits",
        lambda service, key: service.acting_as(stage.server).deposits.check(
            account.id, rng.choice((None, BASE)), idempotency_key=key
        ),
    )


# Choices.


def an_asset(rng: random.Random) -> Asset:
    """Rather USDC on Base."""
    return ASSETS[rng.choice((0, 0, 0, 0, 1, 2))]


def an_amount(rng: random.Random) -> str:
    """A small amount; at times the smallest of all."""
    return rng.choice(
        ("0.000001", "0.5", "1", "2", "2", "3.333333", "5", "5", "7.5", "10", "25", "300")
    )


def an_account(stage: Stage, rng: random.Random) -> Account:
    """One of the three; rather a payer."""
    return stage.accounts[rng.choice((0, 1, 1, 2))]


def a_destination(stage: Stage, rng: random.Random) -> ToAccount | ToWallet:
    """An account, or a wallet outside."""
    if rng.random() < 0.25:
        return ToWallet(address=rng.choice(WALLETS))
    return ToAccount(account_id=stage.accounts[rng.choice((0, 0, 0, 2, 1))].id)


CALLERS: tuple[tuple[int, Act], ...] = (
    (10, receive),
    (8, send),
    (6, collect),
    (10, check_out),
    (5, option),
    (2, refresh),
    (5, authorize),
    (4, cancel),
    (10, refund),
    (14, reconcile),
    (2, policy),
    (2, mandate),
    (1, revoke),
    (1, suspend),
    (3, forbid_and_pay),
    (2, deposit_address),
    (4, check_deposits),
    *PAYERS,
    *RETURNS,
    *BANK_CALLERS,
)
"""How often each of them, among all rules."""
