"""What a link of a wallet changes, and what unlinking it does.

A key's proof holds on every chain, and a contract's on its own chain alone. So an address belongs
to one account of the environment if its key signed, and otherwise to one account on each chain.
"""

from __future__ import annotations

from payments_core.accounts.events import account_event
from payments_core.accounts.record import (
    MAX_WALLETS,
    Account,
    Wallet,
    WalletProof,
    address_key,
    proof_id,
)
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.errors import NotFound, ResourceConflict
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority

MAX_PROOFS_READ = 100
"""More chains than any deployment serves."""


def decide_link(
    tx: Transaction, authority: Authority, account: Account, proven: Wallet
) -> Decision[Wallet]:
    """The locked account, with a wallet that it has just proven to control.

    Raises ResourceConflict if the address is verified for another account where this proof holds,
    or if the account has too many wallets.
    """
    _require_free(tx, proven)
    known = _find_own_wallet(tx, proven)
    if known is None and account.wallet_count >= MAX_WALLETS:
        raise ResourceConflict(f"An account has at most {MAX_WALLETS} wallets.")
    wallet = proven if known is None else _add_proof(known, proven)
    count = account.wallet_count + (1 if known is None else 0)
    changed = evolve(account, wallet_count=count, updated_at_ms=proven.created_at_ms)
    # A taken unique key means that a find was stale: look again.
    return Decision(
        wallet,
        inserts=(*(() if known is not None else (wallet,)), *_claim_chains(tx, proven)),
        replaces=(changed, *(() if known is None else (wallet,))),
        events=(account_event("account.updated", changed, authority.api_version),),
    )


def decide_unlink(
    tx: Transaction, authority: Authority, account: Account, wallet_id: str, *, now: Instant
) -> Decision[Wallet]:
    """The locked account without a wallet, whose address becomes free. Raises NotFound."""
    wallet = tx.get(Wallet, wallet_id, for_update=True)
    if wallet is None or wallet.account_id != account.id:
        raise NotFound("wallet")
    changed = evolve(account, wallet_count=account.wallet_count - 1, updated_at_ms=now)
    proofs = (_lock_proof(tx, wallet.address, chain_id) for chain_id in wallet.contract_chains)
    return Decision(
        wallet,
        replaces=(changed,),
        deletes=(wallet, *(one for one in proofs if one and one.account_id == account.id)),
        events=(account_event("account.updated", changed, authority.api_version),),
    )


def find_proving_account_ids(snapshot: Snapshot, address: str) -> frozenset[str]:
    """The accounts for which contracts have proven an EVM address, each on chains of its own."""
    proofs = snapshot.find(WalletProof, "by_address", (address,), limit=MAX_PROOFS_READ).records
    return frozenset(proof.account_id for proof in proofs)


def _add_proof(known: Wallet, proven: Wallet) -> Wallet:
    chains = dict.fromkeys((*known.contract_chains, *proven.contract_chains))
    return evolve(
        known,
        verified_at_ms=proven.verified_at_ms,
        key_proof=known.key_proof or proven.key_proof,
        contract_chains=tuple(chains),
        label=proven.label or known.label,
    )


def _require_free(tx: Transaction, proven: Wallet) -> None:
    """Raise ResourceConflict if another account has proven the address where this proof holds.

    A find may miss it; the unique keys do not.
    """
    key = (address_key(proven.chain_type, proven.address),)
    found = tx.find(Wallet, "by_verified_address", key, limit=1).records
    owners = [holder for one in found if (holder := tx.get(Wallet, one.id, for_update=True))]
    proofs: list[WalletProof | None] = []
    if proven.key_proof:
        rows = tx.find(WalletProof, "by_address", (proven.address,), limit=MAX_PROOFS_READ).records
        proofs = [tx.get(WalletProof, row.id, for_update=True) for row in rows]
    proofs += [_lock_proof(tx, proven.address, chain_id) for chain_id in proven.contract_chains]
    holders = {one.account_id for one in (*owners, *proofs) if one is not None}
    if holders - {proven.account_id}:
        raise ResourceConflict("This address is verified for another account.")


def _find_own_wallet(tx: Transaction, proven: Wallet) -> Wallet | None:
    """The account's wallet of that address, locked, if it lists one."""
    own = (proven.account_id, proven.chain_type, proven.address)
    for found in tx.find(Wallet, "by_address", own, limit=1).records:
        return tx.get(Wallet, found.id, for_update=True)
    return None


def _claim_chains(tx: Transaction, proven: Wallet) -> tuple[WalletProof, ...]:
    """The proofs that are not stored yet, for the chains whose contract has accepted."""
    return tuple(
        WalletProof(
            id=proof_id(proven.address, chain_id),
            address=proven.address,
            chain_id=chain_id,
            account_id=proven.account_id,
            created_at_ms=proven.created_at_ms,
        )
        for chain_id in proven.contract_chains
        if _lock_proof(tx, proven.address, chain_id) is None
    )


def _lock_proof(tx: Transaction, address: str, chain_id: int) -> WalletProof | None:
    return tx.get(WalletProof, proof_id(address, chain_id), for_update=True)
