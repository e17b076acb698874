"""Deploy a vault's role module (interface "deploy-role-module", contract §10).

The vault's owner signs that the vault enables its module, and nothing else. The service checks it,
stores it, and sends two transactions: one deploys the module, one brings the signature.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import attrs

from payments_core.accounts.record import Account, Wallet
from payments_core.accounts.vaults.of_account import find_vaults_by_chain
from payments_core.accounts.vaults.record import Vault
from payments_core.chains.port import AddressSpec, Chain, ChainUnavailable
from payments_core.chains.role_modules import (
    AvatarCall,
    ModuleChain,
    ModuleState,
    TxData,
    build_enable_call,
    require_signature,
)
from payments_core.chains.signatures import SignatureError, recover_signer
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    AccountSuspended,
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    ValidationFailed,
)
from payments_core.legacy.role_modules import lifecycle
from payments_core.legacy.role_modules.record import RoleModuleInstallation, installation_id
from payments_core.legacy.role_modules.steps import start_step
from payments_core.networks import DEFAULT_CHAIN_ID
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key

MAX_WALLETS_READ = 100


@attrs.frozen
class _Home:
    """An account's vault, and the EVM addresses that the account has proven on its chain."""

    vault: Vault
    wallets: frozenset[str]


@attrs.frozen
class _SignedRequest:
    """The owner's verified signature, in the vault's form."""

    call: AvatarCall
    state: ModuleState
    signature: str
    module: str
    tokens: tuple[str, ...]
    operator: str


class RoleModules:
    """Puts role modules of vaults in place."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain], calls: RemoteCalls) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._calls = calls

    @once_per_key
    def deploy(
        self,
        authority: Authority,
        account_id: str,
        tx_data: TxData,
        signature: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> RoleModuleInstallation:
        """The installation of the role module of an account's vault, on the chain where the
        account wants to be paid.

        `tx_data` is `enableModule` of the vault's own module, from the vault to itself, and
        `signature` the owner's in hex over it (EIP-712, or ERC-1271). The same request again
        returns the same installation in its present state; a failed one starts again.

        Raises NotFound, AccountSuspended, ValidationFailed, InvalidState for a vault without an
        owner and for a request other than the one in progress, CapabilityNotActive if
        the chain has no role modules, DependencyFailed.
        """
        self._committer.replay(authority, idempotency_key)
        home = self._storage.read(
            authority.partition, lambda snapshot: _load_home(snapshot, account_id)
        )
        digest = _digest_of(tx_data, signature)
        known = self._find_known(authority, home, digest)
        signed = None if known else self._check(authority, home, tx_data, signature)
        id = known.id if known else installation_id(home.vault.id, signed.module if signed else "")

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[RoleModuleInstallation]:
            account = lock_shared(tx, Account, account_id)
            assert account is not None
            if account.status != "active":
                raise AccountSuspended(account.id, account.status)
            now = self._clock.now()
            current = tx.get(RoleModuleInstallation, id, for_update=True)
            if current is not None and current.request == digest and current.status != "failed":
                return Decision(current)
            if signed is None:  # it has failed since it was read
                assert current is not None
                return Decision(current)
            outgoing_id, enable_id = id_sequence.issue("out"), id_sequence.issue("out")
            trigger = "enable" if signed.state.is_deployed else "deploy"
            draft = RoleModuleInstallation(
                id=id,
                version=current.version if current else 0,
                account_id=account_id,
                vault_id=home.vault.id,
                chain_id=home.vault.chain_id,
                vault_address=home.vault.address,
                module_address=signed.module,
                tokens=signed.tokens,
                nonce=signed.call.nonce,
                signature=signed.signature,
                request=digest,
                status=current.status if current else "",
                status_version=current.status_version if current else 0,
                outgoing_id=outgoing_id,
                enable_id=enable_id,
                created_at_ms=current.created_at_ms if current else now,
                updated_at_ms=now,
            )
            step = lifecycle.apply_trigger(draft, trigger, now=now)
            started = start_step(authority.partition, step.record, signed.operator, now=now)
            return step.as_decision(step.record).merge(started)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _find_known(
        self, authority: Authority, home: _Home, digest: str
    ) -> RoleModuleInstallation | None:
        """The installation that this request has begun, unless it failed."""
        chain = self._require_chain(home.vault.chain_id)
        tokens = self._list_tokens(home.vault)
        module = chain.find_module(authority.partition, home.vault.address, tokens)
        found = self._storage.read(
            authority.partition,
            lambda snapshot: snapshot.get(
                RoleModuleInstallation, installation_id(home.vault.id, module)
            ),
        )
        if found is None or found.request != digest or found.status == "failed":
            return None
        return found

    def _check(
        self, authority: Authority, home: _Home, tx_data: TxData, signature: str
    ) -> _SignedRequest:
        """The checked request. It asks the chain."""
        vault, tokens = home.vault, self._list_tokens(home.vault)
        chain = self._require_chain(vault.chain_id)
        module = chain.find_module(authority.partition, vault.address, tokens)
        served = self._chains[vault.chain_id]

        def accepts(address: str, digest: bytes, signature: bytes) -> bool:
            return served.check_contract_signature(address, digest, signature) is True

        try:
            with self._calls.acquire("chain", authority.partition):
                state = chain.read_module(authority.partition, vault.address, tokens)
                if state is None:
                    raise InvalidState("vault", "counterfactual", "deploy a role module")
                call = build_enable_call(
                    vault.address, module, vault.chain_id, state.nonce, tx_data, (vault.address,)
                )
                owner = _find_owner(home, state, call, signature)
                accepted = require_signature(call, owner, signature, accepts)
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error
        operator = served.derive(AddressSpec(authority.partition, "operator", "operator"))
        return _SignedRequest(call, state, accepted.hex(), module, tokens, operator)

    def _list_tokens(self, vault: Vault) -> tuple[str, ...]:
        """The tokens that a module may move: every token of the registry on the vault's chain."""
        network = self._networks.find_network(vault.chain_id)
        return tuple(token.address for token in network.tokens)

    def _require_chain(self, chain_id: int) -> ModuleChain:
        chain: object = self._chains.get(chain_id)
        if not isinstance(chain, ModuleChain):
            raise CapabilityNotActive(f"a role module on chain {chain_id}")
        return chain


def _load_home(snapshot: Snapshot, account_id: str) -> _Home:
    account = snapshot.get(Account, account_id)
    if account is None:
        raise NotFound("account")
    chain_id = account.settlement.chain_id if account.settlement else DEFAULT_CHAIN_ID
    vault = find_vaults_by_chain(snapshot, account_id).get(chain_id)
    if vault is None:
        raise NotFound("vault")
    wallets = snapshot.find(Wallet, "by_account", (account_id,), limit=MAX_WALLETS_READ).records
    proven = frozenset(
        wallet.address
        for wallet in wallets
        if wallet.chain_type == "evm" and wallet.is_verified_on(chain_id)
    )
    return _Home(vault, proven)


def _find_owner(home: _Home, state: ModuleState, call: AvatarCall, signature: str) -> str:
    """The addresses of which one must have signed. Raises InvalidState for a vault without an
    owner.

    A simulated vault belongs to the account's verified wallets: the one that signed, if any.
    """
    if state.owner is not None:
        return state.owner
    if not state.is_simulated or not home.wallets:
        raise InvalidState("vault", "without an owner", "deploy a role module")
    try:
        signer = recover_signer(call.digest, signature)
    except SignatureError as fault:
        raise ValidationFailed.at("signature", str(fault)) from None
    return signer if signer in home.wallets else min(home.wallets)


def _digest_of(tx_data: TxData, signature: str) -> str:
    """The digest that distinguishes requests."""
    named = (tx_data.to, tx_data.value, tx_data.data.hex(), tx_data.operation, signature.lower())
    return hashlib.sha256(repr(named).encode()).hexdigest()
