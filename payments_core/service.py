"""The composition root: what an embedding program makes from its ports."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.accounts.verification.port import KycProvider
from payments_core.banks.port import Bank
from payments_core.chains.port import Chain, NetworkKind
from payments_core.chains.read_only import READABLE_USDC
from payments_core.chains.served_chains import ServedChains
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import MAX_CLOCK_SKEW_MS, SECOND, Clock, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.secrets import MODES
from payments_core.engine.audit import PROGRAM, Actor
from payments_core.engine.clock_guard import SANDBOX_PATIENCE_MS, ClockGuard, GuardedClock
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.ports import Ports
from payments_core.entropy import Entropy, system_entropy
from payments_core.errors import FieldError, NotFound, ValidationFailed
from payments_core.explorers import NO_EXPLORER, Explorer, choose_explorer
from payments_core.hosted_onramps.port import HostedOnramp
from payments_core.networks import Networks, shipped_networks
from payments_core.parts import Parts
from payments_core.passed_objects import require_passed
from payments_core.plain_calls import call_plainly, require_plain_function
from payments_core.pricing.port import Pricing
from payments_core.providers import Providers
from payments_core.resources import Checkout, ClientTokens, Resources
from payments_core.routers.port import Router
from payments_core.sandbox.banks import choose_funding_banks
from payments_core.sandbox.chains import SandboxChain
from payments_core.sandbox.clock import SandboxClock, read_advance_ms
from payments_core.sandbox.payer import SandboxPayer
from payments_core.screening.port import Screening
from payments_core.settings import Settings
from payments_core.storage.capabilities import ChecksWritability
from payments_core.storage.port import DIRECTORY, Storage
from payments_core.telemetry import NOOP_TELEMETRY, CheckedTelemetry, Telemetry
from payments_core.tenants.authorization import Authority
from payments_core.tenants.master_keys import verify_or_register
from payments_core.tenants.operations import Tenants
from payments_core.tenants.operator_sessions import OperatorSessions
from payments_core.tenants.operators import Operators
from payments_core.tenants.record import App
from payments_core.validation.arguments import check_arguments, guard
from payments_core.waiting import NO_WAITS, Waits
from payments_core.webhooks.destinations import Resolver
from payments_core.webhooks.transports.port import Transport
from payments_core.webhooks.transports.resolver import SystemResolver
from payments_core.webhooks.transports.sockets import SocketTransport

REAL_BESIDE_SIMULATED = "has real money: only testnets may be served beside simulated chains"


class PaymentsService:
    """Accounts, Payments and related resources over one storage.

    `environment` binds an environment's authority once, and has an attribute for each resource.

    Without `chains` it is a sandbox, on `sandbox_chains` or on simulated chains, whose books are in
    the same storage; the resource `sandbox` of its environments controls them. Beside testnets in
    `chains` there may be `sandbox_chains`, or simulated chains with `simulated_chains`: all other
    networks are then simulated, and time is real. Without `clock` it
    takes the sandbox's clock there, or the system's clock. Without `kyc` verifications are
    simulated in the sandbox, and there are none in production; the same holds for `bank`,
    `pricing`, `router`, `onramp` and `screening`. Events go to `telemetry`.
    The audit trail names `host` where a change has no credential.
    A server passes its `waits`, where calls of other services are announced.
    Raises ValidationFailed for an object of the wrong kind, and TypeError for one with an
    asynchronous method of its port: nothing here awaits.
    The worker of a mode is made by `worker`; `payments_core_http.create_app` serves it.

    >>> embedded = PaymentsService(open_storage("memory:"), KeyRing.parse(KeyRing.generate()))
    >>> embedded
    <PaymentsService: chains simulated>
    >>> embedded.close()
    """

    settings: Settings
    """The settings of the deployment."""
    networks: Networks
    """The networks that are known, by their chain id; not all of them are served."""
    chains: Mapping[int, Chain]
    """The served chains, by their number; any other number raises ChainUnavailable."""
    tenants: Tenants
    """Partners, their apps and environments, and their keys."""
    operators: Operators
    """The people who may log in to an environment's dashboard."""
    operator_sessions: OperatorSessions
    """The log-ins of operators."""
    client_tokens: ClientTokens
    """The tokens of client sessions, which prove a browser's access."""
    checkout: Checkout
    """The links and secrets of payers."""
    parts: Parts
    """Everything that the service is made of, for serving and for tools that work on a whole
    deployment. Partners' programs need only the resources."""

    def __init__(
        self,
        storage: Storage,
        key_ring: KeyRing,
        *,
        settings: Settings | None = None,
        chains: Mapping[int, Chain] | None = None,
        sandbox_chains: Mapping[int, SandboxChain] | None = None,
        simulated_chains: bool = False,
        clock: Clock | None = None,
        entropy: Entropy = system_entropy,
        transport: Transport | None = None,
        resolver: Resolver | None = None,
        kyc: KycProvider | None = None,
        bank: Bank | None = None,
        pricing: Pricing | None = None,
        router: Router | None = None,
        onramp: HostedOnramp | None = None,
        screening: Screening | None = None,
        telemetry: Telemetry = NOOP_TELEMETRY,
        networks: Networks | None = None,
        host: Actor = PROGRAM,
        waits: Waits = NO_WAITS,
    ) -> None:
        require_passed(locals())  # which are the arguments, as long as nothing else is set
        require_plain_function(entropy, "entropy")
        self.settings = settings = settings or Settings()
        own_clock = SystemClock() if clock is None else None
        patience_ms = SANDBOX_PATIENCE_MS if chains is None else None
        self._clock_guard = ClockGuard(
            storage, own_clock, MAX_CLOCK_SKEW_MS, patience_ms=patience_ms
        )
        if clock is None:
            clock = SystemClock() if chains is not None else SandboxClock(storage)
        self.networks = _choose_networks(networks or shipped_networks(), chains or {})
        ports = self._make_ports(storage, key_ring, clock, entropy, telemetry, host)
        if not sandbox_chains and (chains is None or simulated_chains):
            sandbox_chains = _make_simulated_chains(ports)
        chains = chains or {}
        self._sandbox_chains = _leave_out(chains, sandbox_chains or {})
        if self._sandbox_chains:
            _refuse_mainnets(self.networks, chains)
        self.chains = ServedChains({**self._sandbox_chains, **chains})
        self._providers = Providers.choose(
            ports,
            self._sandbox_chains,
            kyc=kyc,
            bank=bank,
            pricing=pricing,
            router=router,
            onramp=onramp,
            screening=screening,
        )
        self._funding_banks = choose_funding_banks(bank, ports, self._sandbox_chains)
        self._transport = transport or SocketTransport()
        self.parts = Parts(
            ports,
            settings,
            self.chains,
            self._sandbox_chains,
            self._providers,
            self._funding_banks,
            self._transport,
            resolver or SystemResolver(),
            waits,
            refresh=self.refresh,
            catch_up=self._catch_up,
        )
        self._show_resources()

    def _show_resources(self) -> None:
        self.tenants = guard(self.parts.tenants)
        self.operators = guard(self.parts.operators)
        self.operator_sessions = guard(self.parts.operator_sessions)
        self.client_tokens = ClientTokens(self.parts)
        self.checkout = Checkout(self.parts)

    def _make_ports(
        self,
        storage: Storage,
        key_ring: KeyRing,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        host: Actor,
    ) -> Ports:
        return Ports.over(
            storage,
            key_ring,
            clock,
            entropy=entropy,
            telemetry=CheckedTelemetry(telemetry),
            response_retention_ms=self.settings.idempotency_retention_ms,
            guarded_clock=GuardedClock(clock, self._clock_guard),
            versions=self.settings.versions,
            networks=self.networks,
            host=host,
        )

    def __repr__(self) -> str:
        named = ["simulated"] if self._sandbox_chains else []
        named += [str(number) for number in self.chains if number not in self._sandbox_chains]
        return f"<PaymentsService: chains {', '.join(named)}>"

    def environment(self, environment_id: str, *, person: str | None = None) -> Resources:
        """Everything that an embedding program can do in one environment.

        `person` is who uses the program, for the audit trail. Raises NotFound, ValidationFailed.
        """
        authority = self.tenants.system_authority(environment_id)
        return self.acting_as(authority if person is None else authority.name_person(person))

    @check_arguments
    def acting_as(self, authority: Authority) -> Resources:
        """What an authority can do, such as the one that a credential proves."""
        return Resources(self.parts, authority)

    def require_mode(self, mode: str) -> None:
        """Raise ValueError if this service cannot serve the mode."""
        if mode not in MODES:
            raise ValueError(f"the mode must be one of {', '.join(MODES)}")
        if mode != "sandbox" and self._sandbox_chains:
            raise ValueError("simulated chains serve the sandbox only; other modes need `chains`")
        served = (self.networks[number] for number in self.chains if number in self.networks)
        testnets = [network.name for network in served if network.is_testnet]
        if mode != "sandbox" and testnets:
            raise ValueError(f"testnets serve the sandbox only: {', '.join(testnets)}")
        if mode == "sandbox" and self.chains.keys() != self._sandbox_chains.keys():
            self._require_real_time()  # production has its own clock, also on the same storage

    def _require_real_time(self) -> None:
        """Blocks of a real chain have real times, so that records must not be ahead of them."""
        ports = self.parts.ports
        if not isinstance(ports.clock, SandboxClock):
            ahead_ms = read_advance_ms(ports.storage)
            if ahead_ms > MAX_CLOCK_SKEW_MS:
                raise ValueError(
                    f"the clock of this sandbox was advanced by {ahead_ms // SECOND} s, which real"
                    " chains do not follow: use a new storage for them"
                )

    def worker(self, mode: str) -> Worker:
        """The worker that does this process's share of a mode's jobs; one per mode.

        Raises ValueError if this service cannot serve the mode.
        """
        self.require_mode(mode)
        return self.parts.background_jobs.worker(mode)

    def find_network_kind(self, chain_id: int) -> NetworkKind:
        """Where a chain is, for pages that lead wallets to it."""
        if chain_id in self._sandbox_chains:
            return self._sandbox_chains[chain_id].network_kind
        if self._sandbox_chains and chain_id not in self.chains:
            return "simulated"
        network = self.networks.get(chain_id)
        return "testnet" if network is not None and network.is_testnet else "real"

    def choose_explorer(self, chain_id: int) -> Explorer:
        """The explorer that shows a chain to everybody; it links nothing of a sandbox's own."""
        if self.find_network_kind(chain_id) not in ("real", "testnet"):
            return NO_EXPLORER
        return choose_explorer(self.networks.get(chain_id))

    def sandbox_payer(self, mode: str = "sandbox") -> SandboxPayer:
        """The simulated payer of Payments in the sandbox. Raises NotFound in another mode, or if
        a chain has real money."""
        if mode != "sandbox":
            raise NotFound("sandbox")
        return SandboxPayer(self.parts.sandbox(), self.parts.checkout, self.tenants)

    def refresh(self) -> None:
        """The first step of every request: a sandbox's clock may have been moved."""
        self._clock_guard.require_right()  # and a machine's may have jumped
        if isinstance(self.parts.ports.clock, SandboxClock):
            self.parts.ports.clock.refresh()

    def _catch_up(self) -> None:
        """A sandbox's time does not go back, also if the machine's does."""
        if self._sandbox_chains and isinstance(self.parts.ports.clock, SandboxClock):
            self.parts.ports.clock.catch_up(self._sandbox_chains)

    def check_ready(self) -> None:
        """Return if the storage answers and has room for writes, and hanging jobs have left a
        worker of this process enough threads. Raises StorageUnavailable, Unavailable."""
        self._clock_guard.require_right()
        self.parts.background_jobs.require_working()
        storage = self.parts.ports.storage
        storage.read(DIRECTORY, lambda snapshot: snapshot.get(App, "ready"))
        if isinstance(storage, ChecksWritability):
            call_plainly("require_writable", storage.require_writable)

    def verify_key_ring(self) -> None:
        """Return if the key ring is the one with which the storage was created.

        Raises UnknownKeyRing, StorageUnavailable, Unavailable.
        """
        verify_or_register(
            self.parts.ports.storage, self.parts.ports.committer, self.parts.ports.key_ring
        )

    def close(self, within_s: float = 30.0) -> None:
        """Stop the workers, waiting at most that long, and close everything that is open."""
        self.parts.background_jobs.stop(within_s)
        call_plainly("the transport's close", self._transport.close)
        call_plainly("the storage's close", self.parts.ports.storage.close)


def _choose_networks(networks: Networks, chains: Mapping[int, Chain]) -> Networks:
    """The registry of a service that serves these chains. Raises ValidationFailed.

    A registered chain gets vaults and Payments, so one from which only balances are read must not
    be registered.
    """
    faults = tuple(
        FieldError(f"chains[{number}]", message)
        for number, chain in chains.items()
        for is_wrong, message in (
            (
                number not in networks and chain.chain_type not in READABLE_USDC,
                "is not registered: add its Network to `networks`",
            ),
            (
                number in networks and chain.chain_type in READABLE_USDC,
                f"is of type {chain.chain_type}, which is only read: leave it out of `networks`",
            ),
        )
        if is_wrong
    )
    if faults:
        raise ValidationFailed(faults)
    if networks is not shipped_networks():  # which a test checks
        # Whoever has made a `Networks` without `merge` has checked nothing.
        networks = networks.merge(*networks.values())
    return networks.keep_served(chains)


def _refuse_mainnets(networks: Networks, chains: Mapping[int, Chain]) -> None:
    """Raise ValidationFailed for each chain of real money beside chains of a sandbox's own."""
    faults = tuple(
        FieldError(f"chains[{number}]", REAL_BESIDE_SIMULATED)
        for number in chains
        if number in networks and not networks[number].is_testnet
    )
    if faults:
        raise ValidationFailed(faults)


def _leave_out(
    served: Mapping[int, Chain], simulated: Mapping[int, SandboxChain]
) -> Mapping[int, SandboxChain]:
    return {number: chain for number, chain in simulated.items() if number not in served}


def _make_simulated_chains(ports: Ports) -> dict[int, SimulatedChain]:
    return {chain_id: SimulatedChain(chain_id, ports) for chain_id in ports.networks}
