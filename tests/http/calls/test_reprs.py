"""What a repr shows ends up in logs and tracebacks: no one-time action, signature or link."""

from __future__ import annotations

import attrs
import pytest

from payments_core.accounts.wallet_signatures import SignedText
from payments_core.payments.options.record import PaymentOption
from payments_core_http.v2.client import views as client_views
from payments_core_http.v2.options import bodies as options
from payments_core_http.v2.options import views as option_views
from payments_core_http.v2.payments import views as payment_views
from payments_core_http.v2.public import views as public_views
from payments_core_http.v2.wallets import bodies as wallets

HIDDEN = (
    (PaymentOption, "action_id"),
    (PaymentOption, "used_action_ids"),
    (SignedText, "signature"),
    (options.Authorize, "actionId"),
    (wallets.AddWallet, "signature"),
    (option_views.VaultExecution, "actionId"),
    (payment_views.PaymentView, "paymentUrl"),
    (client_views.RecipientPaymentView, "paymentUrl"),
    (client_views.PayerPaymentView, "paymentUrl"),
    (public_views.PublicPaymentView, "paymentUrl"),
)


@pytest.mark.parametrize(("kind", "name"), HIDDEN)
def test_what_lets_its_holder_act_is_in_no_repr(kind: type, name: str) -> None:
    fields = {field.name: field for field in attrs.fields(kind)}
    blank = kind.__new__(kind)
    for field in fields.values():
        object.__setattr__(blank, field.name, "told" if field.name == name else "shown")
    assert "shown" in repr(blank) or len(fields) == 1
    assert "told" not in repr(blank)
