"""An integrator's controls of a sandbox: funds, blocks, time, failures and events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from payments_core.accounts.record import Account, KycStatus
from payments_core.accounts.verification.operations import Verifications
from payments_core.accounts.verification.record import Verification
from payments_core.amounts import parse_nonnegative_amount, parse_positive_amount
from payments_core.banks.incoming import IncomingRail, IncomingTransfer
from payments_core.banks.simulated.arrivals import ArrivalOutcome
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.chains.port import AddressSpec, Chain, ChainUnavailable, Heads
from payments_core.chains.simulated.failure_records import ArmedFailure, Dependency
from payments_core.chains.simulated.failures import Failures
from payments_core.chains.simulated.reorgs import MAX_REORG_DEPTH
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey, require_request
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.hosted_onramps.simulated.onramp import SimulatedOnramp
from payments_core.hosted_onramps.simulated.records import Outcome
from payments_core.payments.options.offer import Offer
from payments_core.payments.record import Payment
from payments_core.sandbox.bank_deposits import BankDeposits
from payments_core.sandbox.chains import SandboxChain, validate_addresses
from payments_core.sandbox.event_trigger import EventTrigger, TriggeredEvent
from payments_core.sandbox.orders import SandboxOrders
from payments_core.sandbox.payouts import PayoutOutcome, SandboxPayouts
from payments_core.sandbox.results import FaucetCredit, OutsideTransfer, SandboxState
from payments_core.sandbox.runner import SandboxRunner
from payments_core.storage.port import DIRECTORY
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.tenants.record import App

T = TypeVar("T")

MAX_MINED_BLOCKS = 100_000
MAX_SANDBOX_REORG_DEPTH = MAX_REORG_DEPTH


class Sandbox:
    """The controls of one sandbox deployment."""

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, SandboxChain],
        worker: Worker,
        verifications: Verifications,
        remote_calls: RemoteCalls,
        wake: Callable[[int], None] = lambda chain_id: None,
        *,
        testnets: Mapping[int, Chain],
        bank: SimulatedBank | None = None,
        onramp: SimulatedOnramp | None = None,
        funding_bank: SimulatedFundingBank | None = None,
        wake_notices: Callable[[], None] = lambda: None,
    ) -> None:
        """`chains` are those that it controls; `testnets` are beside them or instead of them.
        `wake` is called with a chain's id when something has happened on that chain, and
        `wake_notices` when something has happened at the simulated `funding_bank`. The banks and
        the on-ramp are None if real ones are used."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._chains = chains
        self._testnets = testnets
        self._remote_calls = remote_calls
        self._clock = ports.clock
        self._networks = ports.networks
        self._payouts = SandboxPayouts(ports, bank)
        self._orders = SandboxOrders(ports, onramp)
        self._wake = wake
        self._deposits = BankDeposits(ports, funding_bank, wake_notices)
        self._verifications = verifications
        self.runner: SandboxRunner = SandboxRunner(ports.clock, chains, worker, bool(testnets))
        self._failures = Failures(ports)
        self._events = EventTrigger(ports)

    def read(self, authority: Authority) -> SandboxState:
        """The clock, the chains and the ordered failures. Raises NotFound, DependencyFailed."""
        self._require_sandbox(authority)
        with _translate_chain_errors():
            heads = {chain_id: chain.peek_heads() for chain_id, chain in self._chains.items()}
            for chain_id, testnet in self._testnets.items():
                with self._remote_calls.acquire("chain", authority.partition):
                    heads[chain_id] = testnet.heads()
        return SandboxState(
            now=self._clock.now(),
            real_now=self._clock.real_now(),
            heads=heads,
            failures=self._failures.list_armed(),
        )

    @once_per_key
    def fund(
        self,
        authority: Authority,
        account_id: str,
        chain_id: int,
        asset_symbol: str,
        amount: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> FaucetCredit:
        """Credit an account's vault; final when it returns.

        The transaction is named after the idempotency key: a retry after a crash in between finds
        it on the chain.

        Raises NotFound, UnsupportedChain, UnsupportedAsset, ValidationFailed, AmountOutOfRange,
        CapabilityNotActive.
        """
        self._require_new_key(authority, idempotency_key)
        account = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Account, account_id)
        )
        if account is None:
            raise NotFound("account")
        asset = self._networks.find_asset(chain_id, asset_symbol)
        chain = self.get_chain(chain_id)
        amount_atomic = parse_positive_amount(amount, asset)
        address = chain.derive(AddressSpec(authority.partition, "vault", account.id))
        with _translate_chain_errors():
            name = self._operation_id("mint", idempotency_key)
            hash = chain.mint(asset.address, address, amount_atomic, name)
        self._wake(chain_id)
        funded = FaucetCredit(
            account.id, chain_id, asset_symbol, amount, amount_atomic, address, hash
        )
        return self._store_result(authority, funded, idempotency_key)

    @once_per_key
    def transfer(
        self,
        authority: Authority,
        chain_id: int,
        asset_symbol: str,
        amount: str,
        *,
        to: str,
        from_: str | None = None,
        reverts: bool = False,
        idempotency_key: IdempotencyKey = None,
    ) -> OutsideTransfer:
        """A transfer by an outside wallet, to any address; zero is allowed.

        The token may be one of the watch list, which counts nowhere. Without `from_` the tokens
        are new. A wallet that lacks them makes a transaction that fails, as `reverts` does. As
        with `fund`, a retry finds the transaction on the chain.

        Raises UnsupportedChain, UnsupportedAsset, ValidationFailed, CapabilityNotActive, and
        AmountOutOfRange, also if the faucet has issued the maximum that a token can carry.
        """
        self._require_new_key(authority, idempotency_key)
        asset = self._networks.find_token(chain_id, asset_symbol)
        chain = self.get_chain(chain_id)
        amount_atomic = parse_nonnegative_amount(amount, asset)
        with _translate_chain_errors():
            recipient, sender = validate_addresses(chain, to, from_)
            hash = chain.transfer(
                asset.address,
                sender,
                recipient,
                amount_atomic,
                self._operation_id("transfer", idempotency_key),
                reverts=reverts,
            )
            seen = chain.peek_transaction(hash)
        self._wake(chain_id)
        done = OutsideTransfer(
            chain_id,
            asset_symbol,
            amount,
            amount_atomic,
            sender or chain.faucet,
            recipient,
            hash,
            seen,
        )
        return self._store_result(authority, done, idempotency_key)

    @once_per_key
    def reorg_chain(
        self,
        authority: Authority,
        chain_id: int,
        depth: int,
        *,
        reinclude: bool = False,
        idempotency_key: IdempotencyKey = None,
    ) -> Heads:
        """Drop a chain's last `depth` blocks with their transactions; others take their place.

        With `reinclude` the transactions come back at once, at other places. With an idempotency
        key it happens once, even if the answer to the first request was lost.

        Raises UnsupportedChain, ValidationFailed, CapabilityNotActive.
        """
        if not 1 <= depth <= MAX_SANDBOX_REORG_DEPTH:
            raise ValidationFailed.at("depth", f"must be 1 to {MAX_SANDBOX_REORG_DEPTH}")
        self._require_new_key(authority, idempotency_key)
        with _translate_chain_errors():
            heads = self.get_chain(chain_id).reorg(
                depth, reinclude, self._operation_id("reorg", idempotency_key)
            )
        self._wake(chain_id)
        return self._store_result(authority, heads, idempotency_key)

    @once_per_key
    def fail_dependency(
        self,
        authority: Authority,
        dependency: Dependency,
        operation: str,
        times: int,
        *,
        chain_id: int | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> ArmedFailure:
        """Let the next `times` uses of a dependency fail; see `failures.OPERATIONS`.

        Raises ValidationFailed, UnsupportedChain, CapabilityNotActive.
        """
        self._require_new_key(authority, idempotency_key)
        if dependency == "chain":
            chosen = self._chains.values() if chain_id is None else (self.get_chain(chain_id),)
            if not chosen or not all(chain.supports_fault_injection for chain in chosen):
                raise CapabilityNotActive("fault injection on a real chain")
        armed = self._failures.arm(dependency, operation, times, chain_id)
        return self._store_result(authority, armed, idempotency_key)

    @once_per_key
    def trigger_event(
        self,
        authority: Authority,
        name: str,
        *,
        account_id: str | None = None,
        payment_id: str | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> TriggeredEvent:
        """Send an event of the catalogue without its cause; no resource changes.

        Raises NotFound, ValidationFailed.
        """
        self._require_sandbox(authority)
        return self._events.trigger(
            authority,
            name,
            account_id=account_id,
            payment_id=payment_id,
            idempotency_key=idempotency_key,
        )

    @once_per_key
    def decide_payout(
        self,
        authority: Authority,
        payment_id: str,
        outcome: PayoutOutcome,
        code: str | None = None,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Payment:
        """Let the bank settle or return a Payment's payout now; see `payouts.py`.

        Raises NotFound, InvalidState, ValidationFailed, ResourceConflict, CapabilityNotActive,
        DependencyFailed.
        """
        self._require_new_key(authority, idempotency_key)
        payment = self._payouts.decide(authority.partition, payment_id, outcome, code)
        return self._store_result(authority, payment, idempotency_key)

    @property
    def sells(self) -> bool:
        """Whether the hosted on-ramp is simulated: the sandbox plays the buyers of no other."""
        return self._orders.is_simulated

    @once_per_key
    def decide_order(
        self,
        authority: Authority,
        option_id: str,
        outcome: Outcome,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Offer:
        """Let the buyer of a hosted on-ramp pay, or not, by the newest offer of an option.

        Raises NotFound, InvalidState if something else was ordered before, CapabilityNotActive if
        the sandbox has another on-ramp.
        """
        self._require_new_key(authority, idempotency_key)
        offer = self._orders.decide(authority.partition, option_id, outcome)
        return self._store_result(authority, offer, idempotency_key)

    @once_per_key
    def deposit_at_bank(
        self,
        authority: Authority,
        onramp_account_id: str,
        amount: str,
        rail: IncomingRail,
        *,
        outcome: ArrivalOutcome = "receive",
        idempotency_key: IdempotencyKey = None,
    ) -> IncomingTransfer:
        """A bank transfer to an on-ramp; it is sent now, and arrives by its rail's calendar.

        `amount` is in dollars, with at most two decimals. Raises NotFound, ValidationFailed,
        InvalidState until the bank has made the number, CapabilityNotActive if the sandbox has
        another bank, and DependencyFailed.
        """
        self._require_new_key(authority, idempotency_key)
        name = self._operation_id("incoming", idempotency_key)
        made = self._deposits.deposit(
            authority.partition, onramp_account_id, amount, rail, outcome, name
        )
        return self._store_result(authority, made, idempotency_key)

    @once_per_key
    def decide_kyc(
        self,
        authority: Authority,
        account_id: str,
        status: KycStatus,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Verification:
        """Bring the account's newest verification to `pending`, `approved` or `rejected`.

        If there is none, or the newest was rejected and another status is requested, a new one
        is made. An equal status is not an error, and changes nothing.

        Raises ValidationFailed, NotFound, InvalidState: an approved verification stays approved.
        """
        self._require_sandbox(authority)
        return self._verifications.simulate_decision(
            authority, account_id, status, idempotency_key=idempotency_key
        )

    def get_chain(self, chain_id: int) -> SandboxChain:
        """The sandbox's own chain. Raises UnsupportedChain, CapabilityNotActive for a testnet."""
        if chain_id in self._testnets:
            name = self._networks.name_network(chain_id)
            raise CapabilityNotActive(f"the sandbox's control of {name}")
        if chain_id not in self._chains:
            raise UnsupportedChain(chain_id)
        return self._chains[chain_id]

    @once_per_key
    def mine_blocks(
        self,
        authority: Authority,
        chain_id: int,
        count: int,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Heads:
        """Add blocks to a chain. Raises UnsupportedChain, ValidationFailed, CapabilityNotActive."""
        if not 1 <= count <= MAX_MINED_BLOCKS:
            raise ValidationFailed.at("count", f"must be 1 to {MAX_MINED_BLOCKS}")
        self._require_new_key(authority, idempotency_key)
        with _translate_chain_errors():
            heads = self.get_chain(chain_id).mine(count)
        self._wake(chain_id)
        return self._store_result(authority, heads, idempotency_key)

    @once_per_key
    def run(self, authority: Authority, *, idempotency_key: IdempotencyKey = None) -> int:
        """Do all work that is due now; returns how many jobs ran."""
        self._require_new_key(authority, idempotency_key)
        return self._store_result(authority, self.runner.run(), idempotency_key)

    @once_per_key
    def advance_clock(
        self, authority: Authority, seconds: int, *, idempotency_key: IdempotencyKey = None
    ) -> tuple[Instant, int]:
        """Move the clock, and run the jobs that fall due on the way, in order, before returning.

        Returns the new instant and how many jobs ran. Raises ValidationFailed,
        CapabilityNotActive if the clock is not the sandbox's, or beside a testnet.
        """
        self._require_new_key(authority, idempotency_key)
        with _translate_chain_errors():
            done = self.runner.advance(seconds)
        return self._store_result(authority, done, idempotency_key)

    def _require_sandbox(self, authority: Authority) -> None:
        if authority.mode != "sandbox":
            raise NotFound("sandbox")
        self.require_single_app()

    def require_single_app(self) -> None:
        """Raise NotFound unless the deployment has only one app: clock and chains are shared."""
        apps = self._storage.read(
            DIRECTORY, lambda snapshot: snapshot.find(App, "by_created", limit=2)
        )
        if len(apps.records) != 1:
            raise NotFound("sandbox")

    def _operation_id(self, what: str, idempotency_key: IdempotencyKey) -> str:
        """The name of a chain operation to be done once, even if the answer is lost."""
        request = require_request(idempotency_key)
        if request is None:
            return self._committer.id_sequence().issue(what)
        period = self._clock.now() // request.retention_ms
        # After its retention the same key is another request.
        return f"{request.id}/{request.fingerprint}/{period}"

    def _require_new_key(self, authority: Authority, idempotency_key: IdempotencyKey) -> None:
        """Refuse a used key before it changes chain or clock, which cannot be undone."""
        self._require_sandbox(authority)
        self._committer.replay(authority, idempotency_key)

    def _store_result(self, authority: Authority, result: T, idempotency_key: IdempotencyKey) -> T:
        """Store the answer of an operation on chain or clock, which no transaction spans.

        After a crash before that, a retry does it again, except for funding.
        """
        if idempotency_key is None:
            return result
        return self._committer.commit(
            authority, lambda tx, id_sequence: Decision(result), idempotent=idempotency_key
        )


@contextmanager
def _translate_chain_errors() -> Iterator[None]:
    """Wraps calls to a chain, whose node may be gone. Raises DependencyFailed."""
    try:
        yield
    except ChainUnavailable as error:
        raise DependencyFailed("chain") from error
