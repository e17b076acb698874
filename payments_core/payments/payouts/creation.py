"""The checks before a payout: product, capability, bank account, amount."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.bank_accounts.operations import PAYOUT
from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.accounts.capabilities.eligibility import lock_capability
from payments_core.accounts.capabilities.operations import find_activation_id
from payments_core.accounts.capabilities.record import PRODUCT_OF_CAPABILITY
from payments_core.banks.port import Bank
from payments_core.banks.rails import SERVICES, Rail, choose_service
from payments_core.banks.texts import find_holder_fault
from payments_core.chains.port import AddressSpec, Chain
from payments_core.engine.decision import lock_shared
from payments_core.engine.ports import Ports
from payments_core.errors import (
    AmountOutOfRange,
    CapabilityNotActive,
    DestinationNotAllowed,
    FieldError,
    NotFound,
    UnsupportedAsset,
    ValidationFailed,
)
from payments_core.networks import Asset
from payments_core.payments.destinations import ToBankAccount
from payments_core.payments.record import OFFRAMP_OWNER, Destination
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority, require_product

DOLLAR_SYMBOL = "USDC"
"""The asset that is paid out, one for one, in whole cents."""


@attrs.frozen
class PayoutTerms:
    """The checked terms of a payout, from outside the transaction that creates it.

    `authority` needs the product for payouts also at the commit. `activation_id` is that of the
    account's capability, whose status is checked inside.
    """

    authority: Authority
    activation_id: str
    account_id: str
    bank_account_id: str
    amount_cents: int


class PayoutCreation:
    """Checks new payouts. `banks` has the bank of each mode."""

    def __init__(self, ports: Ports, banks: Mapping[str, Bank]) -> None:
        self._storage = ports.storage
        self._banks = banks

    def check(
        self,
        authority: Authority,
        account_id: str,
        bank_account_id: str,
        rail: Rail,
        asset: Asset,
        amount: int,
    ) -> PayoutTerms:
        """The terms of a payout from an account to its own bank account.

        Raises EntitlementRequired, NotFound, ValidationFailed for a holder's name that the rail
        cannot carry, CapabilityNotActive, UnsupportedAsset, AmountOutOfRange.
        """
        authority = require_product(authority, PRODUCT_OF_CAPABILITY[PAYOUT])

        def load(snapshot: Snapshot) -> str | None:
            bank_account = snapshot.get(BankAccount, bank_account_id)
            if bank_account is None or bank_account.account_id != account_id:
                raise NotFound("bank account")
            if fault := find_holder_fault(rail, bank_account.holder_name):
                # It was added before names were checked.
                path = "destination.bank_account_id"
                raise ValidationFailed.at(path, f"has a holder whose name {fault} by {rail}")
            return find_activation_id(snapshot, account_id, PAYOUT)

        activation_id = self._storage.read(authority.partition, load)
        if activation_id is None or authority.mode not in self._banks:
            raise CapabilityNotActive(PAYOUT)
        cents = to_cents(asset, amount, rail)
        return PayoutTerms(authority, activation_id, account_id, bank_account_id, cents)


def to_cents(asset: Asset, amount: int, rail: Rail) -> int:
    """An atomic amount as cents that the rail takes. Raises UnsupportedAsset, AmountOutOfRange."""
    if asset.symbol != DOLLAR_SYMBOL:
        raise UnsupportedAsset(asset.chain_id, asset.symbol, "cannot be paid to a bank account")
    per_cent: int = 10 ** (asset.decimals - 2)
    cents, rest = divmod(amount, per_cent)
    if rest:
        raise AmountOutOfRange("a bank account is paid in whole cents")
    most = SERVICES[choose_service(rail, cents, same_day=False)].max_cents
    if cents > most:
        raise AmountOutOfRange(f"a payout by {rail} is at most {most // 100}.{most % 100:02d}")
    return cents


def lock_recipient(tx: Transaction, terms: PayoutTerms) -> BankAccount:
    """The bank account that is paid, locked shared with the capability to pay it.

    Raises CapabilityNotActive, DestinationNotAllowed.
    """
    lock_capability(tx, terms.activation_id, PAYOUT)
    bank_account = lock_shared(tx, BankAccount, terms.bank_account_id)
    assert bank_account is not None
    if bank_account.status != "active":
        raise DestinationNotAllowed(f"the bank account is {bank_account.status}")
    return bank_account


def resolve_bank_account(
    partition: str, wanted: ToBankAccount, bank_account: BankAccount, chain: Chain
) -> Destination:
    """The destination as it is stored."""
    return Destination(
        type="bank_account",
        address=chain.derive(AddressSpec(partition, "escrow", OFFRAMP_OWNER)),
        account_id=bank_account.account_id,
        external_user_id=bank_account.external_user_id,
        bank_account_id=bank_account.id,
        rail=wanted.rail,
        statement_text=wanted.ach_reference or wanted.wire_message,
    )


def require_text_of_rail(wanted: ToBankAccount) -> None:
    """Raise ValidationFailed if the statement text is for the other rail."""
    faults = find_text_faults(wanted.rail, wanted.ach_reference, wanted.wire_message)
    if faults:
        raise ValidationFailed(
            tuple(FieldError(f"destination.{fault.path}", fault.message) for fault in faults)
        )


def find_text_faults(
    rail: str, ach_reference: str | None, wire_message: str | None
) -> list[FieldError]:
    """The given texts that are for the other rail."""
    texts = (("ach_reference", ach_reference, "ach"), ("wire_message", wire_message, "wire"))
    return [
        FieldError(name, f"is for the rail {of} only")
        for name, text, of in texts
        if text is not None and rail != of
    ]
