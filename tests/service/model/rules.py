"""What callers do: every public operation that moves money, or may."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import get_args

from msgspec import UNSET

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import PolicyTerms
from payments_core.clock import to_datetime
from payments_core.deposits.record import Deposit
from payments_core.money import format_amount
from payments_core.networks import Asset
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
from tests.service.model.model_world import ASSETS, BASE, ETHEREUM, NOBODY, WALLETS, ModelWorld
from tests.service.model.paying import PAYERS

Act = Callable[[ModelWorld, random.Random], None]

HELD = ("action_required", "expired", "cancelled", "failed")
OPEN = ("awaiting_payment", "processing")
PAID = ("succeeded", "partially_refunded")


# Creation.


def receive(world: ModelWorld, rng: random.Random) -> None:
    """A Payment to receive, under terms that change from time to time."""
    if rng.random() < 0.2:
        _settings(world, rng)
    asset = an_asset(rng)
    new = NewPayment(
        amount=an_amount(rng),
        destination=a_destination(world, rng),
        asset_symbol=asset.symbol,
        chain_id=asset.chain_id,
        expires_in_s=rng.choice((300, 300, 300, 600, 600, 3_600, 3_600, 86_400)),
        reference=world.name("reference"),
    )
    world.tried(
        rng,
        "receive",
        lambda service, key: service.acting_as(world.server).payments.receive(
            new, idempotency_key=key
        ),
    )


def _settings(world: ModelWorld, rng: random.Random) -> None:
    terms = PaymentTerms(
        fee_bps=rng.choice((0, 0, 100, 250)),
        tolerance_bps=rng.choice((0, 0, 500, 1_000)),
        confirmations=rng.choice(({}, {}, {BASE: 1}, {BASE: 8, ETHEREUM: 5})),
    )
    world.tried(
        rng,
        "settings",
        lambda service, key: service.acting_as(world.server).payment_settings.replace(
            terms, idempotency_key=key
        ),
    )


def send(world: ModelWorld, rng: random.Random) -> None:
    """A Payment from a vault to somebody."""
    asset = an_asset(rng)
    new = NewSend(
        amount=an_amount(rng),
        account_id=an_account(world, rng).id,
        destination=a_destination(world, rng),
        chain_id=asset.chain_id,
        asset_symbol=asset.symbol,
        reference=world.name("reference"),
    )
    world.tried(
        rng,
        "send",
        lambda service, key: service.acting_as(world.server).payments.send(
            new, idempotency_key=key
        ),
    )


def collect(world: ModelWorld, rng: random.Random) -> None:
    """A Payment that draws on a mandate."""
    mandates = list(world.all(Mandate).values())
    if not mandates:
        mandate(world, rng)
        return
    new = NewCollect(
        amount=an_amount(rng),
        mandate_id=rng.choice(mandates).id,
        destination=a_destination(world, rng),
        reference=world.name("reference"),
    )
    world.tried(
        rng,
        "collect",
        lambda service, key: service.acting_as(world.server).payments.collect(
            new, idempotency_key=key
        ),
    )


# Paying from a vault.


def check_out(world: ModelWorld, rng: random.Random) -> None:
    """A Payment, its option, and the authorization of that."""
    receive(world, rng)
    option(world, rng)
    authorize(world, rng)


def option(world: ModelWorld, rng: random.Random) -> None:
    """An option of one of the accounts."""
    payment = world.payment(rng, "awaiting_payment")
    if payment is None:
        return
    payer = rng.choice((1, 1, 1, 2, 0))
    done = world.tried(
        rng,
        "option",
        lambda service, key: service.acting_as(world.clients[payer]).options.create(
            payment.id, idempotency_key=key
        ),
    )
    if done is not None:
        world.options.append((payer, done.option))


def refresh(world: ModelWorld, rng: random.Random) -> None:
    """Another one-time action for an option."""
    if not world.options:
        return
    place = _place(world, rng)
    payer, known = world.options[place]
    done = world.tried(
        rng,
        "refresh",
        lambda service, key: service.acting_as(world.clients[payer]).options.refresh(
            known.payment_id, known.id, idempotency_key=key
        ),
    )
    if done is not None:
        world.options[place] = (payer, done.option)


def authorize(world: ModelWorld, rng: random.Random) -> None:
    """The transfer from the payer's vault; the action may be used, void or over."""
    if not world.options:
        return
    payer, known = world.options[_place(world, rng)]
    world.tried(
        rng,
        "authorize",
        lambda service, key: service.acting_as(world.clients[payer]).options.authorize(
            known.payment_id,
            known.id,
            action_id=known.action_id,
            idempotency_key=key,
        ),
    )


def _place(world: ModelWorld, rng: random.Random) -> int:
    """Rather the newest option."""
    return -1 - min(rng.choice((0, 0, 0, 1, 2, 5)), len(world.options) - 1)


# The partner's decisions.


def cancel(world: ModelWorld, rng: random.Random) -> None:
    """The end of a Payment that received nothing."""
    payment = world.payment(rng, *OPEN)
    if payment is not None:
        world.tried(
            rng,
            "cancel",
            lambda service, key: service.acting_as(world.server).payments.cancel(
                payment.id, idempotency_key=key
            ),
        )


def refund(world: ModelWorld, rng: random.Random) -> None:
    """All of it or a part, to its sender or to somebody who is named; at times twice."""
    payment = world.payment(rng, *rng.choice((HELD[:1], HELD, PAID)))
    if payment is None:
        return
    for _ in range(rng.choice((1, 1, 2))):
        _refund(world, rng, payment)


def _refund(world: ModelWorld, rng: random.Random, payment: Payment) -> None:
    senders = [item.address for item in payment.paid_by]
    most = rng.choice((payment.books.held_atomic, payment.books.recipient, payment.received_atomic))
    amount = rng.choice((None, None, most, rng.randint(0, max(1, most))))
    new = NewRefund(
        amount=UNSET if amount is None else format_amount(max(0, amount), 6),
        destination=rng.choice((UNSET, UNSET, *senders, rng.choice(WALLETS))),
    )
    world.tried(
        rng,
        "refund",
        lambda service, key: service.acting_as(world.server).payments.refund(
            payment.id, new, idempotency_key=key
        ),
    )


def reconcile(world: ModelWorld, rng: random.Random) -> None:
    """One of the decisions on a Payment that went out of the ordinary."""
    action: ReconciliationAction = rng.choice(get_args(ReconciliationAction))
    if action == "return_misdirected":  # of a receipt: see misdirected.py
        return
    if action == "refund_excess":
        excess = [payment for payment in world.all(Payment).values() if payment.excess_atomic]
        payment = rng.choice(excess) if excess else None
    else:
        payment = world.payment(rng, *rng.choice((HELD[:1], HELD[:1], HELD)))
    if payment is None:
        return
    goes_back = action in SENDS_BACK
    destination = rng.choice((UNSET, rng.choice((*WALLETS, *NOBODY)))) if goes_back else UNSET
    done = world.tried(
        rng,
        f"reconcile {action}",
        lambda service, key: service.acting_as(world.server).payments.reconcile(
            payment.id,
            action,
            destination=destination,
            idempotency_key=key,
        ),
    )
    if done is not None:
        world.tally[f"reconcile {action}"] += 1


# Vaults, mandates, accounts.


def policy(world: ModelWorld, rng: random.Random) -> None:
    """Other terms for a vault: paused, limited, or as free as in the beginning."""
    account = an_account(world, rng)
    vault = world.vault(account, rng.choice((BASE, BASE, ETHEREUM)))
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
    world.tried(
        rng,
        "policy",
        lambda service, key: service.acting_as(world.server).vaults.replace_policy(
            account.id, vault.id, terms, idempotency_key=key
        ),
    )


def mandate(world: ModelWorld, rng: random.Random) -> None:
    """A standing approval to collect."""
    account = world.accounts[rng.choice((1, 1, 2))]
    vault = world.vault(account, rng.choice((BASE, BASE, ETHEREUM)))
    new = NewMandate(
        vault_id=vault.id,
        amount_per_period=rng.choice(("3", "10", "40")),
        period=rng.choice(("day", "week", "month")),
        expires_at=rng.choice((UNSET, to_datetime(world.chain_clock.now() + 7_200_000))),
    )
    world.tried(
        rng,
        "mandate",
        lambda service, key: service.acting_as(world.server).mandates.create(
            account.id, new, idempotency_key=key
        ),
    )


def revoke(world: ModelWorld, rng: random.Random) -> None:
    """The end of a mandate."""
    mandates = list(world.all(Mandate).values())
    if mandates:
        known = rng.choice(mandates)
        world.tried(
            rng,
            "revoke",
            lambda service, key: service.acting_as(world.server).mandates.revoke(
                known.account_id, known.id, idempotency_key=key
            ),
        )


def suspend(world: ModelWorld, rng: random.Random) -> None:
    """An account suspended, or active again."""
    account = an_account(world, rng)
    known = world.all(Account)[account.id]
    status = "active" if known.status == "suspended" else "suspended"
    world.tried(
        rng,
        "suspend",
        lambda service, key: service.acting_as(world.server).accounts.change(
            account.id, status=status, idempotency_key=key
        ),
    )


def forbid_and_pay(world: ModelWorld, rng: random.Random) -> None:
    """What was allowed a moment ago is tried right after it was forbidden."""
    rng.choice((policy, policy, suspend))(world, rng)
    for _ in range(2):
        rng.choice((send, collect, check_out, authorize, refund))(world, rng)


def deposit_address(world: ModelWorld, rng: random.Random) -> None:
    """A deposit address, new or the same as before."""
    account = an_account(world, rng)
    done = world.tried(
        rng,
        "deposit_address",
        lambda service, key: service.acting_as(world.server).deposits.issue_address(
            account.id, rng.choice((BASE, ETHEREUM)), idempotency_key=key
        ),
    )
    if done is not None and done.address.address not in world.deposit_addresses:
        world.deposit_addresses.append(done.address.address)


def check_deposits(world: ModelWorld, rng: random.Random) -> None:
    """A look at the chains for an account's deposits; rather where one failed."""
    failed = {d.account_id for d in world.all(Deposit).values() if d.status == "failed"}
    accounts = [account for account in world.accounts if account.id in failed]
    account = rng.choice(accounts or world.accounts)
    world.tried(
        rng,
        "check_deposits",
        lambda service, key: service.acting_as(world.server).deposits.check(
            account.id, rng.choice((UNSET, BASE)), idempotency_key=key
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


def an_account(world: ModelWorld, rng: random.Random) -> Account:
    """One of the three; rather a payer."""
    return world.accounts[rng.choice((0, 1, 1, 2))]


def a_destination(world: ModelWorld, rng: random.Random) -> ToAccount | ToWallet:
    """An account, or a wallet outside."""
    if rng.random() < 0.25:
        return ToWallet(address=rng.choice(WALLETS))
    return ToAccount(account_id=world.accounts[rng.choice((0, 0, 0, 2, 1))].id)


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
