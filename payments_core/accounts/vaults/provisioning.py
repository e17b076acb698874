"""An account's vaults: listed, and created on chains newer than the account (contract §5)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.queries import list_for_account
from payments_core.accounts.record import Account
from payments_core.accounts.vaults.of_account import find_vaults_by_chain
from payments_core.accounts.vaults.record import Policy, Vault
from payments_core.brief_repr import brief_repr
from payments_core.chains.port import AddressSpec, Chain
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import InvalidState, NotFound, ResourceConflict, UnsupportedChain
from payments_core.storage.port import Page, Position, Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import ChainId, PageLimit


@attrs.frozen
class ProvisionedVault:
    """An account's vault on a chain, and whether it was made just now.

    >>> shop.vaults.provision(eve.id, 8453)
    ProvisionedVault(vault=Vault(id='vault_...', ...), is_new=False)
    """

    __repr__ = brief_repr

    vault: Vault
    is_new: bool


class VaultProvisioning:
    """Lists an account's vaults and creates missing ones; there is one on each chain."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains

    def list(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Vault]:
        """The account's vaults, in the order of their chains. Raises NotFound."""
        return list_for_account(
            self._storage, authority, account_id, Vault, after=after, limit=limit
        )

    @once_per_key
    def provision(
        self,
        authority: Authority,
        account_id: str,
        chain_id: ChainId,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> ProvisionedVault:
        """The account's vault on a chain, created with a default policy if there was none.

        Raises NotFound, UnsupportedChain, and InvalidState for a closed account.
        """
        present = self._find_vault(authority, account_id, chain_id)
        try:
            return self._find_or_create(authority, account_id, chain_id, present, idempotency_key)
        except (ResourceConflict, InvalidState):
            if present is not None:
                raise
            present = self._find_vault(authority, account_id, chain_id)
            if present is None:
                raise
        # Created meanwhile by another request: that is the vault.
        return self._find_or_create(authority, account_id, chain_id, present, idempotency_key)

    def _find_vault(self, authority: Authority, account_id: str, chain_id: int) -> Vault | None:
        def load(snapshot: Snapshot) -> Vault | None:
            return find_vaults_by_chain(snapshot, account_id).get(chain_id)

        return self._storage.read(authority.partition, load)

    def _find_or_create(
        self,
        authority: Authority,
        account_id: str,
        chain_id: int,
        present: Vault | None,
        idempotency_key: IdempotencyKey,
    ) -> ProvisionedVault:
        """The existing vault, or a new one; the unique key decides."""
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[ProvisionedVault]:
            account = lock_shared(tx, Account, account_id)
            if account is None:
                raise NotFound("account")
            chain = self._chains.get(chain_id)
            if chain is None:
                raise UnsupportedChain(chain_id)
            if present is not None:
                return Decision(ProvisionedVault(present, is_new=False))
            if account.status == "closed":
                raise InvalidState("account", account.status, "provision a vault")
            vault, policy = new_vault(chain, authority.partition, account_id, id_sequence, now=now)
            return Decision(
                ProvisionedVault(vault, is_new=True),
                inserts=(vault, policy),
                refusals={
                    "account_chain": ResourceConflict(
                        "The account already has a vault on this chain."
                    )
                },
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)


def new_vault(
    chain: Chain, partition: str, account_id: str, id_sequence: IdSequence, *, now: Instant
) -> tuple[Vault, Policy]:
    """An account's vault on a chain, with its default policy."""
    policy_id = id_sequence.issue("policy")
    vault = Vault(
        id=id_sequence.issue("vault"),
        account_id=account_id,
        chain_id=chain.chain_id,
        address=chain.derive(AddressSpec(partition, "vault", account_id)),
        policy_id=policy_id,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return vault, Policy(id=policy_id, vault_id=vault.id, created_at_ms=now, updated_at_ms=now)


def require_own_vault(vault: Vault | None, account: Account | None) -> Vault:
    """The vault, if it is the account's. Raises NotFound."""
    if account is None:
        raise NotFound("account")
    if vault is None or vault.account_id != account.id:
        raise NotFound("vault")
    return vault


def load_vault(snapshot: Snapshot, account_id: str, vault_id: str) -> Vault:
    """The account's vault. Raises NotFound."""
    return require_own_vault(snapshot.get(Vault, vault_id), snapshot.get(Account, account_id))


def lock_vault(tx: Transaction, account_id: str, vault_id: str) -> Vault:
    """The account's vault, held with the account. Raises NotFound."""
    account = lock_shared(tx, Account, account_id)
    return require_own_vault(lock_shared(tx, Vault, vault_id), account)
