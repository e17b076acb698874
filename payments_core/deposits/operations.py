"""Deposit addresses and deposits: issue, list, look now (contract §5 "Deposit addresses")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Literal

import attrs
from msgspec import UNSET, UnsetType

from payments_core.accounts.queries import list_for_account
from payments_core.accounts.record import Account
from payments_core.addresses import AddressError
from payments_core.brief_repr import brief_repr
from payments_core.chains.gas import follow_operator, require_gas
from payments_core.chains.outbox.record import OutboundTransfer, send_job
from payments_core.chains.port import AddressSpec, Chain, ChainUnavailable
from payments_core.chains.scanner import Scanner
from payments_core.clock import Instant
from payments_core.deposits import lifecycle
from payments_core.deposits.chain_view import observe_deposit
from payments_core.deposits.coin_reports import CoinAtAddress, decide_reports, find_coins
from payments_core.deposits.lifecycle import IncomingTransfer
from payments_core.deposits.queries import (
    load_addresses,
    load_failed_sweeps,
    load_newest_deposits,
    require_addresses,
)
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.deposits.sending_back import decide_return, require_returnable
from payments_core.deposits.sweep import SWEEP, find_left, new_sweep, vault_address
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    AccountSuspended,
    DependencyFailed,
    DestinationNotAllowed,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.field_views import FieldView, instant_view
from payments_core.screening.asking import Screener
from payments_core.screening.judging import pay_out
from payments_core.storage.port import Page, Position, Transaction
from payments_core.storage.reads import Get
from payments_core.tenants.authorization import Authority, require_standard_key
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Address, ChainId, PageLimit

DepositStatus = Literal["detected", "confirmed", "settled", "rejected", "failed"]


@attrs.frozen
class IssuedAddress:
    """An account's deposit address on a chain, and whether it was made just now.

    >>> shop.deposits.issue_address(bob.id, 8453)
    IssuedAddress(address=DepositAddress(id='deposit_address_...', ...), is_new=False)
    """

    __repr__ = brief_repr

    address: DepositAddress
    is_new: bool


@attrs.frozen
class DepositCheck:
    """An account's newest deposits after a look at the chain.

    >>> shop.deposits.check(bob.id)
    DepositCheck(account_id='acct_...', ...)
    """

    __repr__ = brief_repr

    account_id: str
    checked_at_ms: Instant
    deposits: tuple[Deposit, ...]

    checked_at: ClassVar[FieldView[datetime]] = instant_view("checked_at_ms")


@attrs.frozen
class _SweepRetry:
    """A deposit whose sweep failed, and its transfer as the chain shows it: final."""

    deposit: Deposit
    incoming: IncomingTransfer
    vault: str
    amount_atomic: int


class Deposits:
    """Issues deposit addresses, and reads the deposits there."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, Chain],
        scanner: Callable[[str], Scanner],
        calls: RemoteCalls,
        find_own: Callable[[str, Collection[str]], frozenset[str]],
        screener: Screener,
    ) -> None:
        """`scanner` gives the scanner of a mode; `find_own` those of some addresses that are this
        service's."""
        self._find_own = find_own
        self._screener = screener
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._scanner = scanner
        self._calls = calls

    @once_per_key
    def issue_address(
        self,
        authority: Authority,
        account_id: str,
        chain_id: ChainId,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> IssuedAddress:
        """The account's deposit address on a chain: the same at every call.

        A suspended or closed account gets no new address; it keeps those that it has. Raises
        NotFound, UnsupportedChain, AccountSuspended.
        """
        now = self._clock.now()
        # Within the transaction a stale read might miss it, and refuse an issued address.
        known = self._storage.read(
            authority.partition, lambda snapshot: load_addresses(snapshot, account_id)
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[IssuedAddress]:
            account = lock_shared(tx, Account, account_id)
            if account is None:
                raise NotFound("account")
            chain = self._chains.get(chain_id)
            if chain is None:
                raise UnsupportedChain(chain_id)
            # An address made meanwhile may still be missed: its unique key then restarts this.
            rows = (*known, *load_addresses(tx, account_id))
            present = {row.chain_id: row for row in rows}
            if chain_id in present:
                return Decision(IssuedAddress(present[chain_id], is_new=False))
            if account.status != "active":
                raise AccountSuspended(account.id, account.status)
            spec = AddressSpec(authority.partition, "deposit", account_id)
            issued = DepositAddress(
                id=id_sequence.issue("deposit_address"),
                account_id=account_id,
                chain_id=chain_id,
                chain_type=chain.chain_type,
                address=chain.derive(spec),
                created_at_ms=now,
            )
            return Decision(IssuedAddress(issued, is_new=True), inserts=(issued,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def list_addresses(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[DepositAddress]:
        """The account's deposit addresses, oldest first. Raises NotFound."""
        return list_for_account(
            self._storage, authority, account_id, DepositAddress, after=after, limit=limit
        )

    def list_deposits(
        self,
        authority: Authority,
        account_id: str,
        *,
        status: DepositStatus | None = None,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Deposit]:
        """The account's deposits, newest first, all or those with a status. Raises NotFound."""
        index = "by_account" if status is None else "by_status"
        key = () if status is None else (status,)
        return list_for_account(
            self._storage,
            authority,
            account_id,
            Deposit,
            index=index,
            key=key,
            after=after,
            limit=limit,
        )

    @once_per_key
    def check(
        self,
        authority: Authority,
        account_id: str,
        chain_id: ChainId | UnsetType = UNSET,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> DepositCheck:
        """Scan for the account's deposits now, on one chain or on all chains.

        Deposits found are `detected` when this returns. Failed sweeps are sent again, and native
        coin at an address is made visible: it is a rejected deposit once that is final. Raises
        ValidationFailed (also for None, which may be a lost value), NotFound, UnsupportedChain, and
        DependencyFailed if a chain does not answer; deposits found on other chains stay found.
        """
        self._committer.replay(authority, idempotency_key)
        addresses = self._storage.read(
            authority.partition, lambda snapshot: require_addresses(snapshot, account_id)
        )
        if chain_id is not UNSET and chain_id not in self._chains:
            raise UnsupportedChain(chain_id)
        asked = sorted(self._chains) if chain_id is UNSET else [chain_id]
        self._scan_chains(authority, addresses, asked)
        coins = self._find_coins(authority.partition, addresses, asked)
        retries = self._find_retries(authority.partition, account_id, asked)
        now = self._clock.now()
        shown = self._storage.read(
            authority.partition, lambda snapshot: load_newest_deposits(snapshot, account_id)
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[DepositCheck]:
            if lock_shared(tx, Account, account_id) is None:
                raise NotFound("account")
            again: Decision[None] = Decision(None)
            retried: dict[str, Deposit] = {}
            for one in retries:
                current = tx.get(Deposit, one.deposit.id, for_update=True)
                if current is not None and current.version == one.deposit.version:
                    sent = _retry_sweep(authority.partition, one, id_sequence.issue("out"), now)
                    again = again.merge(sent)
                    retried[current.id] = sent.result
            after = tuple(retried.get(deposit.id, deposit) for deposit in shown)
            reports = decide_reports(tx, id_sequence, authority.partition, coins, now=now)
            return Decision(DepositCheck(account_id, now, after)).merge(again, reports)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def send_back(
        self,
        authority: Authority,
        account_id: str,
        deposit_id: str,
        destination: Address | UnsetType = UNSET,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Deposit:
        """Send a rejected deposit back, on its own chain: to its sender, or to a destination.

        An address that is not the sender needs a standard key. Raises NotFound, UnsupportedChain,
        InvalidState (it is not rejected), ResourceConflict (it is on its way back, or is back),
        ValidationFailed (also if no sender is known, and for None, which may be a lost value),
        DestinationNotAllowed, ScreeningRefused, InsufficientPermissions, DependencyFailed.
        """
        self._committer.replay(authority, idempotency_key)
        account, known = self._storage.fetch(
            authority.partition, Get(Account, account_id), Get(Deposit, deposit_id)
        )
        if account is None:
            raise NotFound("account")
        if known is None or known.account_id != account_id:
            raise NotFound("deposit")
        chain = self._chains.get(known.chain_id)
        if chain is None:
            raise UnsupportedChain(known.chain_id)
        vault = vault_address(chain, authority.partition, account_id)
        named = self._parse_destination(authority.partition, chain, destination, vault)
        payable = self._find_payable(authority.partition, chain, known.sender)
        require_returnable(known)
        if named is not None:
            concern = pay_out(known.chain_id, named)
            self._screener.require_unblocked(authority.mode, authority.partition, known.id, concern)
        operator = follow_operator(chain, authority.partition)
        left = self._find_left(authority.partition, chain, known)
        require_gas(chain, operator, "pay")

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Deposit]:
            deposit = tx.get(Deposit, deposit_id, for_update=True)
            assert deposit is not None
            require_returnable(deposit)
            to = named or deposit.sender
            if named is None and to not in payable:
                raise ValidationFailed.at("destination", "is required: no sender is known")
            if to != deposit.sender:
                require_standard_key(authority.key)
            now = self._clock.now()
            return decide_return(
                authority.partition, deposit, id_sequence, to, vault, left, now=now
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _parse_destination(
        self, partition: str, chain: Chain, text: str | UnsetType, vault: str
    ) -> str | None:
        """The address that a caller names, in its canonical form. Raises as `send_back`."""
        if text is UNSET:
            return None
        try:
            address = self._networks.normalize_wallet_address(chain.chain_type, text)
        except AddressError as error:
            raise ValidationFailed.at("destination", str(error)) from None
        if address == vault:  # which can pay this token only by such a return
            raise ValidationFailed.at("destination", "must not be the account's own vault")
        if self._find_own(partition, [address]):
            raise DestinationNotAllowed("it is an address of this service")
        return address

    def _find_payable(self, partition: str, chain: Chain, sender: str) -> frozenset[str]:
        """The sender, if somebody holds its address; a chain may name anybody."""
        is_held = self._networks.is_wallet_address(chain.chain_type, sender)
        return frozenset((sender,) if is_held else ()) - self._find_own(partition, [sender])

    def _find_left(self, partition: str, chain: Chain, deposit: Deposit) -> int:
        """How much of a rejected deposit is at its address: the rest is in the vault.

        Raises DependencyFailed.
        """
        if deposit.contract.kind != "deposit":
            return deposit.amount_atomic
        try:
            with self._calls.acquire("chain", partition):
                seen = observe_deposit(chain, deposit, self._networks)
                if seen.incoming is None or not seen.is_final:
                    raise ChainUnavailable("it does not show a deposit that was final")
                return find_left(chain, deposit, seen.final_height)
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error

    def _scan_chains(
        self, authority: Authority, addresses: Sequence[DepositAddress], chain_ids: Sequence[int]
    ) -> None:
        """Have every one of these chains scanned for the addresses of its type."""
        scanner = self._scanner(authority.mode)
        silent: ChainUnavailable | None = None
        for chain_id in chain_ids:
            chain_type = self._chains[chain_id].chain_type
            recipients = {row.address for row in addresses if row.chain_type == chain_type}
            try:
                if recipients:
                    with self._calls.acquire("chain", authority.partition):
                        scanner.scan_addresses(chain_id, sorted(recipients))
            except ChainUnavailable as error:
                silent = error
        if silent is not None:
            raise DependencyFailed("chain") from silent

    def _find_coins(
        self, partition: str, addresses: Sequence[DepositAddress], chain_ids: Sequence[int]
    ) -> Sequence[CoinAtAddress]:
        """The addresses of these chains with native coin without a log. Raises DependencyFailed."""
        asked = [row for row in addresses if row.chain_id in chain_ids]
        try:
            with self._calls.acquire("chain", partition):
                return find_coins(self._chains, self._networks, partition, asked)
        except ChainUnavailable as error:
            raise DependencyFailed("chain") from error

    def _find_retries(
        self, partition: str, account_id: str, chain_ids: Sequence[int]
    ) -> tuple[_SweepRetry, ...]:
        """The account's failed sweeps on these chains whose deposits are still there, and final."""
        failed = self._storage.read(
            partition, lambda snapshot: load_failed_sweeps(snapshot, account_id, chain_ids)
        )
        retries: list[_SweepRetry] = []
        for deposit in failed:
            chain = self._chains[deposit.chain_id]
            try:
                with self._calls.acquire("chain", partition):
                    seen = observe_deposit(chain, deposit, self._networks)
                    if seen.incoming is None or not seen.is_final:
                        continue
                    amount = _find_sweepable(chain, deposit, seen.final_height)
            except ChainUnavailable as error:
                raise DependencyFailed("chain") from error
            vault = vault_address(chain, partition, account_id)
            retries.append(_SweepRetry(deposit, seen.incoming, vault, amount))
        return tuple(retries)


def _find_sweepable(chain: Chain, deposit: Deposit, height: int) -> int:
    """How much a sweep can bring to the vault of a deposit whose sweep failed.

    Raises ChainUnavailable.
    """
    if deposit.contract.kind != "deposit":
        return deposit.amount_atomic
    return find_left(chain, deposit, height) or deposit.amount_atomic


def _retry_sweep(partition: str, retry: _SweepRetry, id: str, now: Instant) -> Decision[Deposit]:
    """Another sweep of the same deposit: the failed one is final, and moved nothing."""
    deposit = lifecycle.with_location(retry.deposit, retry.incoming)
    outgoing: OutboundTransfer = new_sweep(deposit, id, retry.vault, retry.amount_atomic, now=now)
    job = send_job(SWEEP, partition, outgoing, now)
    again = lifecycle.retry_sweep(deposit, id, now=now)
    return again.as_decision(again.record).merge(Decision(None, inserts=(outgoing,), jobs=(job,)))
