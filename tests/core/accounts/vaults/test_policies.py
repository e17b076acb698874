"""What a vault's policy lets out, and what a mandate lets be collected: rules without I/O."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.accounts.vaults.policy_rules import Spend, require_policy_allows
from payments_core.accounts.vaults.record import AllowedDestination, Policy, PolicyTerms
from payments_core.clock import DAY, format_iso, parse_iso
from payments_core.errors import InvalidState, PolicyDenied, PolicyInactive
from payments_core.networks import Asset
from payments_core.payments.mandates import lifecycle as mandates
from payments_core.payments.mandates.record import Mandate, Period
from tests.core.examples import NOW, USDC

SHOP = "0x0000000000000000000000000000000000005409"
OTHER = "0x0000000000000000000000000000000000000777"


def a_policy(**given: Any) -> Policy:
    facts: dict[str, Any] = {"vault_id": "vault_1", "created_at_ms": NOW, "updated_at_ms": NOW}
    return Policy(id="policy_1", **{**facts, **given})


def a_spend(amount: int = 1, **given: Any) -> Spend:
    facts: dict[str, Any] = {"asset": USDC, "address": SHOP, "account_id": None}
    return Spend(amount_atomic=amount, **{**facts, **given})


def denied(policy: Policy, spend: Spend, daily_spend: int = 0) -> str | None:
    """The rule that forbids it."""
    try:
        require_policy_allows(policy, spend, daily_spend=daily_spend)
    except PolicyDenied as error:
        return error.rule
    return None


class TestPolicies:
    def test_a_default_policy_limits_nothing(self) -> None:
        assert denied(a_policy(), a_spend(10**70), 10**70) is None

    def test_a_paused_policy_lets_nothing_out_whatever_it_allows(self) -> None:
        paused = a_policy(status="paused", per_payment_limit="1.00")
        with pytest.raises(PolicyInactive):
            require_policy_allows(paused, a_spend(9_000_000), daily_spend=0)

    def test_a_limit_can_be_reached_and_not_passed(self) -> None:
        policy = a_policy(per_payment_limit="1.000001")
        assert denied(policy, a_spend(1_000_001)) is None
        assert denied(policy, a_spend(1_000_002)) == "perPaymentLimit"

    def test_the_daily_limit_counts_what_was_spent_before(self) -> None:
        policy = a_policy(daily_limit="2.00")
        assert denied(policy, a_spend(500_000), 1_500_000) is None
        assert denied(policy, a_spend(500_001), 1_500_000) == "dailyLimit"

    @pytest.mark.parametrize("decimals", [0, 2, 6, 18])
    def test_limits_are_in_whole_tokens_whatever_decimals_the_asset_has(
        self, decimals: int
    ) -> None:
        asset = Asset(8453, "TOK", OTHER, decimals)
        policy = a_policy(per_payment_limit="10.00")
        assert denied(policy, a_spend(10 * 10**decimals, asset=asset)) is None
        assert denied(policy, a_spend(10 * 10**decimals + 1, asset=asset)) == "perPaymentLimit"

    def test_only_listed_chains_and_assets_may_leave(self) -> None:
        assert denied(a_policy(allowed_chains=(1, 8453)), a_spend()) is None
        assert denied(a_policy(allowed_chains=(1,)), a_spend()) == "allowedChains"
        assert denied(a_policy(allowed_assets=("USDC",)), a_spend()) is None
        assert denied(a_policy(allowed_assets=("USDT",)), a_spend()) == "allowedAssets"

    def test_an_empty_list_allows_nothing(self) -> None:
        assert denied(a_policy(allowed_chains=()), a_spend()) == "allowedChains"
        assert denied(a_policy(allowed_assets=()), a_spend()) == "allowedAssets"
        assert denied(a_policy(allowed_destinations=()), a_spend()) == "allowedDestinations"

    @pytest.mark.parametrize(
        ("item", "spend", "is_allowed"),
        [
            (AllowedDestination(type="wallet", address=SHOP), a_spend(), True),
            (AllowedDestination(type="wallet", address=SHOP, chain_id=8453), a_spend(), True),
            (AllowedDestination(type="wallet", address=SHOP, chain_id=1), a_spend(), False),
            (AllowedDestination(type="wallet", address=OTHER), a_spend(), False),
            (AllowedDestination(type="account", account_id="a"), a_spend(account_id="a"), True),
            (AllowedDestination(type="account", account_id="a"), a_spend(account_id="b"), False),
            (AllowedDestination(type="account", account_id="a"), a_spend(), False),
            (AllowedDestination(type="account"), a_spend(), False),
        ],
    )
    def test_only_listed_destinations_are_paid(
        self, item: AllowedDestination, spend: Spend, is_allowed: bool
    ) -> None:
        stranger = AllowedDestination(type="wallet", address="0x1")
        policy = a_policy(allowed_destinations=(stranger, item))
        assert denied(policy, spend) == (None if is_allowed else "allowedDestinations")

    def test_a_policy_has_all_its_terms(self) -> None:
        terms = PolicyTerms(status="paused", daily_limit="1.00", allowed_chains=(1,))
        facts = {name: getattr(terms, name) for name in attrs.fields_dict(PolicyTerms)}
        assert a_policy(**facts).terms == terms


# Mandates


def a_mandate(period: Period = "month", **given: Any) -> Mandate:
    facts: dict[str, Any] = {
        "account_id": "acct_1",
        "vault_id": "vault_1",
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "token_address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "decimals": 6,
        "amount_per_period_atomic": 100,
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return Mandate(id="mandate_1", period=period, **{**facts, **given})


class TestMandates:
    @pytest.mark.parametrize(
        ("period", "moment", "start"),
        [
            ("day", "2026-10-01T23:59:59.999Z", "2026-10-01"),
            ("day", "2026-10-02T00:00:00.000Z", "2026-10-02"),
            ("week", "2026-10-04T23:59:59.999Z", "2026-09-28"),  # a Sunday
            ("week", "2026-10-05T00:00:00.000Z", "2026-10-05"),  # a Monday
            ("week", "1970-01-05T00:00:00.000Z", "1970-01-05"),
            ("month", "2028-02-29T12:00:00.000Z", "2028-02-01"),
            ("month", "2026-12-31T23:59:59.999Z", "2026-12-01"),
            ("month", "2027-01-01T00:00:00.000Z", "2027-01-01"),
        ],
    )
    def test_periods_are_those_of_the_calendar(
        self, period: Period, moment: str, start: str
    ) -> None:
        begun = mandates.period_start(period, parse_iso(moment))
        assert format_iso(begun) == f"{start}T00:00:00.000Z"

    @given(st.sampled_from(["day", "week", "month"]), st.integers(0, 253_402_300_799_999))
    def test_a_period_begins_once_and_before_all_that_is_in_it(
        self, period: Period, instant: int
    ) -> None:
        start = mandates.period_start(period, instant)
        assert start <= instant
        assert mandates.period_start(period, start) == start
        assert mandates.period_start(period, start - 1) < start

    def test_no_more_than_the_amount_is_drawn_in_a_period(self) -> None:
        mandate = mandates.charge(a_mandate(), 60, now=NOW).record
        assert mandates.remaining(mandate, NOW) == 40
        with pytest.raises(PolicyDenied) as caught:
            mandates.charge(mandate, 41, now=NOW)
        assert caught.value.rule == "amountPerPeriod"
        assert mandates.remaining(mandates.charge(mandate, 40, now=NOW).record, NOW) == 0

    def test_the_next_period_begins_with_the_whole_amount(self) -> None:
        first = parse_iso("2026-10-31T23:59:59.999Z")
        mandate = mandates.charge(a_mandate(), 100, now=first).record
        assert mandates.remaining(mandate, first) == 0
        assert mandates.remaining(mandate, first + 1) == 100
        mandate = mandates.charge(mandate, 70, now=first + 1).record
        assert mandates.remaining(mandate, first + 1) == 30

    def test_what_failed_is_given_back_in_its_own_period_alone(self) -> None:
        mandate = mandates.charge(a_mandate("day"), 60, now=NOW).record
        back = mandates.void_charge(mandate, 60, charged_at=NOW).record
        assert mandates.remaining(back, NOW) == 100
        tomorrow = mandates.charge(mandate, 30, now=NOW + DAY).record
        assert mandates.void_charge(tomorrow, 60, charged_at=NOW).record == tomorrow

    def test_a_clock_that_steps_back_opens_no_period_again(self) -> None:
        mandate = mandates.charge(a_mandate("day"), 60, now=NOW + DAY).record
        assert mandates.remaining(mandate, NOW) == 40
        mandate = mandates.charge(mandate, 40, now=NOW).record
        assert mandates.remaining(mandate, NOW + DAY) == 0
        again = mandates.void_charge(mandate, 40, charged_at=NOW).record
        assert mandates.remaining(again, NOW + DAY) == 0

    def test_an_expired_mandate_gives_nothing(self) -> None:
        mandate = a_mandate(expires_at_ms=NOW)
        assert mandates.status_of(mandate, NOW - 1) == "active"
        assert mandates.status_of(mandate, NOW) == "expired"
        assert mandates.remaining(mandate, NOW) == 0
        with pytest.raises(InvalidState) as caught:
            mandates.charge(mandate, 1, now=NOW)
        assert caught.value.details == {
            "resource": "mandate",
            "status": "expired",
            "action": "collect",
        }

    def test_a_revoked_mandate_gives_nothing_and_takes_back(self) -> None:
        drawn = mandates.charge(a_mandate(), 60, now=NOW).record
        mandate = mandates.revoke(drawn, now=NOW + 1).record
        assert (mandate.revoked_at_ms, mandates.remaining(mandate, NOW)) == (NOW + 1, 0)
        with pytest.raises(InvalidState) as caught:
            mandates.charge(mandate, 1, now=NOW)
        assert caught.value.details == {
            "resource": "mandate",
            "status": "revoked",
            "action": "collect",
        }
        assert mandates.void_charge(mandate, 60, charged_at=NOW).record.drawn_atomic == 0

    def test_an_expired_mandate_can_be_revoked_for_good(self) -> None:
        mandate = mandates.revoke(a_mandate(expires_at_ms=NOW), now=NOW).record
        assert mandates.status_of(mandate, NOW - 1) == "revoked"
