"""The composition root: one object that holds the ports, with one attribute per resource."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.operations import Accounts
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.policies import VaultPolicies
from payments_core.accounts.vaults.provisioning import VaultProvisioning
from payments_core.accounts.vaults.yields import VaultYields
from payments_core.accounts.verification.operations import Verifications
from payments_core.accounts.verification.port import KycProvider
from payments_core.accounts.verification.simulated import SimulatedKyc
from payments_core.accounts.wallets import Wallets
from payments_core.assets import CHAINS
from payments_core.chains.outbox.jobs import TransferJobs
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.reorg_recovery import RESEND, Resending
from payments_core.chains.port import Chain
from payments_core.chains.registry import ServedChains
from payments_core.chains.scanner import SCAN, Scanner
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.chains.simulated.failures import Failures
from payments_core.clock import MINUTE, Clock, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.secrets import MODES
from payments_core.credentials.tokens import Tokens
from payments_core.deposits.arrivals import ARRIVE, WATCH_DEPOSIT, Arrivals
from payments_core.deposits.operations import Deposits
from payments_core.deposits.sweeping import SweepOwner
from payments_core.deposits.watching import DepositWatch
from payments_core.engine.committer import Ledger
from payments_core.engine.decision import Scope
from payments_core.engine.idempotency.purging import PURGE, Purge
from payments_core.engine.idempotency.record import RETENTION_MS
from payments_core.engine.identifiers import Identifiers
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Handler, Worker
from payments_core.entropy import Entropy, system_entropy
from payments_core.errors import NotFound
from payments_core.payment_settings.operations import PartnerPaymentSettings
from payments_core.payments import operations as payments
from payments_core.payments.checkout.checkout import Checkout
from payments_core.payments.checkout.direct_options import Paying
from payments_core.payments.checkout.links import Links
from payments_core.payments.checkout.public import PublicPayments
from payments_core.payments.collects import Collects
from payments_core.payments.destinations import Destinations
from payments_core.payments.disputes.operations import Disputes
from payments_core.payments.funding.operations import Funding
from payments_core.payments.funding.sending import FundingOwner
from payments_core.payments.mandates.operations import Mandates
from payments_core.payments.operations import Payments
from payments_core.payments.options.operations import Options
from payments_core.payments.receipts import discovery
from payments_core.payments.receipts.discovery import Discovery
from payments_core.payments.receipts.watching import ReceiptJobs
from payments_core.payments.refunds.operations import Refunds
from payments_core.payments.refunds.reconciliation import Reconciliations
from payments_core.payments.refunds.sending import RefundOwner
from payments_core.payments.release import ReleaseOwner
from payments_core.payments.sends import Sends
from payments_core.sandbox.chains import SandboxChain
from payments_core.sandbox.clock import SandboxClock
from payments_core.sandbox.operations import Sandbox
from payments_core.storage.port import DIRECTORY, Storage
from payments_core.telemetry import DEAF, Telemetry
from payments_core.tenants.client_sessions.operations import ClientSessions
from payments_core.tenants.master_keys import recognise
from payments_core.tenants.modes import is_of_mode
from payments_core.tenants.operations import Tenants
from payments_core.tenants.operators import Operators
from payments_core.tenants.record import App
from payments_core.versions import Versions
from payments_core.webhooks.attempting import Attempts
from payments_core.webhooks.delivery import FAN_OUTS, TASKS, WEBHOOKS, WebhookDelivery
from payments_core.webhooks.destinations import Resolver
from payments_core.webhooks.dispatcher import Dispatcher
from payments_core.webhooks.lifecycle import RECOVER
from payments_core.webhooks.operations import WebhookEndpoints
from payments_core.webhooks.recovering import WebhookRecovery
from payments_core.webhooks.replaying import WebhookEvents
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import Transport
from payments_core.webhooks.transports.resolver import SystemResolver
from payments_core.webhooks.transports.threads import ThreadsTransport

QUEUES = (
    Queue("chain", slots=1, lease_ms=MINUTE),
    Queue("timers", slots=16, lease_ms=MINUTE),
    FAN_OUTS,
    WEBHOOKS,
    TASKS,
)


@attrs.frozen
class Settings:
    """What a deployment decides.

    `public_url` is where payers reach the checkout pages. `idempotency_retention_ms` is how long
    a request with an Idempotency-Key is answered from the store. `service_name` is what wallets
    show when they are asked to prove whose they are. `versions` are the dated contracts served.
    """

    public_url: str = "http://127.0.0.1:8080"
    service_name: str = "Payments Core"
    idempotency_retention_ms: int = RETENTION_MS
    webhooks: WebhookSettings = attrs.field(factory=WebhookSettings)
    versions: Versions = attrs.field(factory=Versions)


class PaymentsService:
    """Accounts, Payments and all around them, over one storage.

    Without `chains` it is a sandbox, on `sandbox_chains` or on simulated ones, whose books are in
    the same storage; `sandbox` has their doors. Without `clock` it takes the sandbox's clock there,
    else the system's. Without `kyc` verifications are simulated in the sandbox, and there are none
    in production. `telemetry` is told how it goes. The worker of a mode is made by `worker`;
    `payments_core_http.create_app` serves it.
    """

    def __init__(
        self,
        storage: Storage,
        key_ring: KeyRing,
        *,
        settings: Settings | None = None,
        chains: Mapping[int, Chain] | None = None,
        sandbox_chains: Mapping[int, SandboxChain] | None = None,
        clock: Clock | None = None,
        entropy: Entropy = system_entropy,
        transport: Transport | None = None,
        resolver: Resolver | None = None,
        kyc: KycProvider | None = None,
        telemetry: Telemetry = DEAF,
    ) -> None:
        self.storage = storage
        self.key_ring = key_ring
        self.settings = settings or Settings()
        if clock is None:
            clock = SystemClock() if chains is not None else SandboxClock(storage)
        self.clock = clock
        self.identifiers = Identifiers(clock, entropy)
        self.telemetry = telemetry
        self.ledger = Ledger(storage, clock, self.identifiers, key_ring, telemetry)
        self._sandbox_chains: Mapping[int, SandboxChain] = {}
        if chains is None:
            chains = self._sandbox_chains = sandbox_chains or self._simulated_chains()
        self.chains = ServedChains(chains)
        ports = (storage, self.ledger, clock)
        self.outbox = Outbox(*ports, self.chains, sent=self._sent)
        self.tokens = Tokens(key_ring)
        self.links = Links(key_ring, entropy, self.settings.public_url)
        self.tenants = Tenants(*ports, self.identifiers, key_ring, entropy, self.settings.versions)
        self.operators = Operators(*ports, entropy)
        self.accounts = Accounts(*ports, self.chains)
        self.wallets = Wallets(*ports, self.chains, entropy, self.settings.service_name)
        failures = Failures(storage, self.ledger)
        self.verifications = Verifications(*ports, _kyc_providers(kyc, failures))
        self.client_sessions = ClientSessions(*ports, self.tokens, self.accounts)
        self.vaults = Vaults(storage, self.chains)
        self.vault_provisioning = VaultProvisioning(*ports, self.chains)
        self.vault_policies = VaultPolicies(*ports)
        self.vault_yields = VaultYields(*ports)
        self.mandates = Mandates(*ports)
        self.deposits = Deposits(*ports, self.chains, self.scanner)
        destinations = Destinations(storage, self.chains)
        self.payments = Payments(*ports, destinations, self.tokens, self.links)
        self.payment_settings = PartnerPaymentSettings(*ports)
        self.public_payments = PublicPayments(storage, self.payments, destinations)
        self.sends = Sends(*ports, destinations, self.vaults)
        self.collects = Collects(*ports, destinations, self.vaults)
        self.refunds = Refunds(*ports, destinations, self.vaults)
        self.reconciliation = Reconciliations(*ports, self.vaults)
        self.disputes = Disputes(*ports)
        self.options = Options(*ports)
        self.paying = Paying(*ports, self.chains)
        self.checkout = Checkout(storage, clock, self.tokens, self.links)
        self.funding = Funding(*ports, self.vaults)
        self._resolver = resolver or SystemResolver()
        self._transport = transport or ThreadsTransport()
        self.webhooks = WebhookEndpoints(
            self.ledger, storage, clock, key_ring, self._resolver, self.settings.webhooks, entropy
        )
        self._attempts = Attempts(
            clock, key_ring, self._transport, self._resolver, self.settings.webhooks, telemetry
        )
        self.webhook_events = WebhookEvents(self.ledger, storage, clock)
        self._workers: dict[str, Worker] = {}
        self._scanners: dict[str, Scanner] = {}

    def require_mode(self, mode: str) -> None:
        """Raise ValueError where this service cannot serve the mode."""
        if mode not in MODES:
            raise ValueError(f"the mode must be one of {', '.join(MODES)}")
        if mode != "sandbox" and self._sandbox_chains:
            raise ValueError("simulated chains serve the sandbox alone; give `chains` for others")

    def worker(self, mode: str) -> Worker:
        """The worker that does this process's share of a mode's jobs; one per mode.

        Raises ValueError where this service cannot serve the mode.
        """
        self.require_mode(mode)
        if mode not in self._workers:
            self.scanner(mode).ensure()
            worker = Worker(
                self.storage,
                self.clock,
                mode,
                self._handlers(mode),
                QUEUES,
                refresh=self.refresh,
                telemetry=self.telemetry,
            )
            worker.accompany(
                Dispatcher(
                    self.storage,
                    self.ledger,
                    self.clock,
                    self._attempts,
                    self._delivery(mode),
                    worker.parking,
                    mode,
                    refresh=self.refresh,
                )
            )
            self._workers[mode] = worker
            self.ledger.on_commit(worker.wake)
        return self._workers[mode]

    def scanner(self, mode: str) -> Scanner:
        """What looks through the chains for a mode's transfers."""
        if mode not in self._scanners:
            receipts = Discovery(self.storage, self.ledger, self.clock, mode)
            deposits = Arrivals(self.storage, self.ledger, self.clock, self.chains, mode)
            self._scanners[mode] = Scanner(
                self.storage,
                self.ledger,
                self.clock,
                self.chains,
                mode,
                wanted=(receipts.wanted, deposits.wanted),
                found=(receipts.found, deposits.found),
                undone=(self._resending(mode).undone, receipts.undone, deposits.undone),
                telemetry=self.telemetry,
            )
        return self._scanners[mode]

    def sandbox(self, mode: str = "sandbox") -> Sandbox:
        """The sandbox's doors. Raises NotFound in another mode, or where the chains are real."""
        if mode != "sandbox" or not self._sandbox_chains:
            raise NotFound("sandbox")
        return Sandbox(
            self.storage,
            self.ledger,
            self._sandbox_chains,
            self.clock,
            self.worker(mode),
            wake=self.scanner(mode).wake,
        )

    def refresh(self) -> None:
        """What a process does first in every request: a sandbox's clock may have been moved."""
        if isinstance(self.clock, SandboxClock):
            self.clock.refresh()

    def ready(self) -> None:
        """Return if the storage answers. Raises StorageUnavailable."""
        self.storage.read(DIRECTORY, lambda snapshot: snapshot.get(App, "ready"))

    def recognise_key_ring(self) -> None:
        """Return if the key ring is the one that the storage was begun with.

        Raises UnknownKeyRing, StorageUnavailable, Unavailable.
        """
        recognise(self.storage, self.ledger, self.key_ring)

    def close(self, within_s: float = 30.0) -> None:
        """Stop the workers, so long as that takes no longer, and give back what is open."""
        for worker in self._workers.values():
            worker.stop(within_s)
        self._transport.close()
        self.storage.close()

    def _simulated_chains(self) -> dict[int, SimulatedChain]:
        return {
            chain_id: SimulatedChain(chain_id, self.storage, self.ledger, self.clock)
            for chain_id in CHAINS
        }

    def _sent(self, scope: Scope, chain_id: int) -> None:
        """A transaction of ours went out: a chain that is seldom scanned is scanned now, so that a
        reorg of its block will be noticed."""
        if self.chains[chain_id].longest_pause_ms > MINUTE:
            self.scanner(scope.mode).wake(chain_id)

    def _resending(self, mode: str) -> Resending:
        return Resending(
            self.storage,
            self.ledger,
            self.clock,
            self.outbox,
            mode,
            is_of_mode=lambda partition: is_of_mode(self.storage, partition, mode),
        )

    def _delivery(self, mode: str) -> WebhookDelivery:
        return WebhookDelivery(self.ledger, self.storage, self.clock, self._attempts, mode)

    def _handlers(self, mode: str) -> dict[str, Handler]:
        """What does which job: the one table of them."""
        ports = (self.storage, self.ledger, self.clock)
        transfers = TransferJobs(
            *ports,
            self.outbox,
            sent=[FundingOwner()],
            followed=[
                ReleaseOwner(self.vaults),
                RefundOwner(self.vaults),
                SweepOwner(self.chains),
            ],
        )
        receipts = ReceiptJobs(*ports, self.chains, self.outbox, self.vaults)
        return {
            SCAN: self.scanner(mode).scan,
            RESEND: self._resending(mode).resend,
            discovery.WATCH: receipts.watch,
            ARRIVE: Arrivals(*ports, self.chains, mode).arrive,
            WATCH_DEPOSIT: DepositWatch(*ports, self.chains).watch,
            PURGE: Purge(self.storage, self.ledger, self.clock).run,
            payments.EXPIRE: self.payments.run_expiry,
            RECOVER: WebhookRecovery(*ports).recover,
            **transfers.handlers(),
            **self._delivery(mode).handlers(),
        }


def _kyc_providers(kyc: KycProvider | None, failures: Failures) -> Mapping[str, KycProvider]:
    """Who verifies accounts, by mode."""
    if kyc is not None:
        return dict.fromkeys(MODES, kyc)
    return {"sandbox": SimulatedKyc(fails=lambda: failures.consume("kyc", "start"))}
