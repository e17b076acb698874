"""A service on a storage of your choice with a clock that only tests move, and short ways to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import count
from typing import Any

import attrs
from msgspec import UNSET

from payments_core.accounts.operations import NewAccount
from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import Policy, VaultBalance, balance_id
from payments_core.chains.outbox.record import sender_lane
from payments_core.chains.port import AddressSpec, Chain, Contract, TransferIntent
from payments_core.chains.scanner import ScanCursor
from payments_core.chains.simulated.records import SimulatedSender
from payments_core.clock import SECOND, FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.events import Event
from payments_core.engine.idempotency.record import AlreadyResponded, IdempotentRequest, Response
from payments_core.payments.destinations import ToAccount
from payments_core.payments.details import OptionDetails, PaymentDetails
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.operations import NewPayment
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunds.record import Refund
from payments_core.public_url import LOCAL_URL
from payments_core.resources import Resources
from payments_core.sandbox.chains import SandboxChain
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.jobs import Job
from payments_core.storage.port import (
    DIRECTORY,
    SIMULATED,
    CommitUnknown,
    Storage,
    Transaction,
    VersionConflict,
    Where,
)
from payments_core.storage.records import R
from payments_core.tenants.authorization import Authority, Requirement
from payments_core.tenants.record import Environment, Key
from tests.shipped import CHAINS, asset_of

BASE = 8453
USDC = asset_of(BASE, "USDC")
RING = KeyRing.generate()
REACHED = Settings(public_url=LOCAL_URL)
PAYER_PERMISSIONS = ("account:read", "payments:read", "payments:write", "vault_payments:write")
STRANGER = "0x00000000000000000000000000000000000E0E0E"
WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
OTHER_WALLET = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


class NoTransport:
    """Nothing is delivered: there are no endpoints in these tests."""

    def send(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a webhook was sent")

    def close(self) -> None:
        """Nothing is open."""


class World:
    """One app with a merchant and a payer in its sandbox."""

    def __init__(
        self,
        storage: Storage,
        sandbox_chains: Mapping[int, SandboxChain] | None = None,
        system: FixedClock | None = None,
    ) -> None:
        self.storage = storage
        self._sandbox_chains = sandbox_chains
        self.system = system or FixedClock()
        self.clock = SandboxClock(storage, self.system)
        self._names = count()
        self.service = self.restarted()

    def restarted(
        self,
        storage: Storage | None = None,
        chains: Mapping[int, Chain] | None = None,
        settings: Settings = REACHED,
        **providers: Any,
    ) -> PaymentsService:
        """Another process on the same data: it shares nothing but the storage and the clock."""
        return PaymentsService(
            storage or self.storage,
            KeyRing.parse(RING),
            settings=settings,
            chains=chains,
            sandbox_chains=self._sandbox_chains,
            clock=self.clock,
            transport=NoTransport(),
            **providers,
        )

    # The tenant.

    def open(self, partner_id: str = "acme") -> World:
        """Make the app, its key and two accounts; the payer's vault stays empty."""
        tenants = self.service.tenants
        app = tenants.create_app("Acme", partner_id)
        self.environment_id = app.environments["sandbox"]
        self.app = app
        self.key, self.secret = tenants.create_key(self.environment_id, "standard", "main")
        self.merchant = self.account("merchant", username="merchant")
        self.payer = self.account("payer")
        self.client = self.client_of(self.payer)
        return self

    @property
    def environment(self) -> Environment:
        return self.service.tenants.get_environment(self.environment_id)

    @property
    def resources(self) -> Resources:
        """What the partner's server can do."""
        return self.service.acting_as(self.server)

    @property
    def server(self) -> Authority:
        """What the key of the app may do, freshly authenticated."""
        environment, key = self.service.tenants.authenticate(
            self.app.id, self.secret, mode="sandbox"
        )
        return authority_of(environment, key)

    @property
    def system_authority(self) -> Authority:
        """What a program that embeds the library may do."""
        return self.service.tenants.system_authority(self.environment_id)

    def client_of(self, account: Account, *permissions: str) -> Authority:
        """The authority of a client session of the account, made, exchanged and read."""
        created = self.resources.client_sessions.create(
            account_id=account.id,
            expires_in_s=86_400,
            permissions=permissions or PAYER_PERMISSIONS,
        )
        access = self.service.client_tokens.exchange(created.token, mode="sandbox").access_token
        environment, session = self.service.client_tokens.authenticate(access, mode="sandbox")
        return Authority(
            requirement=Requirement("client", permissions=("vault_payments:write",)),
            environment=environment,
            session=session,
            api_version=session.api_version,
        )

    def account(self, external_user_id: str, **more: Any) -> Account:
        new = NewAccount(external_user_id=external_user_id, subject_type="individual", **more)
        return self.resources.accounts.create(new).account

    # The flow.

    def fund(self, amount: str, account: Account | None = None) -> None:
        address = self.vault_address(account or self.payer)
        self.chain.mint(USDC.address, address, atomic(amount), f"mint-{next(self._names)}")

    def payment(self, amount: str = "25.00", **more: Any) -> PaymentDetails:
        to = ToAccount(account_id=self.merchant.id)
        new = NewPayment(**{"amount": amount, "destination": to, **more})
        return self.resources.payments.receive(new)

    def option(self, payment: PaymentDetails, client: Authority | None = None) -> OptionDetails:
        return self.service.acting_as(client or self.client).options.create(payment.payment.id)

    def authorize(
        self, option: OptionDetails, client: Authority | None = None, **more: Any
    ) -> OptionDetails:
        more.setdefault("action_id", option.option.action_id)
        return self.service.acting_as(client or self.client).options.authorize(
            option.option.payment_id, option.option.id, **more
        )

    def authorized(self, amount: str = "25.00", **more: Any) -> OptionDetails:
        """A Payment with its option, authorized and not yet sent."""
        return self.authorize(self.option(self.payment(amount, **more)))

    def run(self) -> int:
        """Do what is due."""
        worker = self.service.worker("sandbox")
        return worker.run_until_idle()

    def advance(self, seconds: int) -> None:
        """Move the clock and do what falls due on the way."""
        until = self.clock.now() + seconds * 1_000
        self.service.worker("sandbox").run_through(until, self._move)

    def advance_until(
        self, holds: Callable[[], bool], seconds: int = 60, *, most: int = 10
    ) -> None:
        """Advance by so many seconds, and on until it holds.

        A weak storage may give a job early, whose next look is then later.
        """
        for _ in range(most):
            self.advance(seconds)
            if holds():
                return
        raise AssertionError("it never holds")

    def _move(self, instant: int) -> None:
        before = self.clock.now()
        self.clock.advance_to(instant)
        for chain in (self._sandbox_chains or {}).values():
            chain.advance_time(before, self.clock.now())

    def finish(self) -> None:
        """Let everything under way come to its end."""
        self.run()
        self.advance(60)

    def pay(self, payment: PaymentDetails, amount: str, source: str = WALLET) -> str:
        """A transfer from a wallet outside to the Payment's escrow, not final yet; its hash."""
        sandbox, escrow = self.resources.sandbox, payment.payment.escrow_address
        sandbox.transfer(BASE, "USDC", amount, to=source)
        done = sandbox.transfer(BASE, "USDC", amount, to=str(escrow), from_=source)
        return done.transaction_hash

    def fail(self, operation: str, times: int = 1) -> None:
        """Let the next uses of the chain fail."""
        self.resources.sandbox.fail_dependency("chain", operation, times, chain_id=BASE)

    def reorg(self, depth: int, *, reinclude: bool = False) -> None:
        self.resources.sandbox.reorg_chain(BASE, depth, reinclude=reinclude)

    def refund(
        self, payment: PaymentDetails, amount: str | None = None, to: str | None = None, **more: Any
    ) -> Refund:
        new = NewRefund(
            amount=UNSET if amount is None else amount, destination=UNSET if to is None else to
        )
        return self.resources.payments.refund(payment.payment.id, new, **more)

    def reconcile(self, payment: PaymentDetails, action: Any, **more: Any) -> Payment:
        reconciliation = self.resources.payments
        return reconciliation.reconcile(payment.payment.id, action, **more).payment

    def leave_scans_to_others(self) -> None:
        """Take the scans of the chains out of the way, as if another process did them."""
        self.stop_scans()

        def work(tx: Transaction) -> None:
            for chain_id in CHAINS:
                id = f"sandbox:{chain_id}"
                far = ScanCursor(id=id, chain_id=chain_id, ring=((10**9, "0xfar"),))
                known = tx.get(ScanCursor, id, for_update=True)
                if known is None:
                    tx.insert(far)
                else:
                    tx.replace(attrs.evolve(known, ring=far.ring))

        self.storage.transact(DIRECTORY, work)

    def stop_scans(self) -> None:
        """Nobody scans the chains until the scanner's `ensure_scheduled` is called."""
        self.service.worker("sandbox")

        def work(tx: Transaction) -> None:
            for chain_id in CHAINS:
                job = tx.get(Job, f"sandbox:{chain_id}", for_update=True)
                if job is not None:
                    tx.delete(job)

        self.storage.transact(DIRECTORY, work)

    # Looking.

    def hold_sends(self, seconds: int) -> None:
        """Let what waits to be sent on Base wait so long, as if a worker had died with it."""
        lane = ("sandbox.chain", sender_lane(self.environment_id, BASE))
        due_at = self.clock.now() + seconds * SECOND

        def work(tx: Transaction) -> None:
            for job in tx.find(Job, "by_queue_lane", lane, limit=100).records:
                current = tx.get(Job, job.id, for_update=True)
                assert current is not None
                tx.replace(attrs.evolve(current, due_at=due_at))

        write(self.storage, self.environment_id, work)

    def get(self, kind: type[R], id: str) -> R:
        found = self.storage.read(self.environment_id, lambda snapshot: snapshot.get(kind, id))
        assert found is not None
        return found

    def paid(self, payment_id: str) -> Payment:
        return self.get(Payment, payment_id)

    def receipt_ids(self, option: OptionDetails) -> list[str]:
        """The receipts of an option's Payment, oldest first."""
        evidenced = self.resources.payments.list_receipts(option.payment.id)
        return [receipt.id for receipt in evidenced.receipts.records]

    def option_now(self, option: OptionDetails) -> PaymentOption:
        return self.get(PaymentOption, option.option.id)

    def operation_now(self, option: OptionDetails) -> FundingOperation:
        return self.get(FundingOperation, option.operation.id)

    def balance_now(self, account: Account | None = None) -> VaultBalance:
        return self.get(VaultBalance, balance_id(self.vault_of(account).id, "USDC"))

    def vault_of(self, account: Account | None = None) -> Any:
        details = self.resources.accounts.read((account or self.payer).id)
        return next(vault for vault in details.vaults if vault.chain_id == BASE)

    def vault_address(self, account: Account | None = None) -> str:
        return str(
            self.chain.derive(AddressSpec(self.environment_id, "vault", (account or self.payer).id))
        )

    def held(self, account: Account | None = None) -> tuple[int, int, int]:
        """Total, reserved and available of an account's USDC on Base."""
        for holding in self.resources.accounts.read_balances((account or self.payer).id):
            if holding.asset.chain_id == BASE and holding.asset.symbol == "USDC":
                return holding.total_atomic, holding.reserved_atomic, holding.available_atomic
        raise AssertionError("no such holding")

    def events(self, subject: str | None = None) -> list[Event]:
        """The outbox in the order of its creation, or what of it concerns a Payment."""
        since = self.paid(subject).created_at_ms if subject else 0

        def look(snapshot: Any) -> list[Event]:
            found: list[Event] = []
            after = None
            while True:
                where = (Where("created_at", ">=", since),)
                page = snapshot.find(Event, "by_created", where=where, after=after, limit=100)
                found += page.records
                after = page.next
                if after is None:
                    return found

        events = self.storage.read(self.environment_id, look)
        return [e for e in events if subject in (None, e.payload.get("paymentId"))]

    def reported_events(self, payment_id: str) -> list[tuple[str, str, int]]:
        """The Payment's own events in the order of its versions: name, status, version."""
        events = [e for e in self.events(payment_id) if e.name.startswith("payment.")]
        events.sort(key=lambda event: event.payload["statusVersion"])
        return [(e.name, e.payload["status"], e.payload["statusVersion"]) for e in events]

    def last_payload(self, payment_id: str, name: str) -> Mapping[str, Any]:
        """The payload of the last event of that name about the Payment."""
        return [event.payload for event in self.events(payment_id) if event.name == name][-1]

    def journal(self, payment_id: str) -> list[tuple[str, dict[str, int]]]:
        """What moved and between which accounts of the books, in the order of the entries."""
        entries = self.resources.payments.list_receipts(payment_id).entries
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        return [(entry.cause, dict(entry.postings)) for entry in entries]

    def event_names(self, subject: str | None = None) -> Counter[str]:
        return Counter(event.name for event in self.events(subject))

    # The chain.

    @cached_property
    def chain(self) -> Any:
        """Base with a sandbox's operations: simulated, unless the world was given another."""
        return (self._sandbox_chains or self.service.chains)[BASE]

    def on_chain(self, address: str) -> int:
        """What an address holds at the newest block."""
        self.chain.mine(self.final_after)
        return self.chain.balances(USDC.address, [address]).amounts[address]

    def drain(self, account: Account | None = None) -> None:
        """Empty a vault behind the service's back."""
        source = self.vault_address(account)
        amount = self.on_chain(source)
        slot = self._strangers_slot
        self._strangers_slot += 1
        intent = TransferIntent(
            f"drain-{slot}",
            "env_stranger",
            USDC.address,
            Contract("vault", "acct_stranger", source),
            STRANGER,
            amount,
        )
        self.chain.broadcast(self.chain.prepare(intent, slot))

    _strangers_slot = 0
    final_after = 3

    def sent(self) -> int:
        """How many transactions of ours are on the chain, of whatever outcome."""
        sender = self.chain.derive(AddressSpec(self.environment_id, "operator", "operator"))
        id = f"{BASE}:{sender}"
        row = self.storage.read(SIMULATED, lambda snapshot: snapshot.get(SimulatedSender, id))
        return row.next_slot if row else 0

    # Writing what has no operation yet.

    def pause_policy(self, status: str = "paused") -> None:
        policy = self.get(Policy, self.vault_of().policy_id)
        paused = attrs.evolve(policy, status=status, policy_version=policy.policy_version + 1)
        write(self.storage, self.environment_id, lambda tx: tx.replace(paused))


def authority_of(environment: Environment, key: Key, **more: Any) -> Authority:
    """What a server key may do, with no scopes asked for unless `more` has a requirement."""
    more.setdefault("requirement", Requirement("server"))
    return Authority(environment=environment, key=key, api_version=environment.api_version, **more)


def atomic(amount: str) -> int:
    """USDC's smallest units of a decimal text."""
    whole, _, fraction = amount.partition(".")
    return int(whole + fraction.ljust(6, "0"))


def write(storage: Storage, partition: str, work: Callable[[Any], None]) -> None:
    """A transaction of the test's own, repeated until it is done for certain."""
    while True:
        try:
            storage.transact(partition, work)
            return
        except CommitUnknown:
            continue
        except VersionConflict:
            return  # the replace that was in doubt took place


def once(id: str, fingerprint: str = "f") -> IdempotentRequest:
    """A request's idempotency, answering with the ids of what was made."""
    return IdempotentRequest(id=id, fingerprint=fingerprint, render=_render)


def _render(result: Any) -> Response:
    return Response(200, repr(result).encode()[:200], "2026-09-09")


def answer_of(call: Callable[[], Any]) -> Response | None:
    """The stored answer that a call replays, or None where it did something itself."""
    try:
        call()
    except AlreadyResponded as earlier:
        return earlier.response
    return None
