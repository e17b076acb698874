"""What the tests of webhooks stand on: a service's ports, a transport that answers as set."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.clock import FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.committer import Committer
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.events import BY_NAME, Event, NewEvent
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage, Transaction
from payments_core.tenants.authorization import SYSTEM_REQUIREMENT, Authority
from payments_core.tenants.record import Environment
from payments_core.validation.arguments import guard
from payments_core.webhooks.destinations import ResolutionFailed
from payments_core.webhooks.dispatch.attempt import AttemptRunner
from payments_core.webhooks.dispatch.dispatcher import Dispatcher
from payments_core.webhooks.dispatch.job_handlers import (
    DELIVERY_QUEUE,
    FAN_OUT_QUEUE,
    TASK_QUEUE,
    WebhookJobHandlers,
)
from payments_core.webhooks.operations import WebhookEndpoints
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import (
    Deadline,
    Transport,
    TransportResult,
    WebhookRequest,
)

OK = TransportResult(200, b"thanks")
PUBLIC = "93.184.216.34"
HOOK = "https://partner.example/hook"


@attrs.define
class Names:
    """A resolver over a table; a name that is not in it has the public address."""

    table: dict[str, Sequence[str] | None] = attrs.field(factory=dict)
    asked: list[str] = attrs.field(factory=list)

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        self.asked.append(host)
        addresses = self.table.get(host, (PUBLIC,))
        if addresses is None:
            raise ResolutionFailed("no such name")
        return addresses


@attrs.define
class Wire:
    """A transport that keeps what it was to send, and answers as set, the last answer forever."""

    answers: list[TransportResult] = attrs.field(factory=lambda: [OK])
    sent: list[tuple[WebhookRequest, tuple[str, ...]]] = attrs.field(factory=list)

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        self.sent.append((request, tuple(addresses)))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def close(self) -> None:
        pass


@attrs.define
class Bench:
    """One environment with its webhooks."""

    storage: Storage = attrs.field(factory=MemoryStorage)
    clock: FixedClock = attrs.field(factory=FixedClock)
    wire: Transport = attrs.field(factory=Wire)
    names: Names = attrs.field(factory=Names)
    settings: WebhookSettings = attrs.field(factory=WebhookSettings)
    key_ring: KeyRing = attrs.field(factory=lambda: KeyRing.parse(KeyRing.generate()))
    ports: Ports = attrs.field(init=False)
    committer: Committer = attrs.field(init=False)
    endpoints: WebhookEndpoints = attrs.field(init=False)
    attempts: AttemptRunner = attrs.field(init=False)
    delivery: WebhookJobHandlers = attrs.field(init=False)
    worker: Worker = attrs.field(init=False)
    authority: Authority = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.ports = Ports.over(self.storage, self.key_ring, self.clock)
        self.committer = self.ports.committer
        endpoints = WebhookEndpoints(self.ports, self.names, self.settings, RemoteCalls(4))
        self.endpoints = guard(endpoints)
        self.attempts = AttemptRunner(self.ports, self.wire, self.names, self.settings)
        self.delivery = WebhookJobHandlers(self.ports, self.attempts, "sandbox")
        self.worker = Worker(
            self.storage,
            self.clock,
            "sandbox",
            self.delivery.handlers(),
            (FAN_OUT_QUEUE, DELIVERY_QUEUE, TASK_QUEUE),
            batch_handlers=self.delivery.batch_handlers(),
        )  # fmt: skip
        self.worker.attach(
            Dispatcher(self.ports, self.attempts, self.delivery, self.worker.parking, "sandbox")
        )
        self.authority = self.environment("env_a").trace_as("webhooks.tests", ())

    def environment(self, id: str) -> Authority:
        now = self.clock.now()
        environment = Environment(
            id=id, app_id="app_a", partner_id="partner", app_name="App", mode="sandbox",
            api_version="2026-09-09", products=("webhooks",), created_at_ms=now, updated_at_ms=now,
        )  # fmt: skip
        Committer.commit(
            self.committer, WorkerAuthority(id, "sandbox"),
            lambda tx, id_sequence: Decision(None, inserts=(environment,)),
        )  # fmt: skip
        stored = self.storage.read(id, lambda snapshot: snapshot.get(Environment, id))
        assert stored is not None
        return Authority(
            requirement=SYSTEM_REQUIREMENT, environment=stored, api_version="2026-09-09"
        )

    def endpoint(self, url: str = HOOK, *events: str) -> Endpoint:
        return self.endpoints.create(self.authority, url=url, subscribed_events=events)[0]

    def happen(
        self,
        name: str = "account.created",
        account_id: str | None = "acct_1",
        external_user_id: str | None = "user 1",
    ) -> str:
        """Commit an event, and return its id."""
        new_event = NewEvent(
            name, dict.fromkeys(BY_NAME[name].fields, "x"), "2026-09-09",
            account_id, external_user_id,
        )  # fmt: skip

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            return Decision(None, events=(new_event,))

        before = set(self.event_ids(name))
        self.committer.commit(WorkerAuthority(self.authority.partition, "sandbox"), decide)
        (id,) = set(self.event_ids(name)) - before
        return id

    def event_ids(self, name: str = "") -> list[str]:
        """Those of one name, or all: a delivery that fails makes an event of another name."""
        page = self.storage.read(
            self.authority.partition, lambda tx: tx.find(Event, "by_created", limit=1000)
        )
        return [event.id for event in page.records if name in {"", event.name}]

    def run(self) -> int:
        return self.worker.run_until_idle()

    def run_for(self, seconds: int) -> int:
        until = self.clock.now() + seconds * 1000
        return self.worker.run_through(
            until, lambda to: self.clock.advance((to - self.clock.now()) / 1000) and None
        )

    def deliveries(self, endpoint: Endpoint) -> tuple[Delivery, ...]:
        """Newest first, as a partner sees them."""
        return self.endpoints.list_deliveries(self.authority, endpoint.id, limit=100)[1].records

    def stored(self, endpoint: Endpoint) -> tuple[Delivery, ...]:
        """Newest first, as the rows are."""
        return self.storage.read(
            self.authority.partition,
            lambda tx: tx.find(Delivery, "by_endpoint", (endpoint.id,), limit=100),
        ).records

    def jobs_of(self, endpoint: Endpoint) -> tuple[Job, ...]:
        return self.jobs_in(DELIVERY_QUEUE, f"endpoint:{endpoint.id}")

    def jobs_in(self, queue: Queue, lane: str) -> tuple[Job, ...]:
        key = (queue.full_name("sandbox"), lane)
        return self.storage.read(
            self.authority.partition,
            lambda tx: tx.find(Job, "by_queue_lane", key, limit=1000),
        ).records
