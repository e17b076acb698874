"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence

from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import (
    AccountRegistration,
    Bank,
    BankAccountDetails,
    BankNotice,
    BankUnavailable,
    CapabilityRequest,
    PayoutOrder,
    PostalAddress,
)
from payments_core.conformance.remote_harness import RemoteHarness
from payments_core.entropy import system_entropy

ACCOUNT_NUMBER = "000123456789"
MAX_PAGES = 1_000


class Harness(RemoteHarness):
    """Override the hooks, and declare what the adapter can do.

    A check of something undeclared is skipped, and the skip is reported.
    """

    can_return: bool = False
    """`return_payout` works."""

    routing_number: str = "021000021"
    """The routing number of a bank that the adapter pays."""

    hang_timeout_s: float = 60.0
    """How long threads may take before they count as hanging."""

    def open(self) -> Bank:
        """A handle to the bank, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def approve_capability(self, key: str) -> None:
        """Let the bank approve a request for a capability."""
        raise NotImplementedError  # the adapter's own test class says how

    def approve_account(self, key: str) -> None:
        """Let the bank approve a recipient's account."""
        raise NotImplementedError  # the adapter's own test class says how

    def settle(self, key: str) -> None:
        """Let a payout settle, and its first notice come."""
        raise NotImplementedError  # the adapter's own test class says how

    def return_payout(self, key: str, code: str) -> None:
        """Let a payout be returned, and its first notice come."""
        raise NotImplementedError  # the adapter's own test class says how

    def count_payouts(self, keys: Sequence[str]) -> int:
        """How many payouts the bank has made under these keys, by its own books."""
        raise NotImplementedError  # the adapter's own test class says how

    # Shared by the checks.

    def new_capability_request(self) -> CapabilityRequest:
        """A request for payouts under a key that was never used."""
        name = system_entropy(12).hex()
        return CapabilityRequest(
            key=f"capability_activation_{name}",
            capability="us_bank_payout",
            account_id=f"acct_{name}",
            external_user_id=f"user-{name}",
            subject_type="individual",
            return_url="https://shop.example/back",
        )

    def new_registration(self, *, account_number: str = ACCOUNT_NUMBER) -> AccountRegistration:
        """An account under a key that was never used."""
        return AccountRegistration(
            key=f"bank_account_{system_entropy(12).hex()}",
            account=self.new_order(account_number=account_number).recipient,
            bank_name="First Bank",
            address=PostalAddress(
                line1="1 Main St", city="Springfield", state="IL", postal_code="62701"
            ),
        )

    def new_order(
        self, *, amount_cents: int = 12_345, account_number: str = ACCOUNT_NUMBER
    ) -> PayoutOrder:
        """An order by ACH under a key that was never used."""
        return PayoutOrder(
            key=f"payment_{system_entropy(12).hex()}",
            rail="ach",
            amount_cents=amount_cents,
            recipient=BankAccountDetails(
                holder_name="Ada Lovelace",
                holder_type="individual",
                account_number=account_number,
                routing_number=self.routing_number,
                account_type="checking",
            ),
            statement_text="INV 7",
        )

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")

    def require_payout(self, bank: Bank, key: str) -> BankPayout:
        """A payout that the bank must have."""
        found = bank.find_payout(key)
        assert found is not None, f"the bank must have a payout under {key}"
        assert found.key == key, f"the payout found under {key} says {found.key}"
        return found

    def require_one_payout(self, *keys: str) -> None:
        """The bank's own books must have exactly one payout for each key."""
        made = self.count_payouts(keys)
        assert made == len(keys), f"the bank made {made} payouts for {len(keys)} keys"

    def require_unavailable(self, call: Callable[[], object]) -> None:
        """The call must raise BankUnavailable, and nothing else."""
        try:
            answer = call()
        except BankUnavailable:
            return
        except Exception as error:
            raise AssertionError(
                f"the call must raise BankUnavailable, not {type(error).__name__}"
            ) from error
        raise AssertionError(f"the call must raise BankUnavailable, and answered {answer!r}")

    def find_notices(self, bank: Bank, key: str) -> list[BankNotice]:
        """The notices of a payout. Those of others are acknowledged if they fill the list."""
        for _ in range(MAX_PAGES):
            notices = bank.list_notices()
            ours = [notice for notice in notices if notice.payout_key == key]
            if ours or not notices:
                return ours
            bank.acknowledge([notice.id for notice in notices])
        raise AssertionError("notices that were acknowledged must not be listed again")
