"""Look-up of accounts by username, payment address or wallet address."""

from __future__ import annotations

from collections.abc import Callable

from payments_core.accounts.operations import AccountDetails, load_details
from payments_core.accounts.record import Account, Wallet, address_key
from payments_core.accounts.usernames import is_reserved, payee_key, require_form, username_key
from payments_core.accounts.wallet_links import find_proving_account_ids
from payments_core.addresses import AddressError, identify_chain_type, normalize_address
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ValidationFailed
from payments_core.networks import ChainType
from payments_core.storage.port import Snapshot
from payments_core.tenants.authorization import Authority


class AccountDirectory:
    """Finds accounts of an environment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage

    def find_by_username(self, authority: Authority, username: str) -> AccountDetails:
        """The account with that username, in any case. Raises NotFound."""
        return self._find(authority, lambda snapshot: _load_named(snapshot, username), "account")

    def find_by_payment_address(self, authority: Authority, address: str) -> AccountDetails:
        """The account that `<username>@<partner id>` pays, in any case.

        Raises ValidationFailed, NotFound.
        """
        key = payee_key(address, authority.environment.partner_id, "payment_address")
        return self._find(authority, lambda snapshot: _load_named(snapshot, key), "payment address")

    def find_by_wallet(self, authority: Authority, address: str) -> AccountDetails:
        """The account that a wallet address is linked to; its form decides the chain type.

        If several accounts list it: the account that has proven to hold its key, else the one whose
        contract has proven it, else the one that listed it first. If contracts on several chains
        have proven it for several accounts, it is nobody's. Raises ValidationFailed for a text that
        is not an address, NotFound.
        """
        try:
            chain_type = identify_chain_type(address)
            canonical = normalize_address(chain_type, address)
        except AddressError as error:
            raise ValidationFailed.at("address", str(error)) from None

        return self._find(
            authority, lambda snapshot: _load_holder(snapshot, chain_type, canonical), "account"
        )

    def is_username_free(self, authority: Authority, username: str) -> bool:
        """Whether an account could have the username now. Raises ValidationFailed."""
        require_form(username)
        if is_reserved(username):
            return False
        return self._storage.read(
            authority.partition, lambda snapshot: _load_named(snapshot, username) is None
        )

    def _find(
        self, authority: Authority, load: Callable[[Snapshot], Account | None], noun: str
    ) -> AccountDetails:
        def read(snapshot: Snapshot) -> AccountDetails | None:
            account = load(snapshot)
            return None if account is None else load_details(snapshot, account)

        details = self._storage.read(authority.partition, read)
        if details is None:
            raise NotFound(noun)
        return details


def _load_holder(snapshot: Snapshot, chain_type: ChainType, address: str) -> Account | None:
    key = (address_key(chain_type, address),)
    found = snapshot.find(Wallet, "by_verified_address", key, limit=1).records
    if found:
        return snapshot.get(Account, found[0].account_id)
    provers = find_proving_account_ids(snapshot, address)
    if provers:
        return snapshot.get(Account, min(provers)) if len(provers) == 1 else None
    listed = snapshot.find(Wallet, "by_linked_address", (chain_type, address), limit=1).records
    return snapshot.get(Account, listed[0].account_id) if listed else None


def _load_named(snapshot: Snapshot, username: str) -> Account | None:
    page = snapshot.find(Account, "by_username", (username_key(username),), limit=1)
    return page.records[0] if page.records else None
