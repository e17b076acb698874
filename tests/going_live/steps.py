"""The steps of a play, as a table: what a customer does, the calls at which our processes die
meanwhile, and when the step is through.

A row is added for each new part of a deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from tests.going_live.customers import (
    Customer,
    Stage,
    deposit,
    open_account,
    pass_verification,
    pay_by_vault,
    refund,
    send,
    start_verification,
)
from tests.going_live.kills import Call

START = Call("kyc", "start", "serve")
NOTICE = Call("notices", "notice", "serve")
LOOK = Call("kyc", "look", "worker")
# The node of a customer's chain.
SCAN = Call("node", "eth_getLogs", "worker")
SIGN = Call("kms", "Sign", "worker")
SEND = Call("node", "eth_sendRawTransaction", "worker", repeated=False)
READ = Call("node", "eth_call", "serve")

Group = tuple[Call, ...]
OF_THE_CHAIN = "node"


@attrs.frozen
class Step:
    """A step: each call of `calls` dies twice for each customer. A group is ordered when the one
    before has been carried out, since the same call comes again for something else."""

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


def _is_sent(stage: Stage, customer: Customer) -> bool:
    return _has_succeeded(stage, customer.send_id)


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
    Step("refund", "a part goes back to a wallet", refund, _is_refunded, ((SIGN, SEND),)),
    Rotation(),
    Step("send", "the vault sends to a wallet, by a new key", send, _is_sent, ((SEND,),)),
)
"""The order in which they are played, each by all customers."""
