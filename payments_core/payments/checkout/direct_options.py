"""A payer's options without an account: create, read, select, refresh, submit (contract §6).

All of them are direct so far: the payer sends a transfer from any wallet straight to the escrow.
Nothing here moves a Payment, nor an option's status; `receipts/direct.py` does, out of receipts.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.addresses import AddressError, canonical
from payments_core.assets import CHAINS, chain_entry
from payments_core.chains.hashes import HashError, canonical_hash
from payments_core.chains.outbox.record import our_own
from payments_core.chains.port import Chain
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import Idempotent
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import (
    CapabilityNotActive,
    InsufficientPermissions,
    InvalidState,
    NotFound,
    OptionLocked,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payment_settings.record import Method
from payments_core.payments.details import (
    DirectDetails,
    coming_of,
    details_of,
    locked_direct_option,
    locked_payment,
    receipts_of,
)
from payments_core.payments.lifecycle import check_payable
from payments_core.payments.machine import OPEN
from payments_core.payments.options import direct
from payments_core.payments.options.operations import check_room, same_asset
from payments_core.payments.options.record import DirectOption
from payments_core.payments.options.selecting import check_submissions, superseded
from payments_core.payments.receipts.direct import HINT_LIVES_MS
from payments_core.payments.receipts.discovery import watched
from payments_core.payments.receipts.record import Evidence, evidence_id
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority

PUBLIC_METHODS: tuple[Method, ...] = ("direct", "routing", "hosted_onramp")
"""The ways to pay for which a Payment's secret is enough."""

ACTIVE: tuple[Method, ...] = ("direct",)
"""Those of them that this release has."""


@attrs.frozen
class Offered:
    """A way to pay one Payment, and whether it can be taken here."""

    payment: Payment
    method: Method
    available: bool


class Paying:
    """What a payer does with the options of one Payment."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._chains = chains

    def methods(self, authority: Authority, payment_id: str) -> tuple[Offered, ...]:
        """The ways to pay that the Payment allows without an account. Raises NotFound."""
        authority.require_payment(payment_id)
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, payment_id)
        )
        if payment is None:
            raise NotFound("payment")
        return tuple(
            Offered(payment, method, method in ACTIVE)
            for method in PUBLIC_METHODS
            if method in payment.allowed_methods
        )

    def create(
        self,
        authority: Authority,
        payment_id: str,
        *,
        method: Method,
        chain_id: int | None = None,
        asset_symbol: str | None = None,
        payer_address: str | None = None,
        idempotent: Idempotent | None = None,
    ) -> DirectDetails:
        """A way to pay what remains, not selected yet.

        Raises InsufficientPermissions for a vault, NotFound, UnsupportedChain, UnsupportedAsset,
        ValidationFailed, PaymentExpired, CapabilityNotActive, OptionLocked, InvalidState,
        PaymentOptionLimitReached.
        """
        authority.require_payment(payment_id)
        if method == "vault":
            raise InsufficientPermissions(("a client token",))
        coming = self._storage.read(
            authority.partition, lambda snapshot: coming_of(receipts_of(snapshot, payment_id))
        )
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[DirectDetails]:
            payment = locked_payment(tx, payment_id)
            asset = same_asset(payment, chain_id, asset_symbol)
            payer = _wallet(payer_address, asset.chain_id)
            check_payable(payment, now=now)
            if method not in payment.allowed_methods or method not in ACTIVE:
                raise CapabilityNotActive(method)
            _check_free(tx, payment, "create option")
            check_room(payment)
            option = direct.offer(payment, payer, draw, now)
            ids = (*payment.direct_option_ids, option.id)
            offered = attrs.evolve(payment, direct_option_ids=ids, updated_at=now)
            details = DirectDetails(offered, option, coming=coming)
            return Decision(details, inserts=(option,), replaces=(offered,))

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def get(self, authority: Authority, payment_id: str, option_id: str) -> DirectDetails:
        """An option of the payer's Payment. Raises NotFound."""
        authority.require_payment(payment_id)

        def look(snapshot: Snapshot) -> DirectDetails:
            payment = snapshot.get(Payment, payment_id)
            if payment is None:
                raise NotFound("payment")
            options = details_of(snapshot, payment).direct_options
            mine = [item for item in options if item.option.id == option_id]
            if not mine:
                raise NotFound("payment option")
            return mine[0]

        return self._storage.read(authority.partition, look)

    def select(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        idempotent: Idempotent | None = None,
    ) -> DirectDetails:
        """The option that the payer means to pay by; the one before is superseded.

        Selecting the selected one changes nothing. Raises NotFound, PaymentExpired, InvalidState,
        OptionLocked, OptionSuperseded, OptionExpired.
        """
        known = self.get(authority, payment_id, option_id)
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[DirectDetails]:
            payment, option = _locked(tx, payment_id, option_id)
            check_payable(payment, now=now)
            if payment.selected_option_id == option.id:
                return Decision(DirectDetails(payment, option, known.receipts, known.coming))
            _check_free(tx, payment, "select option")
            selected = direct.select(option, now=now)
            before = superseded(tx, payment, now)
            selecting = attrs.evolve(payment, selected_option_id=option.id, updated_at=now)
            details = DirectDetails(selecting, selected.record, known.receipts, known.coming)
            chosen = Decision(details, replaces=(selecting,))
            return chosen.joined(selected.as_decision(), before)

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def refresh(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        idempotent: Idempotent | None = None,
    ) -> DirectDetails:
        """The option for what remains of the Payment by now.

        Raises NotFound, PaymentExpired, InvalidState, OptionSuperseded, OptionExpired.
        """
        known = self.get(authority, payment_id, option_id)
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[DirectDetails]:
            payment, option = _locked(tx, payment_id, option_id)
            check_payable(payment, now=now)
            if payment.status not in OPEN:
                raise InvalidState("payment", payment.status, "refresh option")
            refreshed = direct.refresh(option, payment, now=now)
            details = DirectDetails(payment, refreshed.record, known.receipts, known.coming)
            return refreshed.as_decision(details)

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def submit(
        self,
        authority: Authority,
        payment_id: str,
        option_id: str,
        *,
        chain_id: int,
        transaction_hash: str,
        idempotent: Idempotent | None = None,
    ) -> DirectDetails:
        """Have a transaction looked at that the payer says to have sent: a hint and nothing more.

        Raises NotFound, UnsupportedChain, ValidationFailed, PaymentExpired, InvalidState, and
        Conflicting where the option names as many transactions as it may.
        """
        known = self.get(authority, payment_id, option_id)
        if chain_id not in self._chains:
            raise UnsupportedChain(chain_id)
        hash = _hash(chain_id, transaction_hash)
        is_ours = bool(our_own(self._storage, [hash]))  # it is followed by the job that sent it
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[DirectDetails]:
            payment, option = _locked(tx, payment_id, option_id)
            check_payable(payment, now=now)
            submitted = direct.submit(option, chain_id, hash, now=now)
            details = DirectDetails(payment, submitted.record, known.receipts, known.coming)
            if submitted.record == option:
                return Decision(details)
            looked = submitted.as_decision(details)
            return looked if is_ours else looked.joined(_hint(tx, payment, chain_id, hash, now))

        return self._ledger.commit(authority, decide, idempotent=idempotent)


def _locked(tx: Transaction, payment_id: str, option_id: str) -> tuple[Payment, DirectOption]:
    """The Payment and an option of its own that is known to exist."""
    payment = locked_payment(tx, payment_id)
    if option_id not in payment.direct_option_ids:
        raise NotFound("payment option")
    return payment, locked_direct_option(tx, option_id)


def _check_free(tx: Transaction, payment: Payment, action: str) -> None:
    """Raise OptionLocked where funds are on their way already, InvalidState where none may come."""
    if payment.authorized:
        raise OptionLocked(None)  # a vault's option is its payer's alone
    check_submissions(tx, payment)
    if payment.status not in OPEN:
        raise InvalidState("payment", payment.status, action)


def _hint(
    tx: Transaction, payment: Payment, chain_id: int, hash: str, now: Instant
) -> Decision[None]:
    """Look at it at once, unless somebody has found it before: then it is followed, or is over."""
    if tx.get(Evidence, evidence_id(payment.id, chain_id, hash), for_update=True) is not None:
        return Decision(None)
    until = now + HINT_LIVES_MS
    return watched(tx, payment.id, chain_id, hash, now=now, due_at=now, hinted_until=until)


def _wallet(address: str | None, chain_id: int) -> str | None:
    if address is None:
        return None
    try:
        return canonical(chain_entry(chain_id).chain_type, address)
    except AddressError as error:
        raise ValidationFailed.at("payerAddress", str(error)) from None


def _hash(chain_id: int, text: str) -> str:
    try:
        return canonical_hash(CHAINS[chain_id].chain_type, text)
    except HashError as error:
        raise ValidationFailed.at("transactionHash", str(error)) from None
