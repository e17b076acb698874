"""The composition root: one object that holds the ports, with one attribute per resource."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property

from payments_core.accounts.address_balances import AddressBalances
from payments_core.accounts.bank_accounts.operations import BankAccounts
from payments_core.accounts.capabilities.operations import Capabilities
from payments_core.accounts.directory import AccountDirectory
from payments_core.accounts.operations import Accounts
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.policies import VaultPolicies
from payments_core.accounts.vaults.provisioning import VaultProvisioning
from payments_core.accounts.vaults.yields import VaultYields
from payments_core.accounts.verification.operations import Verifications
from payments_core.accounts.verification.port import KycProvider
from payments_core.accounts.wallets import Wallets
from payments_core.assets import CHAINS
from payments_core.background_jobs import BackgroundJobs
from payments_core.banks.port import Bank
from payments_core.chains.port import Chain, NetworkKind
from payments_core.chains.scanner import Scanner
from payments_core.chains.served_chains import ServedChains
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import MAX_CLOCK_SKEW_MS, Clock, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.secrets import MODES
from payments_core.deposits.operations import Deposits
from payments_core.engine.clock_guard import SANDBOX_PATIENCE_MS, ClockGuard, GuardedClock
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.entropy import Entropy, system_entropy
from payments_core.errors import NotFound
from payments_core.legacy.role_modules.operations import RoleModules
from payments_core.legacy.settlements.operations import Settlements
from payments_core.legacy.transactions.operations import LegacyTransactions
from payments_core.onramps.operations import OnrampAccounts
from payments_core.passed_objects import require_passed
from payments_core.payment_settings.operations import PartnerPaymentSettings
from payments_core.payments.checkout.checkout import Checkout
from payments_core.payments.checkout.links import Links
from payments_core.payments.checkout.options import PublicOptions
from payments_core.payments.checkout.public import PublicPayments
from payments_core.payments.collects import Collects
from payments_core.payments.destinations import Destinations
from payments_core.payments.disputes.operations import Disputes
from payments_core.payments.funding.operations import Funding
from payments_core.payments.mandates.operations import Mandates
from payments_core.payments.operations import Payments
from payments_core.payments.options.operations import VaultOptions
from payments_core.payments.payouts.creation import PayoutCreation
from payments_core.payments.refunds.operations import Refunds
from payments_core.payments.refunds.reconciliation import Reconciliations
from payments_core.payments.sends import Sends
from payments_core.plain_calls import call_plainly, require_plain_function
from payments_core.pricing.port import Pricing
from payments_core.providers import Providers
from payments_core.quotes.operations import Quotes
from payments_core.routers.port import Router
from payments_core.sandbox.banks import choose_funding_banks
from payments_core.sandbox.chains import SandboxChain
from payments_core.sandbox.clock import SandboxClock
from payments_core.sandbox.operations import Sandbox
from payments_core.sandbox.payer import SandboxPayer
from payments_core.settings import Settings
from payments_core.storage.capabilities import ChecksWritability
from payments_core.storage.port import DIRECTORY, Storage
from payments_core.telemetry import NOOP_TELEMETRY, CheckedTelemetry, Telemetry
from payments_core.tenants.authorization import Authority
from payments_core.tenants.client_sessions.operations import ClientSessions
from payments_core.tenants.master_keys import verify_or_register
from payments_core.tenants.operations import Tenants
from payments_core.tenants.operator_sessions import OperatorSessions
from payments_core.tenants.operators import Operators
from payments_core.tenants.record import App
from payments_core.tenants.request_log import RequestLog
from payments_core.validation.arguments import check_arguments, guard
from payments_core.waiting import NO_WAITS, Waits
from payments_core.webhooks.destinations import Resolver
from payments_core.webhooks.dispatch.attempt import AttemptRunner
from payments_core.webhooks.handler_endpoints import HandlerEndpoints, HandlerName
from payments_core.webhooks.handlers import EventHandlers, Handle
from payments_core.webhooks.operations import SubscribedEvents, WebhookEndpoints
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.replay import WebhookEvents
from payments_core.webhooks.transports.port import Transport
from payments_core.webhooks.transports.resolver import SystemResolver
from payments_core.webhooks.transports.sockets import SocketTransport


class PaymentsService:
    """Accounts, Payments and related resources over one storage: an attribute for each resource.

    Without `chains` it is a sandbox, on `sandbox_chains` or on simulated chains, whose books are in
    the same storage; `sandbox` controls them. Without `clock` it takes the sandbox's clock there,
    or the system's clock. Without `kyc` verifications are simulated in the sandbox, and there are
    none in production; the same holds for `bank`, `pricing` and `router`. Events go to `telemetry`.
    A server passes its `waits`, where calls of other services are announced.
    Raises ValidationFailed for an object of the wrong kind, and TypeError for one with an
    asynchronous method of its port: nothing here awaits.
    The worker of a mode is made by `worker`; `payments_core_http.create_app` serves it.

    Besides the resources it shows its `settings`, the `chains` that it serves by their number, and
    the `ports` that everything is built on, for tools that work on a whole deployment.
    """

    settings: Settings
    """The settings of the deployment."""
    chains: Mapping[int, Chain]
    """The served chains, by their number; any other number raises ChainUnavailable."""
    ports: Ports
    """The storage, its committer, the clock, the key ring: for tools and for serving. Partners'
    programs need only the resources."""

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
        bank: Bank | None = None,
        pricing: Pricing | None = None,
        router: Router | None = None,
        telemetry: Telemetry = NOOP_TELEMETRY,
        waits: Waits = NO_WAITS,
    ) -> None:
        require_passed(
            {
                "storage": storage,
                "key_ring": key_ring,
                "settings": settings,
                "chains": chains,
                "sandbox_chains": sandbox_chains,
                "clock": clock,
                "transport": transport,
                "resolver": resolver,
                "kyc": kyc,
                "bank": bank,
                "pricing": pricing,
                "router": router,
                "telemetry": telemetry,
            }
        )
        require_plain_function(entropy, "entropy")
        self.settings = settings or Settings()
        own_clock = SystemClock() if clock is None else None
        patience_ms = SANDBOX_PATIENCE_MS if chains is None else None
        self._clock_guard = ClockGuard(
            storage, own_clock, MAX_CLOCK_SKEW_MS, patience_ms=patience_ms
        )
        if clock is None:
            clock = SystemClock() if chains is not None else SandboxClock(storage)
        self.ports = Ports.over(
            storage,
            key_ring,
            clock,
            entropy=entropy,
            telemetry=CheckedTelemetry(telemetry),
            answer_retention_ms=self.settings.idempotency_retention_ms,
            guarded_clock=GuardedClock(clock, self._clock_guard),
            versions=self.settings.versions,
        )
        self._sandbox_chains: Mapping[int, SandboxChain] = {}
        if chains is None:
            chains = self._sandbox_chains = sandbox_chains or self._simulated_chains()
        self.chains = ServedChains(chains)
        self._providers = Providers.choose(
            self.ports, self._sandbox_chains, kyc=kyc, bank=bank, pricing=pricing, router=router
        )
        self._funding_banks = choose_funding_banks(bank, self.ports, self._sandbox_chains)
        self._destinations = Destinations(self.ports, self.chains)
        self._remote_calls = RemoteCalls(self.settings.max_remote_calls, waits)
        self._resolver = resolver or SystemResolver()
        self._transport = transport or SocketTransport()
        self._event_handlers = EventHandlers()
        self._build()

    def __repr__(self) -> str:
        served = "simulated" if self._sandbox_chains else ", ".join(map(str, self.chains))
        return f"<PaymentsService: chains {served}>"

    def _build(self) -> None:
        """Build the resources, which check nothing when they call one another, and guard them."""
        self._unguarded = inside = copy(self)
        for name in _RESOURCES:  # now, not when two threads first ask at the same time
            getattr(inside, name)
        self._background_jobs: BackgroundJobs = inside._make_background_jobs()
        inside._background_jobs = self._background_jobs
        for name in _RESOURCES:
            setattr(self, name, guard(getattr(inside, name)))

    # The resources.

    @cached_property
    def tenants(self) -> Tenants:
        """Partners, their apps and environments, and their keys."""
        return Tenants(self.ports)

    @cached_property
    def operators(self) -> Operators:
        """The people who may log in to an environment's dashboard."""
        return Operators(self.ports)

    @cached_property
    def operator_sessions(self) -> OperatorSessions:
        """The log-ins of operators."""
        return OperatorSessions(self.ports, self.operators)

    @cached_property
    def request_log(self) -> RequestLog:
        """Recent requests to the API, as far as they are recorded."""
        return RequestLog(self.ports)

    @cached_property
    def accounts(self) -> Accounts:
        """A partner's users; each has a vault on every chain."""
        return Accounts(self.ports, self.chains)

    @cached_property
    def account_directory(self) -> AccountDirectory:
        """Accounts by username, payment address or wallet address."""
        return AccountDirectory(self.ports)

    @cached_property
    def address_balances(self) -> AddressBalances:
        """Balances of any address, ours or not."""
        return AddressBalances(self.chains, self._remote_calls, self._providers.pricing)

    @cached_property
    def wallets(self) -> Wallets:
        """The wallets that accounts have proven to hold, and the challenges to prove it."""
        return Wallets(self.ports, self.chains, self._remote_calls, self.settings.service_name)

    @cached_property
    def verifications(self) -> Verifications:
        """The identity checks of accounts, by a KYC provider."""
        return Verifications(self.ports, self._providers.kyc, self._remote_calls)

    @cached_property
    def capabilities(self) -> Capabilities:
        """Which bank flows accounts may use, as the bank decides."""
        banks = self._providers.banks
        return Capabilities(self.ports, banks, self._funding_banks.by_mode)

    @cached_property
    def bank_accounts(self) -> BankAccounts:
        """US bank accounts of accounts, as the bank reviews them."""
        return BankAccounts(self.ports, self._providers.banks)

    @cached_property
    def onramp_accounts(self) -> OnrampAccounts:
        """Account numbers at the bank whose incoming transfers are credited as stablecoins."""
        return OnrampAccounts(self.ports, self._funding_banks.by_mode, self._destinations)

    @cached_property
    def client_sessions(self) -> ClientSessions:
        """Tokens with which a browser acts for one account, for a limited time."""
        return ClientSessions(self.ports, self.accounts)

    @cached_property
    def vaults(self) -> Vaults:
        """Balances of vaults: as a chain reports them, less the reserved amounts."""
        return Vaults(self.ports, self.chains, self._remote_calls)

    @cached_property
    def vault_provisioning(self) -> VaultProvisioning:
        """Vaults: an account has one on each chain."""
        return VaultProvisioning(self.ports, self.chains)

    @cached_property
    def vault_policies(self) -> VaultPolicies:
        """Policies of vaults: limits, chains, assets and destinations, in versions."""
        return VaultPolicies(self.ports)

    @cached_property
    def vault_yields(self) -> VaultYields:
        """The yield settings of vaults."""
        return VaultYields(self.ports)

    @cached_property
    def mandates(self) -> Mandates:
        """Standing approvals to collect from a vault."""
        return Mandates(self.ports)

    @cached_property
    def deposits(self) -> Deposits:
        """Deposit addresses of accounts, and the transfers that arrived there."""
        return Deposits(
            self.ports,
            self.chains,
            self.scanner,
            self._remote_calls,
            self._destinations.find_own,
        )

    @cached_property
    def payments(self) -> Payments:
        """Receive Payments; reads and ends Payments of any intent."""
        return Payments(self.ports, self._destinations, self.links)

    @cached_property
    def quotes(self) -> Quotes:
        """Quotes of transfers, and the Payments that carry them out."""
        pricing, routers = self._providers.pricing, self._providers.routers
        return Quotes(
            self.ports, self.payments, self._destinations, pricing, routers, self._remote_calls
        )

    @cached_property
    def payment_settings(self) -> PartnerPaymentSettings:
        """A partner's settings for its Payments: fee, tolerance, limits, origins."""
        return PartnerPaymentSettings(self.ports)

    @cached_property
    def public_payments(self) -> PublicPayments:
        """Payments that are created by a shop's visitors, who hold no credential."""
        return PublicPayments(self.ports, self.payments, self._destinations)

    @cached_property
    def sends(self) -> Sends:
        """Payments out of a vault."""
        payouts = PayoutCreation(self.ports, self._providers.banks)
        return Sends(self.ports, self._destinations, self.vaults, payouts)

    @cached_property
    def collects(self) -> Collects:
        """Payments that are collected from a vault under a mandate."""
        return Collects(self.ports, self._destinations, self.vaults)

    @cached_property
    def refunds(self) -> Refunds:
        """Transfers of received funds back to their senders."""
        return Refunds(self.ports, self._destinations, self.vaults)

    @cached_property
    def reconciliation(self) -> Reconciliations:
        """A partner's decisions on Payments that did not end as expected."""
        payouts = PayoutCreation(self.ports, self._providers.banks)
        return Reconciliations(self.ports, self._destinations, self.vaults, payouts)

    @cached_property
    def disputes(self) -> Disputes:
        """Payment sessions, and the one dispute that each may have."""
        return Disputes(self.ports)

    @cached_property
    def vault_options(self) -> VaultOptions:
        """Ways to fund a Payment from the payer's vault."""
        return VaultOptions(self.ports)

    @cached_property
    def public_options(self) -> PublicOptions:
        """Ways to fund a Payment without an account, and the payer's choice among them."""
        return PublicOptions(self.ports, self.chains)

    @cached_property
    def funding(self) -> Funding:
        """Transfers from a payer's vault to a Payment's escrow."""
        return Funding(self.ports, self.vaults)

    @cached_property
    def checkout(self) -> Checkout:
        """A payer's view of a Payment, by a link or by the Payment's client secret."""
        return Checkout(self.ports, self.links)

    @cached_property
    def links(self) -> Links:
        """Checkout links, which lead payers to a Payment."""
        settings = self.settings
        if settings.has_public_url:
            return Links(self.ports.key_ring, self.ports.entropy, settings.public_url)
        return Links(self.ports.key_ring, self.ports.entropy)

    @cached_property
    def legacy_transactions(self) -> LegacyTransactions:
        """Payments, deposits and refunds as the legacy interface shows them."""
        return LegacyTransactions(self.ports)

    @cached_property
    def role_modules(self) -> RoleModules:
        """Role modules of vaults, which their owners authorize to act for them."""
        return RoleModules(self.ports, self.chains, self._remote_calls)

    @cached_property
    def settlements(self) -> Settlements:
        """Quotes that are paid from the vaults of their payers, by a signature."""
        return Settlements(self.ports, self.chains, self._remote_calls, self.vaults)

    @cached_property
    def webhooks(self) -> WebhookEndpoints:
        """Webhook endpoints and their deliveries."""
        return WebhookEndpoints(
            self.ports, self._resolver, self.settings.webhooks, self._remote_calls
        )

    @cached_property
    def webhook_events(self) -> WebhookEvents:
        """The events of an environment, and the repeated sending of events."""
        return WebhookEvents(self.ports)

    # The processes.

    @check_arguments
    def on_event(
        self,
        authority: Authority,
        name: HandlerName,
        handle: Handle,
        *,
        subscribed_events: SubscribedEvents = (),
    ) -> Endpoint:
        """Call a function with the events of the authority's environment: all events, unless
        some are named. The workers of this process call it.

        It is a webhook endpoint whose attempts call `handle` with a `ReceivedEvent`: events come at
        least once and in any order, so keep their `id`. If `handle` raises, or does not return
        within `webhooks.attempt_s`, the event comes again by the schedule of webhooks, also if the
        process was killed. Events from now on are kept for `name`, also while no process runs; call
        this at every start, wherever workers run. `handle` is a plain function: a coroutine
        function is refused, and one that returns an awaitable has failed. Raises TypeError,
        ValidationFailed, WebhookLimitReached.
        """
        webhooks = self._unguarded.webhooks
        endpoints = HandlerEndpoints(self.ports, webhooks, self._event_handlers)
        return endpoints.register(authority, name, handle, subscribed_events=subscribed_events)

    def require_mode(self, mode: str) -> None:
        """Raise ValueError if this service cannot serve the mode."""
        if mode not in MODES:
            raise ValueError(f"the mode must be one of {', '.join(MODES)}")
        if mode != "sandbox" and self._sandbox_chains:
            raise ValueError("simulated chains serve the sandbox only; other modes need `chains`")

    def worker(self, mode: str) -> Worker:
        """The worker that does this process's share of a mode's jobs; one per mode.

        Raises ValueError if this service cannot serve the mode.
        """
        self.require_mode(mode)
        return self._background_jobs.worker(mode)

    def scanner(self, mode: str) -> Scanner:
        """The scanner that finds a mode's transfers on the chains."""
        return self._background_jobs.scanner(mode)

    def sandbox(self, mode: str = "sandbox") -> Sandbox:
        """The sandbox's controls. Raises NotFound in another mode, or if the chains are real."""
        if mode != "sandbox" or not self._sandbox_chains:
            raise NotFound("sandbox")
        controls = Sandbox(
            self.ports,
            self._sandbox_chains,
            self.worker(mode),
            wake=self.scanner(mode).wake,
            bank=self._providers.simulated_bank,
            funding_bank=self._funding_banks.simulated,
            wake_notices=self._background_jobs.notice_reader(mode).wake,
        )
        return guard(controls)

    def find_network_kind(self, chain_id: int) -> NetworkKind:
        """Where a chain is, for pages that lead wallets to it."""
        if not self._sandbox_chains:
            return "real"
        chain = self._sandbox_chains.get(chain_id)
        return "simulated" if chain is None else chain.network_kind

    def sandbox_payer(self, mode: str = "sandbox") -> SandboxPayer:
        """The simulated payer of Payments in the sandbox. Raises NotFound as `sandbox` does."""
        return SandboxPayer(self.sandbox(mode), self.checkout, self.tenants)

    def refresh(self) -> None:
        """The first step of every request: a sandbox's clock may have been moved."""
        self._clock_guard.require_right()  # and a machine's may have jumped
        if isinstance(self.ports.clock, SandboxClock):
            self.ports.clock.refresh()

    def _catch_up(self) -> None:
        """A sandbox's time does not go back, also if the machine's does."""
        if self._sandbox_chains and isinstance(self.ports.clock, SandboxClock):
            self.ports.clock.catch_up()

    def check_ready(self) -> None:
        """Return if the storage answers and has room for writes, and hanging jobs have left a
        worker of this process enough threads. Raises StorageUnavailable, Unavailable."""
        self._clock_guard.require_right()
        self._background_jobs.require_working()
        storage = self.ports.storage
        storage.read(DIRECTORY, lambda snapshot: snapshot.get(App, "ready"))
        if isinstance(storage, ChecksWritability):
            call_plainly("require_writable", storage.require_writable)

    def verify_key_ring(self) -> None:
        """Return if the key ring is the one with which the storage was created.

        Raises UnknownKeyRing, StorageUnavailable, Unavailable.
        """
        verify_or_register(self.ports.storage, self.ports.committer, self.ports.key_ring)

    def close(self, within_s: float = 30.0) -> None:
        """Stop the workers, waiting at most that long, and close everything that is open."""
        self._background_jobs.stop(within_s)
        call_plainly("the transport's close", self._transport.close)
        call_plainly("the storage's close", self.ports.storage.close)

    def _make_background_jobs(self) -> BackgroundJobs:
        return BackgroundJobs(
            self.ports,
            self.chains,
            self.capabilities,
            self.bank_accounts,
            self._providers.banks,
            self._providers.routers,
            self.onramp_accounts,
            self._funding_banks.by_mode,
            Vaults(self.ports, self.chains),
            AttemptRunner(
                self.ports,
                self._transport,
                self._resolver,
                self.settings.webhooks,
                self._event_handlers,
            ),
            refresh=self.refresh,
            catch_up=self._catch_up,
            events_retention_ms=self.settings.events_retention_ms,
        )

    def _simulated_chains(self) -> dict[int, SimulatedChain]:
        return {chain_id: SimulatedChain(chain_id, self.ports) for chain_id in CHAINS}


_RESOURCES = tuple(
    name for name, value in vars(PaymentsService).items() if isinstance(value, cached_property)
)
