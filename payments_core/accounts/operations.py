"""Accounts: create, read, list, change (contract §5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs
from msgspec import UNSET, UnsetType

from payments_core.accounts.capabilities.record import CAPABILITIES, CapabilityActivation
from payments_core.accounts.capabilities.suspension import decide_suspension
from payments_core.accounts.events import account_event
from payments_core.accounts.new_wallets import NewWallets, normalize_wallets
from payments_core.accounts.record import (
    MAX_WALLETS,
    Account,
    AccountStatus,
    Settlement,
    SubjectType,
    Wallet,
)
from payments_core.accounts.usernames import require_usable, username_key
from payments_core.accounts.vaults.of_account import find_vaults
from payments_core.accounts.vaults.provisioning import new_vault
from payments_core.accounts.vaults.record import Vault
from payments_core.brief_repr import brief_repr
from payments_core.chains.port import Chain
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    AccountSuspended,
    InvalidState,
    NotFound,
    PaymentsError,
    ResourceConflict,
    UsernameTaken,
)
from payments_core.evolve import evolve
from payments_core.networks import DEFAULT_CHAIN_ID, DEFAULT_SYMBOL
from payments_core.screening.asking import Screener
from payments_core.storage import documents
from payments_core.storage.damaged_records import load_listed
from payments_core.storage.port import Page, Position, Snapshot, Transaction
from payments_core.tenants.authorization import Authority, require_room
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.faults import require_exactly_one
from payments_core.validation.fields import (
    AssetSymbol,
    ChainId,
    Email,
    ExternalUserId,
    MetadataInput,
    PageLimit,
    Username,
)

DEFAULT_SETTLEMENT = Settlement(chain_id=DEFAULT_CHAIN_ID, asset_symbol=DEFAULT_SYMBOL)
"""The defaults of a preference of which only one half is given."""


@attrs.frozen(kw_only=True)
class NewAccount:
    """The input of a new account.

    `external_user_id` is the partner's own id of the user, unique in the environment; without it
    the account's id takes its place. `username` has 3 to 20 letters, digits or underscores, is not
    a reserved name, and is unique regardless of case; with it the account has a payment address.
    There are at most 50 `wallets`. Without `settlement` the account is paid in the asset of each
    Payment. `metadata` is JSON that is stored and returned.

    >>> new = NewAccount(external_user_id="dan", subject_type="business", email="dan@example.com")
    >>> shop.accounts.create(new, idempotency_key="account-dan").account.status
    'active'
    """

    __repr__ = brief_repr

    external_user_id: ExternalUserId | None = None
    subject_type: SubjectType
    username: Username | None = None
    email: Email | None = None
    wallets: NewWallets = ()
    settlement: Settlement | None = None
    metadata: MetadataInput | None = None


@attrs.frozen
class AccountDetails:
    """An account with its vaults and wallets.

    >>> details = shop.accounts.read(eve.id)
    >>> details.account.external_user_id, len(details.vaults), details.wallets
    ('eve', 5, ())
    """

    __repr__ = brief_repr

    checked_by_class: ClassVar[bool] = True

    account: Account
    vaults: tuple[Vault, ...]
    wallets: tuple[Wallet, ...]
    activations: tuple[CapabilityActivation, ...] = ()


class Accounts:
    """Creates and reads accounts; every account gets a vault on every registered chain."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], screener: Screener) -> None:
        self._storage = ports.storage
        self._screener = screener
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains

    @once_per_key
    def create(
        self, authority: Authority, new: NewAccount, *, idempotency_key: IdempotencyKey = None
    ) -> AccountDetails:
        """A new account.

        Its wallets are screened before they are stored. Raises ValidationFailed, ResourceConflict,
        UsernameTaken, UnsupportedChain, ScreeningRefused, DependencyFailed without an answer of the
        screening provider, StorageLimitReached.
        """
        authority = require_room(authority)
        if new.username is not None:
            require_usable(new.username)
        wallets = normalize_wallets(new.wallets, self._networks)
        if new.settlement is not None:
            self._networks.find_asset(new.settlement.chain_id, new.settlement.asset_symbol)
        if wallets:
            self._committer.replay(authority, idempotency_key)
            for wallet in wallets:
                self._screener.require_linkable(authority.mode, authority.partition, wallet.address)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[AccountDetails]:
            account_id = id_sequence.issue("acct")
            account = Account(
                id=account_id,
                external_user_id=new.external_user_id or account_id,
                subject_type=new.subject_type,
                username=new.username,
                username_key=username_key(new.username) if new.username else None,
                partner_id=authority.environment.partner_id,
                email=new.email,
                settlement=new.settlement,
                metadata=new.metadata,
                wallet_count=len(wallets),
                created_at_ms=now,
                updated_at_ms=now,
            )
            made = [
                new_vault(chain, authority.partition, account.id, id_sequence, now=now)
                for _, chain in sorted(self._chains.items())
            ]
            linked = tuple(
                Wallet(
                    id=id_sequence.issue("wallet"),
                    account_id=account.id,
                    chain_type=wallet.chain_type,
                    address=wallet.address,
                    label=wallet.label,
                    ordinal=ordinal,
                    created_at_ms=now,
                )
                for ordinal, wallet in enumerate(wallets)
            )
            return Decision(
                AccountDetails(account, tuple(vault for vault, _ in made), linked),
                inserts=(account, *(row for pair in made for row in pair), *linked),
                events=(account_event("account.created", account, authority.api_version),),
                refusals={
                    "external_user": ResourceConflict(
                        "An account with this externalUserId already exists."
                    ),
                    "username": UsernameTaken(),
                },
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def get(self, authority: Authority, account_id: str) -> AccountDetails:
        """The account with its vaults and wallets. Raises NotFound."""

        def load(snapshot: Snapshot) -> AccountDetails:
            account = snapshot.get(Account, account_id)
            if account is None:
                raise NotFound("account")
            return load_details(snapshot, account)

        return self._storage.read(authority.partition, load)

    def list(
        self,
        authority: Authority,
        *,
        external_user_id: str | None = None,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[AccountDetails]:
        """Accounts, newest first."""
        index = "by_created" if external_user_id is None else "by_external_user"
        key = () if external_user_id is None else (external_user_id,)

        def load(snapshot: Snapshot) -> Page[AccountDetails]:
            page = snapshot.find(Account, index, key, after=after, limit=limit, skip_damaged=True)
            found = {account.id: account for account in page.records}
            details = load_listed(
                authority.partition, Account, found, lambda id: load_details(snapshot, found[id])
            )
            return Page(details, page.next)

        return self._storage.read(authority.partition, load)

    def list_briefly(
        self,
        authority: Authority,
        *,
        external_user_id: str | None = None,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Account]:
        """As `list`, without vaults and wallets: one query for the whole page."""
        index = "by_created" if external_user_id is None else "by_external_user"
        key = () if external_user_id is None else (external_user_id,)
        return self._storage.read(
            authority.partition,
            lambda snapshot: snapshot.find(
                Account, index, key, after=after, limit=limit, skip_damaged=True
            ),
        )

    def look_up(
        self, authority: Authority, account_id: str | None, external_user_id: str | None
    ) -> Account:
        """The account by exactly one of its two ids. Raises ValidationFailed, NotFound."""
        require_exactly_one({"account_id": account_id, "external_user_id": external_user_id})

        def load(snapshot: Snapshot) -> Account:
            if account_id is not None:
                account = snapshot.get(Account, account_id)
            else:
                page = snapshot.find(Account, "by_external_user", (external_user_id,), limit=1)
                account = page.records[0] if page.records else None
            if account is None:
                raise NotFound("account")
            return account

        return self._storage.read(authority.partition, load)

    def hold_open(self, tx: Transaction, account_id: str) -> Account:
        """The account, held until the commit. Raises NotFound, AccountSuspended if it is closed."""
        account = lock_shared(tx, Account, account_id)
        if account is None:
            raise NotFound("account")
        return _require_not_closed(account)

    @once_per_key
    def update(
        self,
        authority: Authority,
        account_id: str,
        *,
        email: Email | UnsetType | None = UNSET,
        metadata: MetadataInput | UnsetType | None = UNSET,
        status: AccountStatus | UnsetType = UNSET,
        idempotency_key: IdempotencyKey = None,
    ) -> AccountDetails:
        """Change the given fields; `UNSET` leaves one as it is, and equal values change nothing.

        A closed account stays closed. Raises ValidationFailed, NotFound, InvalidState, and
        StorageLimitReached for new metadata.
        """
        given: dict[str, Any] = {"email": email, "metadata": metadata, "status": status}
        changes = {name: value for name, value in given.items() if value is not UNSET}

        def change(account: Account) -> Account:
            if account.status == "closed" and changes.get("status", "closed") != "closed":
                raise InvalidState("account", account.status, f"change to {changes['status']}")
            return evolve(account, **changes)

        if changes.get("metadata"):
            authority = require_room(authority)
        return self._apply_change(authority, account_id, change, idempotency_key)

    @once_per_key
    def set_settlement(
        self,
        authority: Authority,
        account_id: str,
        settlement: Settlement,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> AccountDetails:
        """Change the chain and asset in which the account wants to be paid.

        Payments made before keep theirs. Raises NotFound, AccountSuspended for a closed account,
        UnsupportedChain, UnsupportedAsset.
        """
        self._networks.find_asset(settlement.chain_id, settlement.asset_symbol)

        def change(account: Account) -> Account:
            return evolve(_require_not_closed(account), settlement=settlement)

        return self._apply_change(authority, account_id, change, idempotency_key)

    @once_per_key
    def adjust_settlement(
        self,
        authority: Authority,
        account_id: str,
        *,
        chain_id: ChainId | None = None,
        asset_symbol: AssetSymbol | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> AccountDetails:
        """Change the half of the settlement preference that is given.

        The other half stays, or takes the service's default. Raises as `set_settlement` does.
        """

        def change(account: Account) -> Account:
            current = _require_not_closed(account).settlement or DEFAULT_SETTLEMENT
            chosen = current.chain_id if chain_id is None else chain_id
            wanted = Settlement(chain_id=chosen, asset_symbol=asset_symbol or current.asset_symbol)
            self._networks.find_asset(wanted.chain_id, wanted.asset_symbol)
            return evolve(account, settlement=wanted)

        return self._apply_change(authority, account_id, change, idempotency_key)

    @once_per_key
    def set_username(
        self,
        authority: Authority,
        account_id: str,
        username: Username,
        *,
        once: bool = False,
        idempotency_key: IdempotencyKey = None,
    ) -> AccountDetails:
        """Give an account without a username its permanent username.

        Repeating its own name changes nothing; with `once` that is also refused.
        Raises ValidationFailed, NotFound, AccountSuspended for a closed account, InvalidState
        if it has another, UsernameTaken, regardless of case.
        """
        require_usable(username)

        def change(account: Account) -> Account:
            known = _require_not_closed(account).username
            if known is not None and (once or known != username):
                raise InvalidState("handle", "set", "change")
            return evolve(account, username=username, username_key=username_key(username))

        taken = {"username": UsernameTaken()}
        return self._apply_change(authority, account_id, change, idempotency_key, taken)

    def _apply_change(
        self,
        authority: Authority,
        account_id: str,
        change: Callable[[Account], Account],
        idempotency_key: IdempotencyKey,
        refusals: Mapping[str, PaymentsError] | None = None,
    ) -> AccountDetails:
        now = self._clock.now()
        details = self.get(authority, account_id)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[AccountDetails]:
            account = tx.get(Account, account_id, for_update=True)
            if account is None:
                raise NotFound("account")
            changed = change(account)
            # As documents: in Python 1 equals True, but in metadata they differ.
            if documents.encode(changed) == documents.encode(account):
                return Decision(evolve(details, account=account))
            changed = evolve(changed, updated_at_ms=now)
            capabilities = Decision(details.activations)
            if changed.status != account.status:
                capabilities = decide_suspension(tx, details.activations, changed, now=now)
            return Decision(
                evolve(details, account=changed, activations=capabilities.result),
                replaces=(changed,),
                events=(account_event("account.updated", changed, authority.api_version),),
                refusals=refusals or {},
            ).merge(capabilities)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)


def load_details(snapshot: Snapshot, account: Account) -> AccountDetails:
    """An account with its vaults and wallets, from one snapshot."""
    vaults = find_vaults(snapshot, account.id)
    wallets = snapshot.find(Wallet, "by_account", (account.id,), limit=MAX_WALLETS)
    activations = snapshot.find(
        CapabilityActivation, "by_account", (account.id,), limit=len(CAPABILITIES)
    )
    return AccountDetails(account, vaults, wallets.records, activations.records)


def _require_not_closed(account: Account) -> Account:
    if account.status == "closed":
        raise AccountSuspended(account.id, account.status)
    return account
