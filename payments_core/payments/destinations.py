"""Destinations: the three ways to name a recipient, and how each is resolved."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.record import Account
from payments_core.addresses import AddressError, normalize_address, normalize_wallet_address
from payments_core.assets import Asset
from payments_core.banks.rails import Rail
from payments_core.chains.outbox.record import ReturnAddress, Sender
from payments_core.chains.outbox.stray_transfers import find_contracts
from payments_core.chains.port import AddressSpec, Chain
from payments_core.deposits.record import DepositAddress
from payments_core.engine.decision import lock_shared
from payments_core.engine.ports import Ports
from payments_core.errors import (
    AccountSuspended,
    DestinationNotAllowed,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payments.payouts.record import OFFRAMP_OWNER
from payments_core.payments.record import Destination, Payment, PurgedPayment
from payments_core.storage.port import Transaction
from payments_core.tenants.authorization import Authority
from payments_core.validation.faults import require_exactly_one
from payments_core.validation.fields import (
    AccountId,
    AchReference,
    Address,
    ExternalUserId,
    Id,
    PaymentAddress,
    WireMessage,
)


@attrs.frozen(kw_only=True)
class ToAccount:
    """Pay an account, by exactly one of its ids."""

    account_id: AccountId | None = None
    external_user_id: ExternalUserId | None = None


@attrs.frozen(kw_only=True)
class ToPaymentAddress:
    """Pay `<username>@<partner id>`."""

    payment_address: PaymentAddress


@attrs.frozen(kw_only=True)
class ToWallet:
    """Pay an address on the Payment's chain."""

    address: Address


@attrs.frozen(kw_only=True)
class ToBankAccount:
    """Pay a bank account of the account whose vault pays, in US dollars.

    Each rail has its own text for the recipient's statement.
    """

    bank_account_id: Id
    rail: Rail
    ach_reference: AchReference | None = attrs.field(default=None, repr=False)
    wire_message: WireMessage | None = attrs.field(default=None, repr=False)


DestinationRequest = ToAccount | ToPaymentAddress | ToWallet
SendDestination = DestinationRequest | ToBankAccount


class Destinations:
    """Finds recipients."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._storage = ports.storage
        self._chains = chains

    def resolve_recipient_id(self, authority: Authority, wanted: DestinationRequest) -> str | None:
        """The id of the account that is paid, None for a wallet.

        Raises NotFound, ValidationFailed, and DestinationNotAllowed for a wallet address that is
        an escrow or deposit address of this deployment: a payment there is a receipt or a
        deposit, and our own transfers create neither.
        """
        if isinstance(wanted, ToWallet):
            self.reject_own_address(authority.partition, wanted.address)
            return None
        if isinstance(wanted, ToPaymentAddress):
            username, _, resolver = wanted.payment_address.rpartition("@")
            if not username or not resolver:
                raise ValidationFailed.at(
                    "destination.paymentAddress",
                    "must be a payment address: <username>@<partner id>",
                )
            if resolver != authority.environment.partner_id:
                raise NotFound("payment address")
            return self._find_account_id(
                authority, "by_username", username.lower(), "payment address"
            )
        require_exactly_one(
            {
                "destination.accountId": wanted.account_id,
                "destination.externalUserId": wanted.external_user_id,
            }
        )
        if wanted.account_id is not None:
            return wanted.account_id
        return self._find_account_id(
            authority, "by_external_user", wanted.external_user_id, "account"
        )

    def reject_own_address(self, partition: str, address: str) -> None:
        """Raise DestinationNotAllowed for an escrow or a deposit address of this deployment, an
        address that has paid out of a vault, an operator that has sent, a contract of ours, and
        for the environment's off-ramp address."""
        try:
            key = (normalize_address("evm", address),)
        except AddressError:
            return  # not of this form, so not ours; it is checked later
        escrows = self._storage.locate(Payment, "by_escrow", [key], limit=1)
        purged = self._storage.locate(PurgedPayment, "by_escrow", [key], limit=1)
        deposits = self._storage.locate(DepositAddress, "by_address", [key], limit=1)
        payers = self._storage.locate(ReturnAddress, "by_address", [key], limit=1)
        operators = self._storage.locate(Sender, "by_address", [key], limit=1)
        offramp = AddressSpec(partition, "escrow", OFFRAMP_OWNER)
        is_offramp = any(
            chain.chain_type == "evm" and chain.derive(offramp) == key[0]
            for chain in self._chains.values()
        )
        is_contract = key[0] in find_contracts(self._chains)
        if escrows or purged or deposits or payers or operators or is_offramp or is_contract:
            raise DestinationNotAllowed("it is an address of this service")

    def lock_recipient(
        self, tx: Transaction, authority: Authority, recipient_id: str | None
    ) -> Account | None:
        """The account that is paid, locked.

        Raises NotFound, and for an inactive account DestinationNotAllowed, or
        AccountSuspended if it is the caller's own.
        """
        if recipient_id is None:
            return None
        recipient = lock_shared(tx, Account, recipient_id)
        if recipient is None:
            raise NotFound("account")
        if recipient.status != "active":
            if authority.session is not None and authority.account_id == recipient.id:
                raise AccountSuspended(recipient.id, recipient.status)
            raise DestinationNotAllowed(f"the account is {recipient.status}")
        return recipient

    def resolve_destination(
        self,
        authority: Authority,
        wanted: DestinationRequest,
        recipient: Account | None,
        asset: Asset,
    ) -> Destination:
        """The destination as it is stored. Raises UnsupportedChain, ValidationFailed."""
        chain = self.require_chain(asset)
        if isinstance(wanted, ToWallet):
            try:
                address = normalize_wallet_address(chain.chain_type, wanted.address)
            except AddressError as error:
                raise ValidationFailed.at("destination.address", str(error)) from None
            return Destination(type="wallet", address=address)
        assert recipient is not None
        named = isinstance(wanted, ToPaymentAddress)
        return Destination(
            type="payment_address" if named else "account",
            address=chain.derive(AddressSpec(authority.partition, "vault", recipient.id)),
            account_id=recipient.id,
            external_user_id=recipient.external_user_id,
            payment_address=recipient.payment_address if named else None,
        )

    def require_chain(self, asset: Asset) -> Chain:
        """The asset's chain. Raises UnsupportedChain."""
        chain = self._chains.get(asset.chain_id)
        if chain is None:
            raise UnsupportedChain(asset.chain_id)
        return chain

    def _find_account_id(self, authority: Authority, index: str, key: str | None, noun: str) -> str:
        page = self._storage.read(
            authority.partition, lambda snapshot: snapshot.find(Account, index, (key,), limit=1)
        )
        if not page.records:
            raise NotFound(noun)
        return page.records[0].id
