"""Options and lists of options, as builds before this one stored them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from payments_core.payments.options.record import PaymentOption, Submission
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.storage import documents
from payments_core.storage.records import Document
from payments_core.storage.takeover import convert_row
from tests.core.examples import a_payment, an_option


def as_before(record: Any, *, without: tuple[str, ...], schema: int, **more: Any) -> bytes:
    """The document of a record, in the form of an earlier schema."""
    document = msgspec.json.decode(documents.encode(documents.stamp(record, 3)), type=Document)
    kept = {name: value for name, value in document.items() if name not in without}
    return msgspec.json.encode({**kept, "schema": schema, **more})


def test_an_option_without_a_method_is_of_a_vault() -> None:
    option = an_option(used_action_ids=("action_0",), paid_atomic=7)
    body = as_before(option, without=("method", "payer_address", "oldest_reader"), schema=1)
    assert documents.decode(PaymentOption, body) == documents.stamp(option, 3)


def test_a_direct_option_of_its_own_collection_is_an_option_by_that_method() -> None:
    submission = Submission(chain_id=8453, transaction_hash="0x1", submitted_at_ms=5)
    direct = PaymentOption(
        id="pay_option_2", payment_id="payment_1", method="direct", status="processing",
        payer_address="0x9", chain_id=8453, asset_symbol="USDC", required_atomic=10, paid_atomic=3,
        sighted=("evidence_1",), submissions=(submission,), expires_at_ms=9, created_at_ms=1,
        updated_at_ms=2,
    )  # fmt: skip
    fields = (
        "method", "payer_account_id", "vault_id", "vault_address", "funding_operation_id", "fee",
        "action_id", "action_expires_at", "used_action_ids", "oldest_reader",
    )  # fmt: skip
    body = as_before(direct, without=fields, schema=1)
    convert = PaymentOption.collection.takes_over["direct_options"]
    values, moved = convert_row(PaymentOption, convert, body.decode())
    assert documents.decode(PaymentOption, moved) == documents.stamp(direct, 3)
    assert values == ("payment_1", 1)


def test_two_lists_of_options_become_one_by_their_time() -> None:
    payment = a_payment(option_ids=("pay_option_1", "pay_option_4"))
    body = as_before(
        payment,
        without=("oldest_reader",),
        schema=5,
        direct_option_ids=["pay_option_2", "pay_option_3", "pay_option_5"],
    )
    joined = documents.decode(Payment, body)
    assert joined.option_ids == tuple(f"pay_option_{number}" for number in range(1, 6))
    assert joined == documents.stamp(a_payment(option_ids=joined.option_ids), 3)


def test_a_list_keeps_its_order_whatever_the_clocks_were() -> None:
    payment = a_payment(option_ids=("pay_option_9", "pay_option_1"))
    body = as_before(
        payment, without=("oldest_reader",), schema=5, direct_option_ids=["pay_option_5"]
    )
    ids = documents.decode(Payment, body).option_ids
    assert ids == ("pay_option_5", "pay_option_9", "pay_option_1")
    older = as_before(payment, without=("oldest_reader",), schema=1)
    assert documents.decode(Payment, older).option_ids == payment.option_ids


# Each row: the option whose operation sent the transaction, the one of a stranger's transfer, and
# what is stored now.
@pytest.mark.parametrize(
    ("sending", "attributed", "option_id", "is_ours"),
    [
        ("pay_option_1", None, "pay_option_1", True),
        (None, "pay_option_2", "pay_option_2", False),
        ("pay_option_1", "pay_option_2", "pay_option_1", True),
        (None, None, None, False),
    ],
)
def test_two_options_of_a_transaction_become_one(
    sending: str | None, attributed: str | None, option_id: str | None, is_ours: bool
) -> None:
    tracked = TrackedTransaction(
        id="payment_1/8453/0x1", payment_id="payment_1", chain_id=8453, transaction_hash="0x1",
        option_id=option_id, is_ours=is_ours, created_at_ms=1,
    )  # fmt: skip
    body = as_before(
        tracked,
        without=("is_ours", "option_id", "oldest_reader"),
        schema=3,
        option_id=sending,
        direct_option_id=attributed,
    )
    assert documents.decode(TrackedTransaction, body) == documents.stamp(tracked, 3)
    assert tracked.sending_option_id == sending
