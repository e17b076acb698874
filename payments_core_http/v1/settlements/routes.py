"""The row of settlements."""

from __future__ import annotations

from payments_core import errors
from payments_core_http.routing import Route
from payments_core_http.v1.requirements import ANYBODY_VAULTS
from payments_core_http.v1.settlements import bodies, views
from payments_core_http.v1.settlements import handlers as settlements

LEGACY_SETTLEMENTS = (
    Route(
        "POST", "/sdk/v1/settle", settlements.settle, needs=ANYBODY_VAULTS,
        credential="basic_app_id", body=bodies.SettleQuote, policy="legacy_settlements",
        creation_policy="legacy_settlements_minute",
        errors=(
            errors.NotFound, errors.ActionExpired, errors.ActionAlreadyUsed,
            errors.AccountSuspended, errors.InvalidState, errors.PaymentExpired,
            errors.OptionLocked, errors.PaymentOptionLimitReached, errors.CapabilityNotActive,
            errors.UnsupportedChain, errors.PolicyInactive, errors.PolicyDenied,
            errors.InsufficientBalance, errors.DependencyFailed,
        ),
        response=views.SettlementResponse, operation="settleLegacyQuote",
        summary="Pay a quote from the payer's vault, with a signature of the payer's wallet.",
    ),
)  # fmt: skip
