"""The composition root: one object that holds the ports, with one attribute per resource."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.operations import Accounts
from payments_core.assets import CHAINS
from payments_core.chains.outbox import Outbox
from payments_core.chains.port import Chain
from payments_core.chains.simulated import SimulatedChain
from payments_core.client_sessions.operations import ClientSessions
from payments_core.clock import MINUTE, Clock, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.secrets import MODES
from payments_core.credentials.tokens import Tokens
from payments_core.decision import Ledger
from payments_core.entropy import Entropy, system_entropy
from payments_core.errors import NotFound
from payments_core.funding import sending
from payments_core.funding.operations import SEND, Funding
from payments_core.funding.sending import FundingJobs
from payments_core.idempotency.purging import PURGE, Purge
from payments_core.idempotency.record import RETENTION_MS
from payments_core.identifiers import Identifiers
from payments_core.jobs.worker import Handler, Queue, Worker
from payments_core.options.operations import Options
from payments_core.payments import operations as payments
from payments_core.payments import release
from payments_core.payments.links import Links
from payments_core.payments.operations import Payments
from payments_core.payments.release import ReleaseJobs
from payments_core.sandbox.clock import SandboxClock
from payments_core.sandbox.operations import Sandbox
from payments_core.storage.port import DIRECTORY, Storage
from payments_core.tenants.operations import Tenants
from payments_core.tenants.record import App
from payments_core.vaults.operations import Vaults
from payments_core.webhooks.delivery import WEBHOOKS, WebhookDelivery
from payments_core.webhooks.destinations import Resolver
from payments_core.webhooks.operations import WebhookEndpoints
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import Transport
from payments_core.webhooks.transports.resolver import SystemResolver
from payments_core.webhooks.transports.threads import ThreadsTransport

QUEUES = (
    Queue("chain", slots=1, lease_ms=MINUTE),
    Queue("timers", slots=16, lease_ms=MINUTE),
    WEBHOOKS,
)


@attrs.frozen
class Settings:
    """What a deployment decides.

    `public_url` is where payers reach the checkout pages. `idempotency_retention_ms` is how long
    a request with an Idempotency-Key is answered from the store.
    """

    public_url: str = "http://127.0.0.1:8080"
    idempotency_retention_ms: int = RETENTION_MS
    webhooks: WebhookSettings = attrs.field(factory=WebhookSettings)


class PaymentsService:
    """Accounts, Payments and all around them, over one storage.

    Without `chains` it runs on simulated ones, whose books are in the same storage; `sandbox`
    then has their doors. Without `clock` it takes the sandbox's clock there, else the system's.
    The worker of a mode is made by `worker`; `payments_core_http.create_app` serves it.
    """

    def __init__(
        self,
        storage: Storage,
        key_ring: KeyRing,
        *,
        settings: Settings | None = None,
        chains: Mapping[int, Chain] | None = None,
        clock: Clock | None = None,
        entropy: Entropy = system_entropy,
        transport: Transport | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self.storage = storage
        self.key_ring = key_ring
        self.settings = settings or Settings()
        if clock is None:
            clock = SystemClock() if chains is not None else SandboxClock(storage)
        self.clock = clock
        self.identifiers = Identifiers(clock, entropy)
        self.ledger = Ledger(storage, clock, self.identifiers, key_ring)
        self._simulated = {} if chains is not None else self._simulated_chains()
        self.chains: Mapping[int, Chain] = chains if chains is not None else self._simulated
        self.tokens = Tokens(key_ring)
        self.links = Links(key_ring, entropy, self.settings.public_url)
        self.tenants = Tenants(storage, self.ledger, clock, self.identifiers, key_ring, entropy)
        self.accounts = Accounts(storage, self.ledger, clock, self.chains)
        self.client_sessions = ClientSessions(
            storage, self.ledger, clock, self.tokens, self.accounts
        )
        self.vaults = Vaults(storage, self.chains)
        self.payments = Payments(storage, self.ledger, clock, self.chains, self.tokens, self.links)
        self.options = Options(storage, self.ledger, clock)
        self.funding = Funding(storage, self.ledger, clock, self.vaults)
        self._resolver = resolver or SystemResolver()
        self._transport = transport or ThreadsTransport()
        self.webhooks = WebhookEndpoints(
            self.ledger,
            storage,
            clock,
            key_ring,
            self._resolver,
            self.settings.webhooks,
            entropy,
        )
        self._workers: dict[str, Worker] = {}

    def require_mode(self, mode: str) -> None:
        """Raise ValueError where this service cannot serve the mode."""
        if mode not in MODES:
            raise ValueError(f"the mode must be one of {', '.join(MODES)}")
        if mode != "sandbox" and self._simulated:
            raise ValueError("simulated chains serve the sandbox alone; give `chains` for others")

    def worker(self, mode: str) -> Worker:
        """The worker that does this process's share of a mode's jobs; one per mode.

        Raises ValueError where this service cannot serve the mode.
        """
        self.require_mode(mode)
        if mode not in self._workers:
            worker = Worker(
                self.storage,
                self.clock,
                mode,
                self._handlers(mode),
                QUEUES,
                refresh=self.refresh,
            )
            self._workers[mode] = worker
            self.ledger.on_commit(worker.wake)
        return self._workers[mode]

    def sandbox(self, mode: str = "sandbox") -> Sandbox:
        """The sandbox's doors. Raises NotFound in another mode, or where the chains are real."""
        if mode != "sandbox" or not self._simulated:
            raise NotFound("sandbox")
        return Sandbox(self.storage, self.ledger, self._simulated, self.clock, self.worker(mode))

    def refresh(self) -> None:
        """What a process does first in every request: a sandbox's clock may have been moved."""
        if isinstance(self.clock, SandboxClock):
            self.clock.refresh()

    def ready(self) -> None:
        """Return if the storage answers. Raises StorageUnavailable."""
        self.storage.read(DIRECTORY, lambda snapshot: snapshot.get(App, "ready"))

    def close(self) -> None:
        """Stop the workers and give back what is open."""
        for worker in self._workers.values():
            worker.stop()
        self._transport.close()
        self.storage.close()

    def _simulated_chains(self) -> dict[int, SimulatedChain]:
        return {
            chain_id: SimulatedChain(chain_id, self.storage, self.ledger, self.clock)
            for chain_id in CHAINS
        }

    def _handlers(self, mode: str) -> dict[str, Handler]:
        """What does which job: the one table of them."""
        outbox = Outbox(self.ledger, self.chains)
        funding = FundingJobs(
            self.storage, self.ledger, self.clock, self.chains, outbox, self.vaults
        )
        releases = ReleaseJobs(self.storage, self.ledger, self.clock, self.chains, outbox)
        delivery = WebhookDelivery(
            self.ledger,
            self.storage,
            self.clock,
            self.key_ring,
            self._transport,
            self._resolver,
            mode,
            self.settings.webhooks,
        )
        return {
            SEND: funding.send,
            sending.WATCH: funding.watch,
            release.RELEASE: releases.send,
            release.WATCH_RELEASE: releases.watch,
            PURGE: Purge(self.storage, self.ledger, self.clock).run,
            payments.EXPIRE: self.payments.run_expiry,
            **delivery.handlers(),
        }
