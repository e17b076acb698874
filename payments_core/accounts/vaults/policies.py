"""Vault policies: read in any version, and replaced as a whole (contract §5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.policy_rules import LIMIT_DECIMALS
from payments_core.accounts.vaults.provisioning import load_vault, lock_vault
from payments_core.accounts.vaults.record import (
    AllowedDestination,
    Policy,
    PolicyTerms,
    PolicyVersion,
    Vault,
    policy_version_id,
)
from payments_core.addresses import AddressError
from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import FieldError, NotFound, ResourceConflict, ValidationFailed
from payments_core.evolve import evolve
from payments_core.money import MoneyError, format_amount, parse_amount
from payments_core.networks import Networks
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key

MAX_ITEMS = 100
"""The maximum length of each list of a policy."""


@attrs.frozen
class VaultPolicy:
    """A policy, in one of its versions, and the vault that it governs.

    >>> shop.vaults.read_policy(eve.id, vault.id)
    VaultPolicy(vault=Vault(id='vault_...', ...), policy=Policy(id='policy_...', ...))
    """

    __repr__ = brief_repr

    vault: Vault
    policy: Policy


class VaultPolicies:
    """Reads and replaces the policies of vaults."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock

    def read(
        self,
        authority: Authority,
        account_id: str,
        vault_id: str,
        *,
        policy_version: int | None = None,
    ) -> VaultPolicy:
        """The present policy, or one of its versions. Raises NotFound."""

        def load(snapshot: Snapshot) -> VaultPolicy:
            vault = load_vault(snapshot, account_id, vault_id)
            policy = snapshot.get(Policy, vault.policy_id)
            assert policy is not None
            if policy_version in (None, policy.policy_version):
                return VaultPolicy(vault, policy)
            assert policy_version is not None
            then = snapshot.get(PolicyVersion, policy_version_id(policy.id, policy_version))
            if then is None:
                raise NotFound("policy version")
            earlier = _apply_terms(policy, then.terms, policy_version, then.created_at_ms)
            return VaultPolicy(vault, earlier)

        return self._storage.read(authority.partition, load)

    @once_per_key
    def replace(
        self,
        authority: Authority,
        account_id: str,
        vault_id: str,
        terms: PolicyTerms,
        *,
        policy_version: int | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> VaultPolicy:
        """The policy with new terms, in its next version; it governs from its commit on.

        `policy_version`, if given, is the version that the caller has read and wants to replace.
        Raises ValidationFailed with every error, NotFound, and ResourceConflict if the policy has
        changed since that version.
        """
        terms = _validate_terms(terms, self._networks)
        strangers = self._find_unknown_accounts(authority, terms)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[VaultPolicy]:
            vault = lock_vault(tx, account_id, vault_id)
            if strangers:
                raise ValidationFailed(strangers)
            policy = tx.get(Policy, vault.policy_id, for_update=True)
            assert policy is not None
            if policy_version not in (None, policy.policy_version):
                raise ResourceConflict(
                    f"The policy is at version {policy.policy_version} now; read it again."
                )
            changed = _apply_terms(policy, terms, policy.policy_version + 1, now)
            # A vault's first version is stored when the next one comes.
            before = policy_version_id(policy.id, policy.policy_version)
            kept = tx.get(PolicyVersion, before, for_update=True)
            return Decision(
                VaultPolicy(vault, changed),
                inserts=(_to_version(changed), *(() if kept else (_to_version(policy),))),
                replaces=(changed,),
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _find_unknown_accounts(
        self, authority: Authority, terms: PolicyTerms
    ) -> tuple[FieldError, ...]:
        """An error for every allowed account that does not exist. Accounts are never deleted."""
        destinations = terms.allowed_destinations or ()

        def load(snapshot: Snapshot) -> tuple[FieldError, ...]:
            return tuple(
                FieldError(
                    f"allowed_destinations[{place}].account_id",
                    "is not an account of this environment",
                )
                for place, item in enumerate(destinations)
                if item.account_id is not None and snapshot.get(Account, item.account_id) is None
            )

        if not any(item.account_id for item in destinations):
            return ()
        return self._storage.read(authority.partition, load)


def _apply_terms(policy: Policy, terms: PolicyTerms, policy_version: int, since: Instant) -> Policy:
    facts: dict[str, Any] = {
        field.name: getattr(terms, field.name) for field in attrs.fields(PolicyTerms)
    }
    return evolve(policy, policy_version=policy_version, updated_at_ms=since, **facts)


def _to_version(policy: Policy) -> PolicyVersion:
    return PolicyVersion(
        id=policy_version_id(policy.id, policy.policy_version),
        terms=policy.terms,
        created_at_ms=policy.updated_at_ms,
    )


# The rules of a policy


def _validate_terms(terms: PolicyTerms, networks: Networks) -> PolicyTerms:
    """The terms in canonical form. Raises ValidationFailed with every error."""
    faults: list[FieldError] = []
    checked = evolve(
        terms,
        per_payment_limit=_validate_limit("per_payment_limit", terms.per_payment_limit, faults),
        daily_limit=_validate_limit("daily_limit", terms.daily_limit, faults),
        allowed_destinations=_validate_destinations(terms.allowed_destinations, networks, faults),
    )
    faults += _validate_list(
        "allowed_chains", terms.allowed_chains, networks, "is not a supported chain"
    )
    faults += _validate_list(
        "allowed_assets", terms.allowed_assets, networks.list_symbols(), "is not a supported asset"
    )
    if faults:
        raise ValidationFailed(tuple(faults))
    return checked


def _validate_limit(path: str, text: str | None, faults: list[FieldError]) -> str | None:
    if text is None:
        return None
    try:
        limit = parse_amount(text, LIMIT_DECIMALS)
    except MoneyError as error:
        faults.append(FieldError(path, str(error)))
        return None
    if limit == 0:
        faults.append(FieldError(path, "must be greater than zero, or null for no limit"))
    return format_amount(limit, LIMIT_DECIMALS)


def _validate_list(
    path: str, items: Sequence[object] | None, known: Iterable[object], sentence: str
) -> list[FieldError]:
    if items is None:
        return []
    if len(items) > MAX_ITEMS:
        return [FieldError(path, f"must have at most {MAX_ITEMS} items")]
    wanted = set(known)
    return [
        FieldError(f"{path}[{place}]", "is given twice" if item in items[:place] else sentence)
        for place, item in enumerate(items)
        if item not in wanted or item in items[:place]
    ]


def _validate_destinations(
    items: Sequence[AllowedDestination] | None, networks: Networks, faults: list[FieldError]
) -> tuple[AllowedDestination, ...] | None:
    """The destinations with canonical addresses; an invalid one is left out."""
    path = "allowed_destinations"
    if items is None:
        return None
    if len(items) > MAX_ITEMS:
        faults.append(FieldError(path, f"must have at most {MAX_ITEMS} items"))
        return None
    checked: list[AllowedDestination] = []
    for place, item in enumerate(items):
        found = _find_destination_faults(item, networks)
        if found:
            faults += [FieldError(f"{path}[{place}].{name}", text) for name, text in found]
            continue
        if item.type == "wallet":
            item = evolve(item, address=_canonical_address(item, networks))
        if item in checked:
            faults.append(FieldError(f"{path}[{place}]", "is given twice"))
        checked.append(item)
    return tuple(checked)


def _find_destination_faults(item: AllowedDestination, networks: Networks) -> list[tuple[str, str]]:
    if item.type == "account":
        return [] if item.account_id else [("account_id", "is required")]
    found = []
    if item.chain_id is not None and item.chain_id not in networks:
        found.append(("chain_id", "is not a supported chain"))
    try:
        _canonical_address(item, networks)
    except AddressError as error:
        found.append(("address", str(error)))
    return found


def _canonical_address(item: AllowedDestination, networks: Networks) -> str:
    """The address in the form of its chain, or of any supported chain. Raises AddressError."""
    entry = networks.get(item.chain_id) if item.chain_id is not None else None
    kinds = [entry.chain_type] if entry else sorted({e.chain_type for e in networks.values()})
    for kind in kinds[:-1]:
        try:
            return networks.normalize_wallet_address(kind, item.address or "")
        except AddressError:
            continue
    return networks.normalize_wallet_address(kinds[-1], item.address or "")
