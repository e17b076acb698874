"""Destinations: the three ways to name a recipient, and how each is resolved."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from payments_core.accounts.record import Account
from payments_core.accounts.usernames import payee_key
from payments_core.addresses import (
    AddressError,
    normalize_address,
)
from payments_core.banks.rails import Rail
from payments_core.banks.texts import AchReference, WireMessage
from payments_core.brief_repr import brief_repr
from payments_core.chains.outbox.record import ReturnAddress, Sender
from payments_core.chains.outbox.stray_transfers import find_contracts
from payments_core.chains.port import AddressKind, AddressSpec, Chain
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
from payments_core.networks import Asset
from payments_core.payments.named_payers import find_named_payers
from payments_core.payments.purged import PurgedPayment
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import OFFRAMP_OWNER, Destination, Payment
from payments_core.screening.asking import Screener
from payments_core.screening.judging import pay_out
from payments_core.storage.lookups import locate_with_damaged
from payments_core.storage.port import Transaction
from payments_core.storage.records import Record
from payments_core.tenants.authorization import Authority
from payments_core.validation.faults import require_exactly_one
from payments_core.validation.fields import (
    AccountId,
    Address,
    ExternalUserId,
    Id,
    PaymentAddress,
)


@attrs.frozen(kw_only=True)
class ToAccount:
    """Pay an account, by exactly one of its ids."""

    __repr__ = brief_repr

    account_id: AccountId | None = None
    external_user_id: ExternalUserId | None = None


@attrs.frozen(kw_only=True)
class ToPaymentAddress:
    """Pay `<username>@<partner id>`, in any case."""

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

    __repr__ = brief_repr

    bank_account_id: Id
    rail: Rail
    ach_reference: AchReference | None = attrs.field(default=None, repr=False)
    wire_message: WireMessage | None = attrs.field(default=None, repr=False)


DestinationRequest = ToAccount | ToPaymentAddress | ToWallet
SendDestination = DestinationRequest | ToBankAccount

_WRITTEN: tuple[tuple[type[Record], str, str], ...] = (
    (Payment, "by_escrow", "escrow_address"),
    (PurgedPayment, "by_escrow", "escrow_address"),
    (DepositAddress, "by_address", "address"),
    (ReturnAddress, "by_address", "address"),
    (Sender, "by_address", "address"),
)
"""Where the addresses of this service are stored: the record, its lookup and its field."""

_UNWRITTEN: tuple[tuple[AddressKind, str], ...] = (
    ("escrow", OFFRAMP_OWNER),
    ("operator", "operator"),
)
"""The addresses of an environment that may be stored nowhere: their kind and owner."""


class Destinations:
    """Finds recipients."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], screener: Screener) -> None:
        self._storage = ports.storage
        self._screener = screener
        self._networks = ports.networks
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
            key = payee_key(
                wanted.payment_address,
                authority.environment.partner_id,
                "destination.payment_address",
            )
            return self._find_account_id(authority, "by_username", key, "payment address")
        require_exactly_one(
            {
                "destination.account_id": wanted.account_id,
                "destination.external_user_id": wanted.external_user_id,
            }
        )
        if wanted.account_id is not None:
            return wanted.account_id
        return self._find_account_id(
            authority, "by_external_user", wanted.external_user_id, "account"
        )

    def reject_own_address(self, partition: str, address: str) -> None:
        """Raise DestinationNotAllowed for an address of this service, as `find_own` finds them."""
        try:
            normal = normalize_address("evm", address)
        except AddressError:
            return  # not of this form, so not ours; it is checked later
        if self.find_own(partition, [normal]):
            raise DestinationNotAllowed("it is an address of this service")

    def find_own(self, partition: str, addresses: Collection[str]) -> frozenset[str]:
        """The addresses that are this service's, and that nobody holds: escrows and deposit
        addresses of this deployment, addresses that have paid out of a vault, operators that have
        sent, contracts of ours, and the environment's operator and off-ramp address.

        A vault is an account's, and is none of them.
        """
        if not addresses:
            return frozenset()
        keys = [(address,) for address in sorted(addresses)]
        own = {
            chain.derive(AddressSpec(partition, kind, owner))
            for chain in self._chains.values()
            if chain.chain_type == "evm"
            for kind, owner in _UNWRITTEN
        }
        own |= find_contracts(self._chains).keys()
        for record_type, lookup, name in _WRITTEN:
            located, damaged = locate_with_damaged(self._storage, record_type, lookup, keys)
            own |= {getattr(found.record, name) for found in located}
            own |= {str(row.key[0]) for row in damaged}
        return frozenset(own).intersection(addresses)

    def find_payable(
        self, partition: str, payment: Payment, receipt: Receipt | None = None
    ) -> frozenset[str]:
        """The senders of a Payment, and of a receipt, to whom funds may go back unnamed.

        A chain may name anybody as the sender: tokens that are minted come from the zero address,
        and others from a token's own contract. So a sender is checked like a destination that a
        caller names; one that fails is unknown, and a refund then needs a destination. So is one
        that may be the wallet of a router or an on-ramp.
        """
        chain_type = self._networks.find_network(payment.chain_id).chain_type
        senders = {paid.address for paid in payment.paid_by}
        senders |= {receipt.sender} if receipt is not None else set()
        held = {one for one in senders if self._networks.is_wallet_address(chain_type, one)}
        held -= {payment.destination.address} | self.find_own(partition, held)
        named = self._storage.read(partition, lambda snapshot: find_named_payers(snapshot, payment))
        return frozenset(held) if named is None else frozenset(held & named)

    def require_own_escrow(self, partition: str, payment: Payment, chain_id: int) -> None:
        """Return if the Payment's escrow can pay on that chain. Raises UnsupportedChain.

        Factories with different admins derive different addresses.
        """
        chain = self._chains.get(chain_id)
        if chain is None:
            raise UnsupportedChain(chain_id)
        if chain.derive(AddressSpec(partition, "escrow", payment.id)) != payment.escrow_address:
            raise UnsupportedChain(chain_id, "has no contract at the escrow's address")

    def parse_payee(self, partition: str, payment: Payment, text: str) -> str:
        """The destination of a refund that a caller names, in its canonical form.

        Raises ValidationFailed, DestinationNotAllowed.
        """
        try:
            chain_type = self._networks.find_network(payment.chain_id).chain_type
            address = self._networks.normalize_wallet_address(chain_type, text)
        except AddressError as error:
            raise ValidationFailed.at("destination", str(error)) from None
        if address == payment.destination.address:  # it would come back to the recipient
            raise ValidationFailed.at("destination", "must not be the recipient's own address")
        self.reject_own_address(partition, address)
        return address

    def screen_payee(self, authority: Authority, payment: Payment, address: str) -> None:
        """Return unless the destination of a refund that a caller names is blocked.

        Raises ScreeningRefused.
        """
        concern = pay_out(payment.chain_id, address)
        self._screener.require_unblocked(authority.mode, authority.partition, payment.id, concern)

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
                address = self._networks.normalize_wallet_address(chain.chain_type, wanted.address)
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
