"""Wallets: link one by a signature, list, remove (contract §5).

A challenge is requested, signed in the wallet, and answered once. The ownership is proven by
the signature of the address's key or, without such a key, by the answer of the contract
there; the challenge binds it to one account, one address and a few minutes. What a link changes is
in `wallet_links.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.challenges import (
    CHALLENGE_TTL_MS,
    NONCE_BYTES,
    challenge_text,
    find_chain_faults,
)
from payments_core.accounts.erc1271 import ContractSignatureChecker
from payments_core.accounts.operations import AccountDetails, load_details
from payments_core.accounts.queries import list_for_account
from payments_core.accounts.record import Account, SignedMessage, Wallet, WalletChallenge
from payments_core.accounts.wallet_links import decide_link, decide_unlink
from payments_core.accounts.wallet_signatures import (
    MessageSignature,
    SignedText,
    contract_claim,
    find_signature_faults,
)
from payments_core.addresses import AddressError
from payments_core.chains.port import Chain
from payments_core.clock import DAY, Instant
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    AccountSuspended,
    ActionAlreadyUsed,
    ActionExpired,
    DependencyFailed,
    FieldError,
    NotFound,
    PaymentsError,
    ScreeningRefused,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.networks import ChainType
from payments_core.screening.asking import Screener
from payments_core.storage.port import Page, Position, Snapshot, Transaction, Where
from payments_core.tenants.authorization import Authority, require_room
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import (
    Address,
    ChainId,
    Label,
    PageLimit,
    PublicKey,
    Signature,
)

CHALLENGE_RETENTION_MS = DAY
"""How long an expired challenge is still known as expired or used; later it is not found."""

CHALLENGE_PURGE_BATCH = 20

_KEY_SIGNATURE_BYTES = 65
_SIGNATURE_NOT_ACCEPTED = FieldError(
    "signature", "is neither a 65-byte signature nor accepted by a contract at this address"
)


@attrs.frozen(kw_only=True)
class _Proof:
    """Who proved that a wallet is the account's: its key, or its contract on these chains."""

    by_key: bool = False
    chain_ids: tuple[int, ...] = ()


class Wallets:
    """Links wallets to accounts, and lists them."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, Chain],
        calls: RemoteCalls,
        screener: Screener,
        service_name: str,
    ) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._contract_wallets = ContractSignatureChecker(ports, chains, calls)
        self._screener = screener
        self._entropy = ports.entropy
        self._service_name = service_name

    @once_per_key
    def challenge(
        self,
        authority: Authority,
        account_id: str,
        address: Address,
        chain_type: ChainType,
        *,
        chain_id: ChainId | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> WalletChallenge:
        """A text for the wallet of that address to sign within ten minutes.

        For a contract wallet, `chain_id` names the EVM chain on which its contract is to accept the
        signature; without it, every served chain is asked. Raises ValidationFailed,
        UnsupportedChain, NotFound, AccountSuspended, StorageLimitReached.
        """
        authority = require_room(authority)
        try:
            address = self._networks.normalize_wallet_address(chain_type, address)
        except AddressError as error:
            raise ValidationFailed.at("address", str(error)) from None
        if faults := find_chain_faults(chain_type, chain_id):
            raise ValidationFailed(tuple(faults))
        if chain_id is not None:
            self._require_evm(chain_id)
        now = self._clock.now()
        nonce = self._entropy(NONCE_BYTES).hex()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[WalletChallenge]:
            _require_active(lock_shared(tx, Account, account_id))
            unsaid = WalletChallenge(
                id=id_sequence.issue("wallet_challenge"),
                account_id=account_id,
                chain_type=chain_type,
                address=address,
                chain_id=chain_id,
                nonce=nonce,
                message="",
                created_at_ms=now,
                expires_at_ms=now + CHALLENGE_TTL_MS,
            )
            app_name = authority.environment.app_name
            text = challenge_text(unsaid, self._service_name, app_name, self._networks)
            challenge = evolve(unsaid, message=text)
            return Decision(
                challenge, inserts=(challenge,), deletes=_find_stale_challenges(tx, account_id, now)
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def add(
        self,
        authority: Authority,
        account_id: str,
        challenge_id: str,
        signature: Signature,
        *,
        public_key: PublicKey | None = None,
        label: Label | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Wallet:
        """Link the wallet that signed the challenge; it is verified from now on.

        A key's signature verifies it on every chain, and a contract's answer (ERC-1271, also of a
        wallet that is not deployed yet, ERC-6492) on the chains whose contract accepts the
        signature. A wallet that the account already lists keeps its row. Raises NotFound for an
        unknown account or another account's challenge, AccountSuspended, ActionAlreadyUsed,
        ActionExpired, ValidationFailed at `signature` and `publicKey`, DependencyFailed if no
        contract accepts the signature and a chain that may does not answer, or if screening does
        not answer, ScreeningRefused if that does not clear the address, ResourceConflict if the
        address is verified for another account or the account has too many wallets, and
        StorageLimitReached.
        """
        authority = require_room(authority)
        self._committer.replay(authority, idempotency_key)
        proof = self._check_answer(authority, account_id, challenge_id, signature, public_key)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Wallet]:
            account = _require_active(tx.get(Account, account_id, for_update=True))
            challenge = _lock_usable_challenge(tx, challenge_id, account_id, now)
            if isinstance(proof, PaymentsError):
                raise proof
            proven = Wallet(
                id=id_sequence.issue("wallet"),
                account_id=account_id,
                chain_type=challenge.chain_type,
                address=challenge.address,
                label=label,
                verified_at_ms=now,
                key_proof=proof.by_key,
                contract_chains=proof.chain_ids,
                created_at_ms=now,
            )
            link = decide_link(tx, authority, account, proven)
            used = evolve(challenge, used_at_ms=now)
            return evolve(link, replaces=(*link.replaces, used))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def add_by_message(
        self,
        authority: Authority,
        account_id: str,
        wallet: MessageSignature,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> AccountDetails:
        """Link the wallet that signed a text of the caller's own; it is verified from now on.

        A wallet's signature of a text works once in the environment, for any account. Raises
        NotFound, AccountSuspended, ActionAlreadyUsed, ValidationFailed, DependencyFailed,
        ScreeningRefused, ResourceConflict and StorageLimitReached as `add` does.
        """
        authority = require_room(authority)
        self._committer.replay(authority, idempotency_key)
        try:
            address = self._networks.normalize_wallet_address(wallet.chain_type, wallet.address)
        except AddressError as error:
            raise ValidationFailed.at("address", str(error)) from None
        wallet = evolve(wallet, address=address)
        used_id = wallet.message_id

        def load(snapshot: Snapshot) -> tuple[AccountDetails, bool]:
            account = snapshot.get(Account, account_id)
            if account is None:
                raise NotFound("account")
            is_used = snapshot.get(SignedMessage, used_id) is not None
            return load_details(snapshot, account), is_used

        details, is_used = self._storage.read(authority.partition, load)
        may_ask = details.account.status == "active" and not is_used
        proof = self._check_signature(authority, wallet.signed_text, None, may_ask=may_ask)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[AccountDetails]:
            account = _require_active(tx.get(Account, account_id, for_update=True))
            if tx.get(SignedMessage, used_id, for_update=True) is not None:
                raise ActionAlreadyUsed("message")
            if isinstance(proof, PaymentsError):
                raise proof
            used = SignedMessage(id=used_id, account_id=account_id, used_at_ms=now)
            proven = Wallet(
                id=id_sequence.issue("wallet"),
                account_id=account_id,
                chain_type=wallet.chain_type,
                address=wallet.address,
                ordinal=account.wallet_count,
                verified_at_ms=now,
                key_proof=proof.by_key,
                contract_chains=proof.chain_ids,
                created_at_ms=now,
            )
            link = decide_link(tx, authority, account, proven)
            rows = {one.id: one for one in details.wallets} | {link.result.id: link.result}
            linked = AccountDetails(account, details.vaults, tuple(rows.values()))
            # A taken id, of the message or of the address's proof, is found when this runs again.
            return Decision(linked, inserts=(used,)).merge(link)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def list(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Wallet]:
        """The account's wallets, oldest first. Raises NotFound."""
        return list_for_account(
            self._storage, authority, account_id, Wallet, after=after, limit=limit
        )

    @once_per_key
    def remove(
        self,
        authority: Authority,
        account_id: str,
        wallet_id: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Wallet:
        """Unlink a wallet, in any account status; its address becomes free. Raises NotFound."""
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Wallet]:
            account = tx.get(Account, account_id, for_update=True)
            if account is None:
                raise NotFound("account")
            return decide_unlink(tx, authority, account, wallet_id, now=now)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _require_evm(self, chain_id: int) -> None:
        """Raise UnsupportedChain."""
        chain = self._chains.get(chain_id)
        if chain is None or chain.chain_type != "evm":
            raise UnsupportedChain(chain_id)

    def _check_answer(
        self,
        authority: Authority,
        account_id: str,
        challenge_id: str,
        signature: str,
        public_key: str | None,
    ) -> _Proof | PaymentsError:
        """What the signature proves, or its faults, before any lock: a challenge never changes.

        Chains are asked only for a challenge that can still be answered. Raises NotFound, so that
        nothing is ever decided without having looked.
        """
        challenge = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(WalletChallenge, challenge_id)
        )
        if challenge is None:
            raise NotFound("wallet challenge")
        signed = SignedText(
            chain_type=challenge.chain_type,
            address=challenge.address,
            text=challenge.message,
            nonce=challenge.nonce,
            signature=signature,
            public_key=public_key,
        )
        may_ask = _may_answer(challenge, account_id, self._clock.now())
        return self._check_signature(authority, signed, challenge.chain_id, may_ask=may_ask)

    def _check_signature(
        self, authority: Authority, signed: SignedText, chain_id: int | None, *, may_ask: bool
    ) -> _Proof | PaymentsError:
        """What a signature proves, or its faults; chains are asked of contracts if that `may_ask`.

        A contract is asked on `chain_id` alone if it is given.
        """
        faults = find_signature_faults(signed)
        if not faults:
            return self._screen(authority, signed, _Proof(by_key=True), may_ask=may_ask)
        claim = contract_claim(signed)
        if claim is not None and may_ask:
            try:
                accepting = self._contract_wallets.find_accepting_chains(
                    claim, authority.partition, chain_id
                )
            except DependencyFailed as error:
                return error
            if accepting:
                return self._screen(authority, signed, _Proof(chain_ids=accepting), may_ask=may_ask)
            if len(claim.signature) != _KEY_SIGNATURE_BYTES:
                faults = (_SIGNATURE_NOT_ACCEPTED,)
        return ValidationFailed(faults)

    def _screen(
        self, authority: Authority, signed: SignedText, proof: _Proof, *, may_ask: bool
    ) -> _Proof | PaymentsError:
        """The proof, if screening clears the address."""
        if not may_ask:
            return proof
        try:
            self._screener.require_linkable(authority.mode, authority.partition, signed.address)
        except (ScreeningRefused, DependencyFailed) as error:
            return error
        return proof


def _may_answer(challenge: WalletChallenge, account_id: str, now: Instant) -> bool:
    fresh = challenge.used_at_ms is None and now < challenge.expires_at_ms
    return fresh and challenge.account_id == account_id


def _require_active(account: Account | None) -> Account:
    if account is None:
        raise NotFound("account")
    if account.status != "active":
        raise AccountSuspended(account.id, account.status)
    return account


def _lock_usable_challenge(
    tx: Transaction, id: str, account_id: str, now: Instant
) -> WalletChallenge:
    challenge = tx.get(WalletChallenge, id, for_update=True)
    if challenge is None or challenge.account_id != account_id:
        raise NotFound("wallet challenge")
    if challenge.used_at_ms is not None:
        raise ActionAlreadyUsed("challenge")
    if now >= challenge.expires_at_ms:
        raise ActionExpired(challenge.expires_at_ms, "challenge")
    return challenge


def _find_stale_challenges(
    tx: Transaction, account_id: str, now: Instant
) -> tuple[WalletChallenge, ...]:
    """Some of the account's obsolete challenges."""
    page = tx.find(
        WalletChallenge,
        "by_account",
        (account_id,),
        where=(Where("expires_at", "<", now - CHALLENGE_RETENTION_MS),),
        limit=CHALLENGE_PURGE_BATCH,
    )
    found = (tx.get(WalletChallenge, old.id, for_update=True) for old in page.records)
    return tuple(old for old in found if old is not None)
