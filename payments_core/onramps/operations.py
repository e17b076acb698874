"""On-ramp bank accounts: requirements, add, list, instructions, transactions (contract §7).

Adding one stores it. A job has the bank make the number, under a key that is stored beforehand;
the number is stored sealed, and opened only for the deposit instructions.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime

import attrs

from payments_core.accounts.bank_accounts.fields import FieldRequirement
from payments_core.accounts.capabilities.eligibility import (
    Eligibility,
    load_eligibility,
    lock_capability,
)
from payments_core.accounts.capabilities.operations import find_activation_id, lock_active_account
from payments_core.accounts.capabilities.record import PRODUCT_OF_CAPABILITY
from payments_core.accounts.queries import list_for_account
from payments_core.accounts.record import MAX_ONRAMPS, Account
from payments_core.accounts.vaults.record import Vault
from payments_core.addresses import AddressError
from payments_core.banks.account_numbers import mask_account_number
from payments_core.banks.incoming import (
    INCOMING_RAILS,
    FundingBank,
    IncomingRail,
    VirtualAccount,
    VirtualAccountRequest,
)
from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.brief_repr import brief_repr
from payments_core.chains.backoff import back_off
from payments_core.chains.port import AddressSpec
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import InvalidState, NotFound, ResourceConflict, ValidationFailed
from payments_core.evolve import evolve
from payments_core.onramps.fields import (
    NewOnrampAccount,
    NewOnrampDestination,
    find_onramp_faults,
    onramp_field_requirements,
)
from payments_core.onramps.following import FUNDING
from payments_core.onramps.record import (
    ONRAMP_NUMBER_SEAL,
    BankTransaction,
    BankTransactionStatus,
    DepositInstructions,
    FundingEntry,
    OnrampAccount,
    OnrampDestination,
)
from payments_core.payments.destinations import Destinations
from payments_core.storage.newest import find_newest, where_matches
from payments_core.storage.port import ClaimedJob, Page, Position, Snapshot, Transaction
from payments_core.tenants.authorization import Authority, require_product
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import PageLimit

OPEN_ONRAMP_ACCOUNT = "onramps.open_account"
MAX_ENTRIES = 100
"""The maximum number of movements shown: a transfer has a few, and one more for each reorg."""


@attrs.frozen(kw_only=True)
class OnrampRequirements:
    """Whether an account can add on-ramps and, if not, why; the required fields, and the assets
    that can be credited.

    A reason is `account_suspended`, `account_closed`, `entitlement_required`,
    `capability_not_active` or `onramp_limit_reached`.
    """

    eligible: bool
    reasons: tuple[str, ...]
    rails: tuple[IncomingRail, ...]
    vaults: tuple[Vault, ...]
    fields: tuple[FieldRequirement, ...]


@attrs.frozen(kw_only=True)
class OpenedInstructions:
    """Deposit instructions with the account number in clear text."""

    instructions: DepositInstructions
    account_number: str = attrs.field(repr=False)


@attrs.frozen
class IncomingHistory:
    """A bank transfer to an on-ramp, the on-ramp, and each movement of its money, oldest first.

    >>> shop.onramps.read_incoming("bank_txn_" + "A" * 24)
    Traceback (most recent call last):
    payments_core.errors.NotFound: ...
    """

    __repr__ = brief_repr

    transaction: BankTransaction
    onramp: OnrampAccount | None
    entries: tuple[FundingEntry, ...]


class OnrampAccounts:
    """Adds on-ramps to accounts, and lists them and their transfers."""

    def __init__(
        self, ports: Ports, banks: Mapping[str, FundingBank], destinations: Destinations
    ) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._key_ring = ports.key_ring
        self._banks = banks
        self._destinations = destinations

    def requirements(self, authority: Authority, account_id: str) -> OnrampRequirements:
        """The requirements of a new on-ramp. Raises NotFound."""

        def load(snapshot: Snapshot) -> Eligibility:
            found = load_eligibility(snapshot, authority, account_id, FUNDING)
            account = snapshot.get(Account, account_id)
            if account is not None and account.onramp_count >= MAX_ONRAMPS:
                return Eligibility((*found.reasons, "onramp_limit_reached"), ())
            return found

        found = self._storage.read(authority.partition, load)
        return OnrampRequirements(
            eligible=not found.reasons,
            reasons=found.reasons,
            rails=() if found.reasons else INCOMING_RAILS,
            vaults=found.vaults,
            fields=tuple(onramp_field_requirements(self._networks)),
        )

    @once_per_key
    def add(
        self,
        authority: Authority,
        account_id: str,
        new: NewOnrampAccount,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> OnrampAccount:
        """A new on-ramp, which is pending until the bank has made its number.

        Raises ValidationFailed with every error, NotFound, AccountSuspended, EntitlementRequired,
        UnsupportedChain, UnsupportedAsset, DestinationNotAllowed for an address of this service,
        CapabilityNotActive until the account's capability us_bank_funding is active, and
        ResourceConflict if the account has MAX_ONRAMPS on-ramps.
        """
        if faults := find_onramp_faults(new.destination.type, new.destination.address):
            raise ValidationFailed(tuple(faults))
        authority = require_product(authority, PRODUCT_OF_CAPABILITY[FUNDING])
        destination = self._resolve(authority, account_id, new.destination)
        now = self._clock.now()
        activation_id = self._storage.read(
            authority.partition,
            lambda snapshot: find_activation_id(snapshot, account_id, FUNDING),
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[OnrampAccount]:
            account = lock_active_account(tx, account_id)
            lock_capability(tx, activation_id, FUNDING)
            if account.onramp_count >= MAX_ONRAMPS:
                raise ResourceConflict(f"An account has at most {MAX_ONRAMPS} on-ramps.")
            counted = evolve(account, onramp_count=account.onramp_count + 1)
            id = id_sequence.issue("onramp_account")
            made = OnrampAccount(
                id=id,
                account_id=account.id,
                external_user_id=account.external_user_id,
                bank_key=id,
                currency=new.currency,
                destination=destination,
                api_version=authority.api_version,
                created_at_ms=now,
                updated_at_ms=now,
            )
            lane = f"bank:{authority.partition}"
            job = NewJob("timers", OPEN_ONRAMP_ACCOUNT, lane, now, made.id)
            return Decision(made, inserts=(made,), replaces=(counted,), jobs=(job,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def list(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[OnrampAccount]:
        """The account's on-ramps, newest first. Raises NotFound."""
        return list_for_account(
            self._storage, authority, account_id, OnrampAccount, after=after, limit=limit
        )

    def read_instructions(
        self, authority: Authority, account_id: str, onramp_account_id: str
    ) -> OpenedInstructions:
        """Where others send money. Raises NotFound, and InvalidState until the bank has made it."""
        onramp = self._storage.read(
            authority.partition,
            lambda snapshot: _require_onramp(snapshot, account_id, onramp_account_id),
        )
        if onramp.status != "active" or onramp.instructions is None:
            raise InvalidState("on-ramp bank account", onramp.status, "read its instructions")
        sealed = base64.b64decode(onramp.instructions.sealed_number)
        number = self._key_ring.open(ONRAMP_NUMBER_SEAL, onramp.id, sealed).decode()
        return OpenedInstructions(instructions=onramp.instructions, account_number=number)

    def list_transactions(
        self,
        authority: Authority,
        account_id: str,
        onramp_account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[BankTransaction]:
        """The transfers to an on-ramp, newest first. Raises NotFound."""

        def load(snapshot: Snapshot) -> Page[BankTransaction]:
            _require_onramp(snapshot, account_id, onramp_account_id)
            return snapshot.find(
                BankTransaction,
                "by_onramp",
                (onramp_account_id,),
                after=after,
                limit=limit,
                skip_damaged=True,
            )

        return self._storage.read(authority.partition, load)

    def list_incoming(
        self,
        authority: Authority,
        *,
        onramp_account_id: str | None = None,
        status: BankTransactionStatus | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[BankTransaction]:
        """The transfers to every on-ramp of the environment, or to one, that match all filters,
        newest first."""
        index = "by_created" if onramp_account_id is None else "by_onramp"
        key = () if onramp_account_id is None else (onramp_account_id,)
        where = where_matches(
            status=status, created_after=created_after, created_before=created_before
        )
        return self._storage.read(
            authority.partition,
            lambda snapshot: find_newest(
                snapshot, BankTransaction, index, key, where=where, after=after, limit=limit
            ),
        )

    def read_incoming(self, authority: Authority, transaction_id: str) -> IncomingHistory:
        """A transfer to an on-ramp, and what happened to its money. Raises NotFound."""

        def load(snapshot: Snapshot) -> IncomingHistory:
            found = snapshot.get(BankTransaction, transaction_id)
            if found is None:
                raise NotFound("bank transaction")
            entries = snapshot.find(
                FundingEntry, "by_transaction", (found.id,), limit=MAX_ENTRIES, skip_damaged=True
            )
            onramp = snapshot.get(OnrampAccount, found.onramp_account_id)
            return IncomingHistory(found, onramp, entries.records)

        return self._storage.read(authority.partition, load)

    def open(self, claimed: ClaimedJob) -> None:
        """The job of an on-ramp: have the bank make its number, and store it sealed."""
        authority = WorkerAuthority.of(claimed)
        bank = self._banks.get(authority.mode)
        found = self._storage.read(
            authority.partition, lambda snapshot: _find_pending(snapshot, claimed.job.subject)
        )
        if found is None:
            self._committer.finish(claimed)
            return
        onramp, account = found
        request = VirtualAccountRequest(
            key=onramp.bank_key,
            account_id=account.id,
            external_user_id=account.external_user_id,
            subject_type=account.subject_type,
        )
        opened: VirtualAccount | BankRefused
        try:
            if bank is None:
                raise BankUnavailable("this deployment has no bank for on-ramps")
            opened = bank.open_virtual_account(request)
        except BankRefused as error:
            opened = error
        except BankUnavailable:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "bank"))
            return
        self._committer.commit(
            authority,
            lambda tx, id_sequence: self._decide_opened(tx, claimed.job.subject, opened),
            claimed=claimed,
        )

    def _decide_opened(
        self, tx: Transaction, onramp_account_id: str, opened: VirtualAccount | BankRefused
    ) -> Decision[None]:
        onramp = tx.get(OnrampAccount, onramp_account_id, for_update=True)
        if onramp is None or onramp.status != "pending":
            return Decision(None)
        now = self._clock.now()
        if isinstance(opened, BankRefused):
            after = evolve(onramp, status="rejected", reason=str(opened), updated_at_ms=now)
        else:
            instructions = self._seal(onramp.id, opened)
            after = evolve(onramp, status="active", instructions=instructions, updated_at_ms=now)
        return Decision(None, replaces=(after,))

    def _seal(self, onramp_account_id: str, account: VirtualAccount) -> DepositInstructions:
        number = account.account_number.encode()
        sealed = self._key_ring.seal(ONRAMP_NUMBER_SEAL, onramp_account_id, number)
        return DepositInstructions(
            bank_name=account.bank_name,
            bank_address=account.bank_address,
            beneficiary_name=account.beneficiary_name,
            beneficiary_address=account.beneficiary_address,
            sealed_number=base64.b64encode(sealed).decode(),
            last4=mask_account_number(account.account_number),
            routing_number=account.routing_number,
            reference=account.reference,
            rails=account.rails,
        )

    def _resolve(
        self, authority: Authority, account_id: str, new: NewOnrampDestination
    ) -> OnrampDestination:
        """The destination as it is stored."""
        asset = self._networks.find_asset(new.chain_id, new.asset_symbol)
        chain = self._destinations.require_chain(asset)
        if new.type == "vault" or new.address is None:
            address = chain.derive(AddressSpec(authority.partition, "vault", account_id))
        else:
            self._destinations.reject_own_address(authority.partition, new.address)
            try:
                address = self._networks.normalize_wallet_address(chain.chain_type, new.address)
            except AddressError as error:
                raise ValidationFailed.at("destination.address", str(error)) from None
        return OnrampDestination(
            type=new.type,
            chain_id=asset.chain_id,
            asset_symbol=asset.symbol,
            token_address=asset.address,
            decimals=asset.decimals,
            address=address,
        )


def _find_pending(
    snapshot: Snapshot, onramp_account_id: str
) -> tuple[OnrampAccount, Account] | None:
    """An on-ramp that waits for its number, and its account."""
    onramp = snapshot.get(OnrampAccount, onramp_account_id)
    if onramp is None or onramp.status != "pending":
        return None
    account = snapshot.get(Account, onramp.account_id)
    assert account is not None
    return onramp, account


def _require_onramp(snapshot: Snapshot, account_id: str, onramp_account_id: str) -> OnrampAccount:
    """The account's on-ramp of that id. Raises NotFound."""
    if snapshot.get(Account, account_id) is None:
        raise NotFound("account")
    onramp = snapshot.get(OnrampAccount, onramp_account_id)
    if onramp is None or onramp.account_id != account_id:
        raise NotFound("on-ramp bank account")
    return onramp
