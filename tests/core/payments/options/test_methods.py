"""The table of payment methods, against the contract."""

from __future__ import annotations

from typing import get_args

import pytest

from payments_core.payment_settings.record import PAYMENT_METHODS, PaymentMethod
from payments_core.payments.options.lifecycle import OPTION
from payments_core.payments.options.methods import METHODS


def test_every_method_has_one_row() -> None:
    assert tuple(METHODS) == PAYMENT_METHODS == get_args(PaymentMethod)
    assert [name for name, method in METHODS.items() if method.name != name] == []


@pytest.mark.parametrize(
    ("name", "created_by", "execution", "provider"),
    [
        ("vault", "account", "vault_authorization", None),
        ("direct", "secret_holder", "transfer", None),
        ("routing", "secret_holder", "transfer", "router"),
        ("hosted_onramp", "secret_holder", "redirect", "onramp"),
    ],
)
def test_a_method_says_who_uses_it_and_how(
    name: PaymentMethod, created_by: str, execution: str, provider: str | None
) -> None:
    method = METHODS[name]
    assert (method.created_by, method.execution, method.provider) == (
        created_by,
        execution,
        provider,
    )


@pytest.mark.parametrize("name", PAYMENT_METHODS)
def test_what_ends_an_option_whose_funds_are_on_their_way_is_a_step_of_it(
    name: PaymentMethod,
) -> None:
    ends = METHODS[name].ends_processing
    assert all(OPTION.allows("processing", trigger) for trigger in ends.values())
    assert set(ends) <= {"expire", "cancel"}
