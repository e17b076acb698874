"""Each requirement that is not complete, and each reason, has an action; and no other has one."""

from __future__ import annotations

from typing import Any, get_args

import attrs
import pytest

from payments_core.accounts.capabilities.record import CapabilityActivation, CapabilityStatus
from payments_core.accounts.capabilities.requirements import describe_capability
from payments_core.accounts.record import Account, KycStatus
from payments_core_http.routes import ROUTES
from payments_core_http.v2.accounts.actions import actions_of_capability, actions_of_reasons

ACCOUNT = Account(
    id="acct_1", external_user_id="ada", subject_type="individual", partner_id="shop",
    created_at_ms=0, updated_at_ms=0,
)  # fmt: skip
ACTIVATION = CapabilityActivation(
    id="capability_activation_1", account_id="acct_1", capability="us_bank_funding",
    hosted_url="https://bank.example/1", api_version="2026-09-09", created_at_ms=0, updated_at_ms=0,
)  # fmt: skip
REASONS = (
    "account_suspended", "account_closed", "entitlement_required", "capability_not_active",
    "onramp_limit_reached",
)  # fmt: skip
SERVED = {(route.method, route.path) for route in ROUTES}


def is_served(action: Any) -> bool:
    """Whether the request that an action names is a route."""
    if action.method is None:
        return action.path is None
    return (action.method, action.path.replace("acct_1", "{accountId}")) in SERVED


@pytest.mark.parametrize("kyc_status", get_args(KycStatus))
@pytest.mark.parametrize("is_offered", [True, False])
def test_each_requirement_that_is_not_complete_has_an_action(
    kyc_status: KycStatus, is_offered: bool
) -> None:
    account = attrs.evolve(ACCOUNT, kyc_status=kyc_status)
    statuses: tuple[CapabilityStatus | None, ...] = (None, *get_args(CapabilityStatus))
    for status in statuses:
        known = None if status is None else attrs.evolve(ACTIVATION, status=status)
        item = describe_capability(account, "us_bank_funding", known, is_offered=is_offered)
        found = actions_of_capability("acct_1", item)
        assert [action.resolves for action in found] == [*item.missing, *item.pending]
        for action in found:
            assert is_served(action)
            assert "{" not in action.description
            has_url = known is not None and action.resolves == "bank_review"
            assert action.url == ("https://bank.example/1" if has_url else None)


@pytest.mark.parametrize("capability", ["us_bank_payout", "us_bank_funding"])
def test_each_reason_has_an_action(capability: Any) -> None:
    found = actions_of_reasons("acct_1", REASONS, capability)
    assert [action.resolves for action in found] == list(REASONS)
    for action in found:
        assert is_served(action)
        assert "{" not in action.description
    named = {action.resolves: action.description for action in found}
    assert capability in named["capability_not_active"]
    assert {"us_bank_payout": "bank_payouts", "us_bank_funding": "bank_funding"}[capability] in (
        named["entitlement_required"]
    )
