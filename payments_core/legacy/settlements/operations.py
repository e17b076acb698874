"""Settle a quote from its payer's vault (interface "settle", contract §10).

The payer's wallet signs quote, nonce and deadline. The signature replaces a client token
and an action: it offers the vault for the quote's Payment, and authorizes the transfer, by the same
steps as v2. One transaction stores it all, with a record that the quote and the nonce are used.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.erc1271 import ContractSignatureChecker
from payments_core.accounts.record import MAX_WALLETS, Account, Wallet
from payments_core.accounts.vaults.of_account import find_vaults_by_chain
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.record import Vault
from payments_core.accounts.vaults.reservations import BalanceReading, retry_on_stale_balance
from payments_core.accounts.wallet_signatures import ContractClaim
from payments_core.chains.port import Chain
from payments_core.chains.signatures import (
    SignatureError,
    parse_contract_signature,
    recover_signer,
)
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    ActionAlreadyUsed,
    CapabilityNotActive,
    NotFound,
    PaymentsError,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.legacy.settlements.record import QuoteSettlement
from payments_core.legacy.settlements.request import (
    SettlementRequest,
    build_digest,
    find_form_faults,
    require_before_deadline,
)
from payments_core.payments.details import lock_payment
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.lifecycle import require_payable
from payments_core.payments.paying.authorization import authorize_option
from payments_core.payments.paying.vault_options import offer_vault, require_active
from payments_core.payments.record import Payment
from payments_core.quotes.record import Quote
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key

NOT_THE_PAYERS = "is not a signature of this settlement by a verified wallet of the quote's payer"


@attrs.frozen
class _Case:
    """A quote of an account, with the vault that pays it and the wallets that may sign."""

    quote: Quote
    payment: Payment
    vaults: Mapping[int, Vault]
    wallets: tuple[Wallet, ...]

    @property
    def vault(self) -> Vault:
        return self.vaults[self.quote.source_chain_id]


class Settlements:
    """Pays quotes from the vaults of their payers, who sign them."""

    def __init__(
        self, ports: Ports, chains: Mapping[int, Chain], calls: RemoteCalls, vaults: Vaults
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._vaults = vaults
        self._contract_wallets = ContractSignatureChecker(ports, chains, calls)

    @once_per_key
    def settle(
        self,
        authority: Authority,
        request: SettlementRequest,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> FundingOperation:
        """The authorization of the transfer from the payer's vault; the worker sends it.

        The signer is a verified wallet of the account that the quote names as its payer. Quote and
        nonce work once. Raises ValidationFailed, NotFound, ActionExpired, ActionAlreadyUsed,
        CapabilityNotActive for a quote that names no account, PaymentExpired, InvalidState,
        OptionLocked, PaymentOptionLimitReached, UnsupportedChain, AccountSuspended,
        PolicyInactive, PolicyDenied, InsufficientBalance, DependencyFailed.
        """
        if faults := find_form_faults(request):
            raise ValidationFailed(tuple(faults))

        def attempt() -> FundingOperation:
            try:
                case = self._load(authority, request)
                wallet = self._find_signer(authority.partition, case, request)
                reading = self._vaults.read_balance_to_spend(
                    authority.partition, case.vault, case.payment.asset, "fund"
                )
            except PaymentsError:
                # a retry finds its own quote used: it still gets the answer
                self._committer.replay(authority, idempotency_key)
                raise
            return self._committer.commit(
                authority,
                lambda tx, id_sequence: self._decide(
                    tx, id_sequence, authority, request, case, wallet, reading
                ),
                idempotent=idempotency_key,
            )

        return retry_on_stale_balance(attempt)

    def _load(self, authority: Authority, request: SettlementRequest) -> _Case:
        """The data to judge a signature. Cheap checks are made here."""
        now = self._clock.now()

        def load(snapshot: Snapshot) -> _Case:
            quote = snapshot.get(Quote, request.payload.quote_id)
            payment = snapshot.get(Payment, quote.payment_id) if quote else None
            if quote is None or payment is None:
                raise NotFound("quote")
            require_before_deadline(request.payload, now=now)
            if snapshot.get(QuoteSettlement, quote.id) is not None:
                raise ActionAlreadyUsed("quote")
            payer_id = quote.payer_account_id
            if payer_id is None:
                raise CapabilityNotActive("Settling a quote without the payer's userId")
            require_payable(payment, now=now)
            require_active(snapshot.get(Account, payer_id))
            vaults = find_vaults_by_chain(snapshot, payer_id)
            if quote.source_chain_id not in vaults:
                raise UnsupportedChain(quote.source_chain_id, "has no vault of this account")
            wallets = snapshot.find(Wallet, "by_account", (payer_id,), limit=MAX_WALLETS).records
            proven = (one for one in wallets if _may_sign(one, quote.source_chain_id))
            return _Case(quote, payment, vaults, tuple(proven))

        return self._storage.read(authority.partition, load)

    def _find_signer(self, partition: str, case: _Case, request: SettlementRequest) -> Wallet:
        """The payer's wallet that signed. It asks the chain only if no key matches."""
        digest = build_digest(request, case.quote.source_chain_id, case.vault.address)
        try:
            signer = recover_signer(digest, request.signature)
        except SignatureError as error:
            signer, fault = None, str(error)
        else:
            fault = NOT_THE_PAYERS
        for wallet in case.wallets:
            if wallet.address == signer:
                return wallet
        contract = self._find_contract(partition, case, digest, request.signature)
        if contract is None:
            raise ValidationFailed.at("signature", fault)
        return contract

    def _find_contract(
        self, partition: str, case: _Case, digest: bytes, signature: str
    ) -> Wallet | None:
        """The payer's contract wallet that accepts the signature on the quote's chain, for which it
        is verified (`erc1271.py`). Raises DependencyFailed."""
        raw = parse_contract_signature(signature)
        if raw is None:
            return None
        chain_id = case.quote.source_chain_id
        wallets = (one for one in case.wallets if one.may_sign_as_contract_on(chain_id))
        by_address = {wallet.address: wallet for wallet in wallets}
        claims = (ContractClaim(address, digest, raw) for address in by_address)
        accepted = self._contract_wallets.find_accepted(chain_id, claims, partition)
        return by_address[accepted.address] if accepted is not None else None

    def _decide(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        authority: Authority,
        request: SettlementRequest,
        case: _Case,
        wallet: Wallet,
        reading: BalanceReading,
    ) -> Decision[FundingOperation]:
        now, payload = self._clock.now(), request.payload
        payment = lock_payment(tx, case.payment.id)
        require_before_deadline(payload, now=now)
        if tx.get(QuoteSettlement, case.quote.id, for_update=True) is not None:
            raise ActionAlreadyUsed("quote")
        offer = offer_vault(tx, id_sequence, payment, wallet.account_id, case.vaults, now=now)
        signing = lock_shared(tx, Wallet, wallet.id)
        if signing is None or not _may_sign(signing, case.quote.source_chain_id):  # unlinked since
            raise ValidationFailed.at("signature", NOT_THE_PAYERS)
        authorized = authorize_option(
            tx,
            id_sequence,
            authority.partition,
            offer.payment,
            offer.option,
            evolve(offer.operation, settles_quote=case.quote.id),
            reading,
            None,
            now=now,
        )
        settlement = QuoteSettlement(
            id=case.quote.id,
            account_id=wallet.account_id,
            nonce=payload.nonce,
            deadline=payload.deadline,
            wallet_id=wallet.id,
            signer=wallet.address,
            signature=request.signature,
            payment_id=payment.id,
            operation_id=offer.operation.id,
            created_at_ms=now,
        )
        assert authorized.result.operation is not None
        return Decision(
            authorized.result.operation,
            inserts=(settlement,),
            # The Payment's lock excludes a second settlement of the quote. A taken id is another
            # record's, such as a vault's first balance: the decision runs again.
            refusals={"nonce": ActionAlreadyUsed("nonce")},
        ).merge(offer.superseded, authorized)


def _may_sign(wallet: Wallet, chain_id: int) -> bool:
    """Whether the payer has proven to control this wallet on the chain that its vault pays on."""
    return wallet.chain_type == "evm" and wallet.is_verified_on(chain_id)
