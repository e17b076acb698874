"""The steps of a play, as a table: what a customer does, the calls at which our processes die
meanwhile, and when the step is through.

A row is added for each new part of a deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from tests.going_live.banking import (
    CAPABILITIES,
    activate,
    add_bank_account,
    open_onramp,
    pay_out,
    return_payout,
    transfer_to_onramp,
)
from tests.going_live.customers import (
    Customer,
    Stage,
    deposit,
    open_account,
    pass_verification,
    pay_by_card,
    pay_by_routing,
    pay_by_vault,
    refund,
    send,
    send_to_blocked,
    start_verification,
)
from tests.going_live.kills import Call

NODE, OTHER_NODE = "node", "other node"
"""The node of a customer's chain, and that of the chain from which it pays by routing."""

START = Call("kyc", "start", "serve")
NOTICE = Call("notices", "kyc", "serve")
LOOK = Call("kyc", "look", "worker")
SCAN = Call(NODE, "eth_getLogs", "worker")
SIGN = Call("kms", "Sign", "worker", at_start=True)
SEND = Call(NODE, "eth_sendRawTransaction", "worker", repeated=False)
READ = Call(NODE, "eth_call", "serve", at_start=True)

BURN = Call(OTHER_NODE, "eth_sendRawTransaction", "worker", repeated=False)
ATTEST = Call("circle", "attest", "worker")
SCREEN = Call("screening", "screen", "worker")
BUY = Call("cards", "buy", "serve")
LOOK_AT_PURCHASE = Call("cards", "look", "worker")
CARD_NOTICE = Call("notices", "onramp", "serve")
BANK_NOTICE = Call("notices", "bank", "serve")
CAPABILITY = Call("bank", "PUT capabilities", "worker", repeated=False)
RECIPIENT = Call("bank", "PUT recipients", "worker", repeated=False)
NUMBER = Call("bank", "PUT numbers", "worker")
INCOMING = Call("bank", "GET transfers", "worker")
DELIVER = Call("bank", "PUT deliveries", "worker", repeated=False)
PAYOUT = Call("bank", "PUT payouts", "worker", repeated=False)
LOOK_AT_PAYOUT = Call("bank", "GET payouts", "worker")

Group = tuple[Call, ...]


@attrs.frozen
class Step:
    """A step, and the calls at which processes die. The same call in a later group is one that
    comes again, for something else."""

    name: str
    does: str
    act: Callable[[Stage, Customer], None]
    is_through: Callable[[Stage, Customer], bool]
    calls: tuple[Group, ...] = ()


@attrs.frozen
class Rotation:
    """Between steps: new keys take over, in another key service."""

    name: str = "rotate"
    does: str = "the keys of the HSM take over from those of the KMS"


def _is_open(stage: Stage, customer: Customer) -> bool:
    return bool(customer.deposit_address)


def _is_started(stage: Stage, customer: Customer) -> bool:
    return stage.books.accounts.read(customer.account_id).account.kyc_status == "pending"


def _is_approved(stage: Stage, customer: Customer) -> bool:
    return stage.books.accounts.read(customer.account_id).account.kyc_status == "approved"


def _is_settled(stage: Stage, customer: Customer) -> bool:
    found = stage.books.deposits.list(customer.account_id).records
    return [one.status for one in found] == ["settled"]


def _is_paid(stage: Stage, customer: Customer) -> bool:
    return _has_succeeded(stage, customer.payment_id)


def _is_refunded(stage: Stage, customer: Customer) -> bool:
    found = stage.books.payments.list_refunds(customer.payment_id).records
    return [one.status for one in found] == ["succeeded"]


def _is_routed(stage: Stage, customer: Customer) -> bool:
    return _has_succeeded(stage, customer.routed_id)


def _is_bought_by_card(stage: Stage, customer: Customer) -> bool:
    return _has_succeeded(stage, customer.carded_id)


def _may_bank(stage: Stage, customer: Customer) -> bool:
    activations = stage.books.accounts.read(customer.account_id).activations
    return [one.status for one in activations] == ["active"] * len(CAPABILITIES)


def _has_bank_account(stage: Stage, customer: Customer) -> bool:
    found = stage.books.bank_accounts.list(customer.account_id).records
    return [one.status for one in found] == ["active"]


def _has_number(stage: Stage, customer: Customer) -> bool:
    found = stage.books.onramps.list(customer.account_id).records
    return [one.status for one in found] == ["active"]


def _has_bought(stage: Stage, customer: Customer) -> bool:
    found = stage.books.onramps.list_transactions(customer.account_id, customer.onramp_id).records
    return [one.status for one in found] == ["settled"]


def _is_paid_out(stage: Stage, customer: Customer) -> bool:
    return _has_succeeded(stage, customer.payout_id)


def _is_returned(stage: Stage, customer: Customer) -> bool:
    return stage.books.payments.read(customer.payout_id).payment.status == "refunded"


def _is_sent(stage: Stage, customer: Customer) -> bool:
    return _has_succeeded(stage, customer.send_id)


def _is_stopped(stage: Stage, customer: Customer) -> bool:
    if not customer.stopped_id:
        return False
    found = stage.books.payments.read(customer.stopped_id).payment
    return found.status == "action_required" and "blocked" in found.labels


def _has_succeeded(stage: Stage, payment_id: str) -> bool:
    return bool(payment_id) and stage.books.payments.read(payment_id).payment.status == "succeeded"


STEPS: Sequence[Step | Rotation] = (
    Step("account", "an account is opened", open_account, _is_open),
    Step("kyc", "the provider opens a case", start_verification, _is_started, ((START,),)),
    Step(
        "verify",
        "the provider approves, by webhook",
        pass_verification,
        _is_approved,
        ((NOTICE, LOOK),),
    ),
    Step(
        "deposit",
        "a wallet pays the deposit address, and it is swept",
        deposit,
        _is_settled,
        ((SCAN, SIGN, SEND),),
    ),
    Step(
        "payment",
        "a Payment from the vault to the merchant, funded and released",
        pay_by_vault,
        _is_paid,
        ((READ, SIGN, SEND), (SIGN, SEND)),
    ),
    Step("refund", "a part goes back to a wallet", refund, _is_refunded, ((SCREEN, SIGN, SEND),)),
    Step(
        "route",
        "a wallet pays a Payment on the other chain, by the router",
        pay_by_routing,
        _is_routed,
        ((SIGN, BURN), (ATTEST,), (SIGN, SEND), (SIGN, SEND)),
    ),
    Step(
        "card",
        "a Payment's tokens are bought at the hosted on-ramp",
        pay_by_card,
        _is_bought_by_card,
        ((BUY,), (CARD_NOTICE, LOOK_AT_PURCHASE, SIGN, SEND)),
    ),
    Step("bank", "the bank agrees, by webhook", activate, _may_bank, ((CAPABILITY, BANK_NOTICE),)),
    Step(
        "recipient",
        "the bank takes a bank account",
        add_bank_account,
        _has_bank_account,
        ((RECIPIENT,),),
    ),
    Step("number", "the bank assigns a number", open_onramp, _has_number, ((NUMBER,),)),
    Step(
        "on-ramp",
        "dollars to the number become tokens in the vault",
        transfer_to_onramp,
        _has_bought,
        ((INCOMING, DELIVER), (SIGN, SEND)),
    ),
    Step(
        "payout",
        "the vault pays the bank account, and the payout settles",
        pay_out,
        _is_paid_out,
        ((SIGN, SEND), (LOOK_AT_PAYOUT, PAYOUT)),
    ),
    Rotation(),
    Step(
        "return",
        "the bank returns the payout, and the vault has it back",
        return_payout,
        _is_returned,
        ((BANK_NOTICE, SEND),),
    ),
    Step("send", "the vault sends to a wallet, by a new key", send, _is_sent, ((SCREEN, SEND),)),
    Step(
        "block",
        "a send to an address that screening blocks moves nothing",
        send_to_blocked,
        _is_stopped,
        ((SCREEN,),),
    ),
)
"""The order in which they are played, each by all customers."""
