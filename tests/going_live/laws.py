"""What must be true when a play is over: nothing twice, nothing lost.

Each law compares the books with what the chains or a provider have of their own; what it yields is
wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from payments_core.accounts.vaults.record import VaultBalance
from payments_core.accounts.verification.record import Verification
from payments_core.chains.typed_data import ZERO_ADDRESS
from payments_core.deposits.record import DepositAddress
from payments_core.payments.receipts.record import Receipt
from payments_core.storage.jobs import Job, is_parked
from tests.going_live.banking import ATOMS_OF_A_CENT
from tests.going_live.customers import BLOCKED, DEPOSIT, UNIT
from tests.going_live.evidence import Evidence
from tests.outages.laws import OF_COMMITS
from tests.service.model.index import Index

Wrong = Iterator[str]


def each_case_is_opened_once(evidence: Evidence) -> Wrong:
    """The KYC provider has one case for each verification, under its key, and no other."""
    opened = Counter(str(case["key"]) for case in evidence.cases)
    for verification in evidence.verifications:
        if opened.pop(verification.id, 0) != 1:
            yield f"{verification.id} has not exactly one case at the provider"
    yield from (f"the case of {key} is no verification's" for key in opened)


def each_account_is_verified_once_as_the_provider_says(evidence: Evidence) -> Wrong:
    """One verification for each account, approved where the case has passed."""
    of_account: dict[str, list[Verification]] = defaultdict(list)
    for verification in evidence.verifications:
        of_account[verification.account_id].append(verification)
    states = {case["id"]: case["state"] for case in evidence.cases}
    for customer in evidence.customers:
        found = of_account[customer.account_id]
        if len(found) != ("kyc" in customer.passed):
            yield f"{customer.name} has {len(found)} verifications"
        for one in found:
            if (one.status == "approved") != (states.get(one.reference) == "passed"):
                yield f"{one.id} is {one.status}, and its case {states.get(one.reference)}"
        if "verify" in customer.passed and [one.status for one in found] != ["approved"]:
            yield f"{customer.name} is not approved"


def each_deposit_is_credited_once(evidence: Evidence) -> Wrong:
    """Each transfer to a deposit address is one settled deposit, and went on to the vault."""
    addresses = {one.address for one in evidence.found.all(DepositAddress).values()}
    came = Counter(
        (t.chain_id, t.hash, t.recipient, t.amount_atomic)
        for t in evidence.transfers
        if t.recipient in addresses
    )
    credited = Counter(
        (d.chain_id, d.transaction_hash, d.address, int(d.amount_atomic)) for d in evidence.deposits
    )
    if came != credited:
        yield f"came and was not credited: {came - credited}; the other way: {credited - came}"
    yield from (f"{d.id} is {d.status}" for d in evidence.deposits if d.status != "settled")
    for customer in evidence.customers:
        place = customer.chain_id, customer.deposit_address
        if evidence.came(place) != DEPOSIT * UNIT * ("deposit" in customer.passed):
            yield f"{customer.name} was paid {evidence.came(place)} at {place}"
        if evidence.went(place) != evidence.came(place):
            yield f"{place} got {evidence.came(place)} and passed on {evidence.went(place)}"


def what_a_payment_received_was_released_or_refunded(evidence: Evidence) -> Wrong:
    """On the chain and in the books: receipts = releases + refunds from escrow."""
    for payment in evidence.payments:
        if payment.escrow_address is None:
            continue
        place = payment.chain_id, payment.escrow_address
        receipts = [
            r for r in evidence.found.all(Receipt).values()
            if r.payment_id == payment.id and r.status == "verified"
        ]  # fmt: skip
        received = sum(r.amount_atomic for r in receipts)
        if payment.intent == "receive" and evidence.came(place) != received:
            yield f"{payment.id} got {evidence.came(place)}, and its receipts say {received}"
        if evidence.went(place) != evidence.came(place):
            yield f"{payment.id} got {evidence.came(place)}, and {evidence.went(place)} went on"


def each_payment_is_paid_once(evidence: Evidence) -> Wrong:
    """Each customer's Payments succeeded, and their amounts moved once."""
    found = {payment.id: payment for payment in evidence.payments}
    wanted = {
        id: amount * UNIT
        for customer in evidence.customers
        for id, amount in (
            (customer.payment_id, customer.paid),
            (customer.routed_id, customer.routed),
            (customer.carded_id, customer.carded),
            (customer.send_id, customer.sent),
            (customer.payout_id, customer.paid_out),
            (customer.stopped_id, 0),
        )
        if id
    }  # fmt: skip
    ends = {c.payment_id: "partially_refunded" for c in evidence.customers if "refund" in c.passed}
    ends |= {c.payout_id: "refunded" for c in evidence.customers if "return" in c.passed}
    ends |= {c.stopped_id: "action_required" for c in evidence.customers}
    if wanted.keys() != found.keys():
        yield f"asked for and not there, or the other way: {wanted.keys() ^ found.keys()}"
    for id, payment in found.items():
        if payment.status != ends.get(id, "succeeded"):
            yield f"{id} is {payment.status}"
        if payment.escrow_address is not None and id in wanted:
            went = evidence.went((payment.chain_id, payment.escrow_address))
            if went != wanted[id]:
                yield f"{id} paid {went}, and was to pay {wanted[id]}"


def each_wallet_is_paid_once(evidence: Evidence) -> Wrong:
    """Refunds and sends arrive in one transfer each, and none is unasked for."""
    for customer in evidence.customers:
        for step, address, amount in (
            ("refund", customer.refund_address, customer.refunded),
            ("send", customer.wallet, customer.sent),
        ):
            came = [t.amount_atomic for t in evidence.transfers if t.recipient == address]
            if came != [amount * UNIT] * (step in customer.passed):
                yield f"the wallet of {customer.name} for its {step} was paid {came}"
    for refund in evidence.refunds:
        if refund.status != "succeeded":
            yield f"{refund.id} is {refund.status}"


def each_vault_has_what_it_should(evidence: Evidence) -> Wrong:
    """By what the steps say, and by nothing else; and so has the off-ramp address."""
    wanted: Counter[tuple[int, str]] = Counter()
    for customer in evidence.customers:
        vault = customer.chain_id, evidence.vault(customer.account_id)
        merchant = customer.chain_id, evidence.vault(evidence.merchant_id)
        offramp = customer.chain_id, evidence.offramp
        done = customer.passed
        paid_out = customer.paid_out * (("payout" in done) - ("return" in done))
        wanted[vault] += UNIT * (
            DEPOSIT * ("deposit" in done)
            - customer.paid * ("payment" in done)
            - customer.sent * ("send" in done)
            + customer.bought * ("on-ramp" in done)
            - paid_out
        )
        wanted[merchant] += UNIT * (
            customer.paid * ("payment" in done)
            - customer.refunded * ("refund" in done)
            + customer.routed * ("route" in done)
            + customer.carded * ("card" in done)
        )
        wanted[offramp] += UNIT * paid_out
    for place, amount in wanted.items():
        if evidence.tokens[place] != amount:
            yield f"{place} has {evidence.tokens[place]}, and should have {amount}"


def no_money_is_left_on_the_way(evidence: Evidence) -> Wrong:
    """No escrow, no route and no deposit address has tokens."""
    escrows = {payment.escrow_address for payment in evidence.payments} - {evidence.offramp}
    escrows |= {evidence.escrow(one.id) for one in evidence.bank_transactions}
    escrows |= {route.address for route in evidence.routes}
    deposits = {one.address for one in evidence.found.all(DepositAddress).values()}
    for place, amount in evidence.tokens.items():
        if amount and place[1] in escrows | deposits:
            yield f"{place} still has {amount}"


def each_route_is_delivered_once(evidence: Evidence) -> Wrong:
    """What came to a route was burned there, and new tokens came to the escrow once."""
    for route in evidence.routes:
        place = route.source_chain_id, route.address
        if not evidence.came(place) == evidence.went(place) == route.terms.amount:
            yield f"{route.id} got {evidence.came(place)}, and burned {evidence.went(place)}"
        minted = [
            t.amount_atomic
            for t in evidence.transfers
            if t.sender == ZERO_ADDRESS and t.recipient == route.terms.recipient
        ]
        if minted != [route.terms.amount]:
            yield f"{route.id} delivered {minted}"
    wanted = sum("route" in customer.passed for customer in evidence.customers)
    if len(evidence.routes) != wanted:
        yield f"{len(evidence.routes)} routes, and {wanted} were wanted"


def each_purchase_is_delivered_once(evidence: Evidence) -> Wrong:
    """The hosted on-ramp has one paid purchase for each card payment, and sent it once."""
    of_escrow = {payment.escrow_address: payment.id for payment in evidence.payments}
    paid = [one for one in evidence.purchases.values() if one["state"] != "open" or one["sent"]]
    wanted = [one.carded_id for one in evidence.customers if "card" in one.passed]
    if Counter(of_escrow.get(one["to"]) for one in paid) != Counter(wanted):
        yield f"{len(paid)} purchases were paid, and {len(wanted)} were wanted"
    for one in paid:
        came = [t.hash for t in evidence.transfers if t.recipient == one["to"]]
        if one["state"] != "sent" or one["sent"] != came:
            yield f"{one['id']} is {one['state']}, it sent {one['sent']}, and {came} came"
    if len(evidence.purchases) != len(paid):
        yield f"{len(evidence.purchases) - len(paid)} purchases were opened for nothing"


def the_bank_has_each_request_once(evidence: Evidence) -> Wrong:
    """Two capabilities, one bank account and one number for each customer, and no other."""
    for kind, step, number in (
        ("capabilities", "bank", 2), ("recipients", "recipient", 1), ("numbers", "number", 1)
    ):  # fmt: skip
        wanted = number * sum(step in customer.passed for customer in evidence.customers)
        if len(evidence.bank[kind]) != wanted:
            yield f"the bank has {len(evidence.bank[kind])} {kind}, and {wanted} were asked for"


def each_bank_transfer_is_credited_once(evidence: Evidence) -> Wrong:
    """Each transfer that the bank has received was delivered once, to an escrow of its own, and is
    one settled transaction of its amount."""
    received = evidence.bank["transfers"]
    delivered = Counter(row["transfer"] for row in evidence.bank["deliveries"].values())
    booked = Counter(one.incoming_id for one in evidence.bank_transactions)
    if not Counter(received.keys()) == delivered == booked:
        yield f"{len(received)} came, {delivered} were delivered, and {booked} are booked"
    for one in evidence.bank_transactions:
        cents = received.get(one.incoming_id, {}).get("cents")
        place = one.destination.asset.chain_id, evidence.escrow(one.id)
        came = evidence.came(place)
        if one.status != "settled" or one.amount_cents != cents:
            yield f"{one.id} is {one.status} with {one.amount_cents} of {cents}"
        if not came == evidence.went(place) == ATOMS_OF_A_CENT * one.amount_cents:
            yield f"{one.id} got {came}, and credited {evidence.went(place)}"


def each_payout_is_paid_once(evidence: Evidence) -> Wrong:
    """The bank has one payout for each that was asked for, of its amount, in its state."""
    rows = evidence.bank["payouts"]
    wanted = [one for one in evidence.customers if "payout" in one.passed]
    if len(rows) != len(wanted):
        yield f"the bank paid {len(rows)} times, and was to pay {len(wanted)} times"
    for customer in wanted:
        found = [row for key, row in rows.items() if customer.payout_id in key]
        state = "returned" if "return" in customer.passed else "settled"
        if [(row["cents"], row["state"]) for row in found] != [(100 * customer.paid_out, state)]:
            yield f"the bank has {found} of {customer.name}"


def a_blocked_address_gets_nothing(evidence: Evidence) -> Wrong:
    """What screening blocks is not paid, and nothing is reserved for it any more."""
    for transfer in evidence.transfers:
        if transfer.recipient == BLOCKED:
            yield f"{BLOCKED} was paid by {transfer.hash}"
    stopped = {one.stopped_id for one in evidence.customers if one.stopped_id}
    for payment in evidence.payments:
        if ("blocked" in payment.labels) != (payment.id in stopped):
            yield f"{payment.id} has the labels {payment.labels}"
    for balance in evidence.found.all(VaultBalance).values():
        if balance.reserved_atomic:
            yield f"{balance.id} still reserves {balance.reserved_atomic}"


def each_purpose_has_one_transfer(evidence: Evidence) -> Wrong:
    """One transfer of ours for each funding, release, refund and sweep."""
    purposes = Counter((one.purpose, one.owner_id) for one in evidence.outgoing)
    yield from (f"{purpose} has {n} transfers" for purpose, n in purposes.items() if n > 1)


def the_chains_have_what_was_stored(evidence: Evidence) -> Wrong:
    """An operator's slots have no gap, and the chain has as many transactions of it."""
    slots: dict[str, list[int | None]] = defaultdict(list)
    for one in evidence.outgoing:
        slots[str(one.sender_id)].append(one.slot)
    for sender, sent in evidence.sent.items():
        if sorted(slot for slot in slots[sender] if slot is not None) != list(range(sent)):
            yield f"{sender} has sent {sent}, and its slots are {slots[sender]}"


def the_books_agree(evidence: Evidence) -> Wrong:
    """The laws that hold of every commit hold of all records together: journals add up to zero,
    and every change of a status has its event."""
    found, index = evidence.found, Index()
    whole = found.whole()
    index.keep_up(whole)
    for law in OF_COMMITS:
        for detail in law(found, index, whole):  # type: ignore[arg-type]
            yield f"{law.__name__}: {detail}"


def the_comparison_names_nothing(evidence: Evidence) -> Wrong:
    """An operator who closes the month finds journal, chains and bank in agreement."""
    for one in evidence.differences:
        yield f"{one.kind} {one.resource_id}: {one.detail}, {one.expected} and {one.found}"


def nothing_is_left_to_do(evidence: Evidence) -> Wrong:
    """Everything has come to its end, and no job was given up."""
    yield from (f"{what}: {number}" for what, number in evidence.left.items())
    for records in evidence.found.mirror.records.values():
        for job in records[Job].values():
            if is_parked(job):
                yield f"{job.id} ({job.kind} of {job.subject}) is parked"


Law = Callable[[Evidence], Wrong]
LAWS: tuple[Law, ...] = (
    each_case_is_opened_once,
    each_account_is_verified_once_as_the_provider_says,
    each_deposit_is_credited_once,
    what_a_payment_received_was_released_or_refunded,
    each_payment_is_paid_once,
    each_wallet_is_paid_once,
    each_vault_has_what_it_should,
    no_money_is_left_on_the_way,
    each_route_is_delivered_once,
    each_purchase_is_delivered_once,
    the_bank_has_each_request_once,
    each_bank_transfer_is_credited_once,
    each_payout_is_paid_once,
    a_blocked_address_gets_nothing,
    each_purpose_has_one_transfer,
    the_chains_have_what_was_stored,
    the_books_agree,
    the_comparison_names_nothing,
    nothing_is_left_to_do,
)


def broken(evidence: Evidence) -> Iterator[str]:
    """What is wrong, with the name of its law."""
    for law in LAWS:
        try:
            yield from (f"{law.__name__}: {detail}" for detail in law(evidence))
        except (LookupError, AssertionError) as error:  # what it rests on is not there
            yield f"{law.__name__}: cannot be judged: {error!r}"
