"""The table of payment methods: how a Payment may be paid (contract §6 "Option", §14).

A method without a provider is always active. One with a provider is active where the mode has that
provider, and is refused with `capability_not_active` elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import attrs

from payments_core.payment_settings.record import PaymentMethod

Creator = Literal["account", "secret_holder"]
Execution = Literal["vault_authorization", "transfer", "redirect"]
Provider = Literal["router", "onramp"]


@attrs.frozen(kw_only=True)
class Method:
    """A way to pay a Payment.

    `created_by` may create its options: the payer's account, or everybody who holds the Payment's
    secret. `execution` is the type of the payer's next action. `ends_processing` says how an option
    ends whose funds are on their way when its Payment expires or is cancelled; without a row its
    funds still arrive. `provider` is the kind of provider that makes its offers.
    """

    name: PaymentMethod
    display_name: str
    created_by: Creator
    execution: Execution
    ends_processing: Mapping[str, str]
    provider: Provider | None = None

    @property
    def pays_escrow(self) -> bool:
        """Whether a payer sends the asset itself to the escrow, from any wallet."""
        return self.execution == "transfer" and self.provider is None


_FUNDS_WITHDRAWN = MappingProxyType({"expire": "fail", "cancel": "fail"})
_FUNDS_SENT = MappingProxyType({"expire": "expire"})

METHODS: Mapping[PaymentMethod, Method] = {
    method.name: method
    for method in (
        Method(
            name="vault",
            display_name="Pay with Service Vault",
            created_by="account",
            execution="vault_authorization",
            ends_processing=_FUNDS_WITHDRAWN,
        ),
        Method(
            name="direct",
            display_name="Pay from any wallet",
            created_by="secret_holder",
            execution="transfer",
            ends_processing=_FUNDS_SENT,
        ),
        Method(
            name="routing",
            display_name="Pay with any token",
            created_by="secret_holder",
            execution="transfer",
            ends_processing=_FUNDS_SENT,
            provider="router",
        ),
        Method(
            name="hosted_onramp",
            display_name="Pay by card or bank",
            created_by="secret_holder",
            execution="redirect",
            ends_processing=_FUNDS_SENT,
            provider="onramp",
        ),
    )
}
"""Every method, by its name."""
