"""What each Payment must show, by the contract's rules written a second time (contract §6, §7).

`Ledger` folds the journal's causes: what a receipt counts for, what is excess, the fee, and what a
refund takes. The amounts that the service posts are compared with it, and not used.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
from msgspec import UNSET

from payments_core.chains.outbox.record import OutboundTransfer, ReturnAddress
from payments_core.errors import PaymentsError
from payments_core.money import format_amount
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunds.record import Refund
from tests.service.model.index import Wrong
from tests.service.model.mirror import Commit
from tests.service.model.model_world import ASSETS, NOBODY, ModelWorld

if TYPE_CHECKING:
    from tests.service.model.onchain import ChainIndex

_LEAVING = ("accepted", "executing")
_PAID_OUT = ("succeeded", "partially_refunded")


@attrs.define
class Ledger:
    """What the rules say that a Payment holds: balances by account, and receipts by their ids."""

    held: Counter[str] = attrs.field(factory=Counter)
    kept: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    @property
    def counted(self) -> int:
        """What of the receipts was for the amount, and not excess."""
        return sum(part for part, _ in self.kept.values())

    def room(self, payment: Payment) -> int:
        """How much of a receipt the Payment, as it was before it, can still use."""
        if payment.release_id is not None:
            leaves = payment.released_atomic if payment.status in _LEAVING else 0
            return leaves - self.held["escrow"]
        if payment.status == "refunded":
            return -self.held["escrow"]
        return payment.amount_atomic - self.counted


class Values:
    """The ledgers of all Payments, kept up with the commits."""

    def __init__(self) -> None:
        self.ledgers: dict[str, Ledger] = defaultdict(Ledger)

    def post(
        self, world: ModelWorld, entry: JournalEntry, before: Payment, after: Payment
    ) -> Counter[str]:
        """The postings of an entry by the rules, which the ledger then has."""
        ledger = self.ledgers[entry.payment_id]
        wanted = Counter(entry.postings)  # of a cause that has no rule here
        if entry.cause == "receipt":
            amount = world.all(Receipt)[entry.subject].amount_atomic
            part = min(amount, max(0, ledger.room(before)))
            ledger.kept[entry.subject] = part, amount - part
            wanted = Counter(payer=-amount, escrow=part, excess=amount - part)
        elif entry.cause == "receipt_reorged":
            part, over = ledger.kept.pop(entry.subject)
            wanted = Counter(payer=part + over, escrow=-part, excess=-over)
        elif entry.cause == "release":
            fee = after.released_atomic * after.fee_bps // 10_000
            wanted = Counter(
                escrow=-after.released_atomic, recipient=after.released_atomic - fee, fees=fee
            )
        elif entry.cause == "refund":
            refund = world.all(Refund)[entry.subject]
            taken = Counter(
                escrow=refund.from_escrow_atomic,
                excess=refund.from_excess_atomic,
                recipient=refund.from_recipient_atomic,
                offramp=refund.from_offramp_atomic,
            )
            wanted = Counter(payer=refund.amount_atomic)
            wanted.subtract(taken)
        ledger.held.update(wanted)
        return wanted


def entries_say_what_the_rules_say(world: ModelWorld, values: Values, commit: Commit) -> Wrong:
    """Each entry has the rules' postings, and each Payment what they add up to."""
    earlier = {before.id: before for before, _ in commit.replaced(Payment)}
    payments = world.all(Payment)
    for entry in sorted(
        commit.inserted(JournalEntry), key=lambda one: (one.payment_id, one.number)
    ):
        after = payments[entry.payment_id]
        wanted = values.post(world, entry, earlier.get(after.id, after), after)
        posted = Counter(entry.postings)
        if {k: v for k, v in wanted.items() if v} != {k: v for k, v in posted.items() if v}:
            yield f"{entry.id} of {entry.cause} has {dict(posted)}, and should {dict(wanted)}"
    for payment in commit.after(Payment):
        ledger = values.ledgers[payment.id]
        if payment.counted_atomic != ledger.counted:
            yield f"{payment.id} counted {payment.counted_atomic}, and should {ledger.counted}"
        if payment.excess_atomic != max(0, ledger.held["excess"]):
            yield f"{payment.id} has excess {payment.excess_atomic}, not {ledger.held['excess']}"
        if payment.books.fees != ledger.held["fees"]:
            yield f"{payment.id} paid {payment.books.fees}, and should {ledger.held['fees']}"


def vaults_pay_what_remains(world: ModelWorld, values: Values, commit: Commit) -> Wrong:
    """An option asks for what remains when it begins, and when it is refreshed; a vault pays what
    its option asks, and never more than remains when that is authorized."""
    payments, options = world.all(Payment), world.all(PaymentOption)
    asked = [
        after for before, after in commit.changes
        if isinstance(after, PaymentOption)
        and after.action_id is not None
        and (not isinstance(before, PaymentOption) or before.action_id != after.action_id)
    ]  # fmt: skip
    for option in asked:
        remains = (
            payments[option.payment_id].amount_atomic - values.ledgers[option.payment_id].counted
        )
        if option.required_atomic != remains:
            yield f"{option.id} asks {option.required_atomic}, and {remains} remains"
    authorized = {
        after.id for before, after in commit.changes
        if isinstance(after, FundingOperation)
        and after.status == "authorized"
        # What was sent in vain is authorized again, and was counted on when it first was.
        and (not isinstance(before, FundingOperation) or before.status == "awaiting_authorization")
    }  # fmt: skip
    for operation in commit.after(FundingOperation):
        payment = payments[operation.payment_id]
        if operation.amount_atomic != options[operation.option_id].required_atomic:
            yield f"{operation.id} moves {operation.amount_atomic}, not what its option asks"
        remains = payment.amount_atomic - values.ledgers[payment.id].counted
        if (
            operation.id in authorized
            and payment.intent == "receive"
            and operation.amount_atomic > remains
        ):
            yield f"{operation.id} moves {operation.amount_atomic}, and {remains} remains"


VALUE_INVARIANTS: tuple[Callable[[ModelWorld, Values, Commit], Wrong], ...] = (
    entries_say_what_the_rules_say,
    vaults_pay_what_remains,
)


# What a recipient sends back.


def give_back(world: ModelWorld, rng: random.Random) -> None:
    """A recipient sends some of a vault's payment back, or another token of the same chain."""
    addresses = list(world.all(ReturnAddress).values())
    if not addresses:
        return
    to = rng.choice(addresses[-4:])
    asset = rng.choice([asset for asset in ASSETS if asset.chain_id == to.chain_id])
    amount = format_amount(rng.choice((1, 10**6, 5 * 10**6)), asset.decimals)
    world.sandbox().transfer(world.server, to.chain_id, asset.symbol, amount, to=to.address)


def only_what_came_back_was_returned(world: ModelWorld, index: ChainIndex, commit: Commit) -> Wrong:
    """No Payment has more returned than came, in its own asset, to the addresses that paid it."""
    changed = [
        after
        for before, after in commit.replaced(Payment)
        if before.returned_atomic != after.returned_atomic
    ]
    for payment in changed:
        if payment.chain_id in world.reorged:
            continue
        came = 0
        for to in world.all(ReturnAddress).values():
            outgoing = world.all(OutboundTransfer)[to.outgoing_id]
            refund = world.all(Refund).get(outgoing.owner_id)
            owner = outgoing.owner_id if refund is None else refund.payment_id
            if owner == payment.id and to.chain_id == payment.chain_id:
                came += index.paid_in[payment.chain_id, payment.asset.address, to.address]
        if payment.returned_atomic > came:
            yield f"{payment.id} has {payment.returned_atomic} returned, and {came} came back"


# What may not be refused.


def refund_all_senders(world: ModelWorld, rng: random.Random) -> None:
    """A refund of a released Payment to all who paid it, which is not refused without a reason."""
    paid = [payment for payment in world.all(Payment).values() if payment.status in _PAID_OUT]
    paid = [payment for payment in paid if payment.intent != "send"]
    if not paid:
        return
    payment = rng.choice(paid[-3:])
    amount = rng.choice((None, max(1, payment.books.recipient // 3)))
    new = NewRefund(amount=UNSET if amount is None else format_amount(amount, 6))

    def ask(service: object, key: object) -> object:
        try:
            return service.acting_as(world.server).payments.refund(  # type: ignore[attr-defined]
                payment.id, new, idempotency_key=key
            )
        except PaymentsError as error:
            if error.code == "validation_failed" and _can_be_divided(world, payment, amount):
                world.report("a refund to all is not refused", f"{payment.id}: {error}")
            raise

    world.tried(rng, "refund", ask)


def _can_be_divided(world: ModelWorld, payment: Payment, amount: int | None) -> bool:
    """Whether the recipient still has what all the senders may claim, but for the fee."""
    now = world.all(Payment)[payment.id]
    refunds = [r for r in world.all(Refund).values() if r.payment_id == now.id]
    claims: Counter[str] = Counter()
    for receipt in world.all(Receipt).values():
        if receipt.payment_id == now.id and receipt.status == "verified":
            claims[receipt.sender] += receipt.counted_atomic
    for refund in refunds:
        if refund.status in ("created", "submitted") or refund.destination not in claims:
            return False
        if refund.status == "succeeded":
            claims[refund.destination] -= refund.from_recipient_atomic
    if "reorged" in now.labels or now.status not in _PAID_OUT or set(claims) & set(NOBODY):
        return False
    owed = sum(claims.values())
    return 0 < owed <= now.books.recipient + now.books.fees and (amount or 0) <= owed


VALUE_RULES: tuple[tuple[int, Callable[[ModelWorld, random.Random], None]], ...] = (
    (8, give_back),
    (14, refund_all_senders),
)
"""How often each of them, where mostly values are played."""
