"""The life of a process of a deployment: start, report that it is ready, end on a signal.

A start refuses settings that it must not run with, then brings the storage's schema up to date,
unless the program around it does that. On the first SIGTERM, SIGINT or SIGHUP the process accepts
no more, finishes what was begun, and is not ready from then on. A second SIGTERM or SIGINT ends it
immediately, which loses nothing: the next start continues, as after any crash.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

import attrs

from payments_core import __version__
from payments_core.evolve import evolve
from payments_core.service import PaymentsService
from payments_core.waiting import NO_WAITS, Waits
from payments_core_http.app import create_app
from payments_core_http.client_address import parse_networks
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.opening import (
    OWN_COMMAND,
    Surroundings,
    begin_logs,
    open_service,
)
from payments_core_http.deployment.startup_rules import require_startable
from payments_core_http.deployment.supervisor import Member, become_member
from payments_core_http.deployment.worker_names import hold_worker_name
from payments_core_http.observability import logs
from payments_core_http.observability.management import ManagementServer
from payments_core_http.observability.metrics import Metrics
from payments_core_http.observability.tracing import TracedMetrics, add_tracing
from payments_core_http.request_recorder import RequestRecorder
from payments_core_http.server.server import SWITCH_INTERVAL_S, listen
from payments_core_http.server.shared_queue import QueueMember, SharedQueue
from payments_core_http.server.signal_safety import receive
from payments_core_http.serving import build_server, new_pool

OnReady = Callable[["RunningProcess"], None]
"""Called once, when a process is ready."""

EXIT_STUCK = 75
"""The exit code of a worker that has too few threads left: restart it (EX_TEMPFAIL)."""

_log = logging.getLogger(__name__)


@attrs.frozen
class RunningProcess:
    """A process that is ready, and its addresses."""

    url: str | None
    management_url: str | None


def serve(configuration: Configuration, ready: OnReady) -> None:
    """Answer requests until a signal comes, in as many processes as `http.processes` says.

    `ready` is called with the first. Raises ConfigurationRefused, StorageError, OSError.
    """
    http = configuration.http
    if http.processes == 1:
        _serve_alone(configuration, ready)
        return
    require_startable(configuration)
    logs.configure(configuration.log.level, configuration.log.format)
    with assembling.report_listen_failure("http.port", http.host, http.port):
        listening = listen(http.host, http.port, reuse_port=http.reuse_port)
    with listening:
        queue = SharedQueue(listening, http.processes)
        member = become_member(
            queue,
            lambda processes: _announce_ready(ready, RunningProcess(**processes[0])),
        )
        if member is not None:
            logs.name_process(member.number)
            _serve_alone(
                _configure_member(configuration, member.number),
                lambda running: member.announce_ready(attrs.asdict(running)),
                member,
                QueueMember(queue, member.number),
            )


def _configure_member(configuration: Configuration, number: int) -> Configuration:
    """Each of several processes has its own operators' port, with consecutive numbers."""
    management = configuration.management
    if not management.port:
        return configuration
    own = evolve(management, port=management.port + number - 1)
    return evolve(configuration, management=own)


def _serve_alone(
    configuration: Configuration,
    ready: OnReady,
    member: Member | None = None,
    queue: QueueMember | None = None,
) -> None:
    http = configuration.http
    pool = new_pool(http.threads)
    with _start_deployment(configuration, pool) as (service, metrics, observer):
        recorder = RequestRecorder.over(service, configuration.mode, observer)
        app = create_app(
            service,
            mode=configuration.mode,
            threads=http.threads,
            throttle=assembling.build_throttle(configuration),
            observer=recorder,
            waits=pool,
        )
        with assembling.report_listen_failure("http.port", http.host, http.port):
            server = build_server(
                app,
                service.parts.ports.identifiers,
                host=http.host,
                port=http.port,
                reuse_port=http.reuse_port,
                queue=queue,
                pool=pool,
            )
        is_stopping = _stop_on_signals(server.stop, member)
        with _run_management(configuration, service, metrics, is_stopping) as management_url:
            recorder.start()
            _announce_ready(ready, RunningProcess(server.url, management_url))
            try:
                server.run(http.drain_s)
            finally:
                recorder.stop()


def work(
    configuration: Configuration, ready: OnReady, surroundings: Surroundings = OWN_COMMAND
) -> None:
    """Do jobs until a signal comes. Raises ConfigurationRefused, StorageError, OSError.

    If hanging jobs leave too few threads, the other jobs are finished, and the process ends with
    EXIT_STUCK.
    """
    with (
        hold_worker_name(configuration) as name,
        _start_deployment(configuration, surroundings=surroundings) as (service, metrics, _),
    ):
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        ends: queue.SimpleQueue[None] = queue.SimpleQueue()
        end = partial(ends.put, None)
        worker = service.worker(configuration.mode)
        if name is not None and (left := worker.take_over(name)):
            _log.info("%d jobs of the previous worker are resumed", left)
        is_stopping = _stop_on_signals(end)
        worker.hung.on_stuck = end
        surroundings.register(service)
        metrics.expect_scans(service.chains)
        worker.start(configuration.worker.threads)
        with _run_management(configuration, service, metrics, is_stopping) as management_url:
            _announce_ready(ready, RunningProcess(None, management_url))
            receive(ends)
            if not worker.stop(configuration.worker.drain_s):
                _log.warning(
                    "some jobs did not finish in time; they run again when their leases expire"
                )
            if worker.hung.is_stuck and not is_stopping():
                _log.error(
                    "this process ends with exit code %d, so that it is restarted", EXIT_STUCK
                )
                os._exit(EXIT_STUCK)  # like a crash: hanging jobs might block an orderly end


@contextmanager
def _start_deployment(
    configuration: Configuration,
    waits: Waits = NO_WAITS,
    surroundings: Surroundings = OWN_COMMAND,
) -> Iterator[tuple[PaymentsService, Metrics, Metrics | TracedMetrics]]:
    """The service on a storage that is up to date, its metrics, and the observer of requests."""
    require_startable(configuration)
    begin_logs(configuration, surroundings)
    key_ring = assembling.build_key_ring(configuration)
    mode = configuration.mode
    metrics = Metrics(__version__, mode)
    observer = add_tracing(
        metrics, __version__, mode, parse_networks(configuration.http.trusted_proxies)
    )
    storage = assembling.build_storage(configuration, waits)
    with contextlib.closing(storage), contextlib.closing(observer):
        service = open_service(
            configuration, storage, key_ring, surroundings, telemetry=observer, waits=waits
        )
        metrics.watch(service, mode)
        try:
            yield service, metrics, observer
        finally:
            service.close(within_s=0)  # `work` has already waited for its jobs


@contextmanager
def _run_management(
    configuration: Configuration,
    service: PaymentsService,
    metrics: Metrics,
    is_stopping: Callable[[], bool],
) -> Iterator[str | None]:
    """The operators' listener during the block, if one is configured, and its URL."""
    settings = configuration.management
    if settings.port is None:
        yield None
        return
    with assembling.report_listen_failure("management.port", settings.host, settings.port):
        management = ManagementServer(
            settings.host, settings.port, metrics, service.check_ready, is_stopping=is_stopping
        )
    management.start()
    try:
        yield management.url
    finally:
        management.stop()


def _stop_on_signals(
    stop: Callable[[], object], member: Member | None = None
) -> Callable[[], bool]:
    """Stop at the first signal, or when the parent of several processes requests it.

    The returned function says whether that has happened.
    """
    stopping = terminated = False
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal stopping, terminated
        if number != signal.SIGHUP:  # a second signal may come together with another, or before it
            if terminated:
                os._exit(1)
            terminated = True
        if not stopping:
            stopping = True
            stop()

    def be_asked() -> None:
        nonlocal asked
        asked = True
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under `nohup`
        signal.signal(signal.SIGHUP, handle)
    if member is not None:
        member.call_at_end(be_asked)
    return lambda: stopping or asked


def _announce_ready(ready: OnReady, running: RunningProcess) -> None:
    """Report to the caller, and to systemd if it listens (sd_notify(3))."""
    ready(running)
    _log.info("ready")
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with unix as notify, contextlib.suppress(OSError):
            notify.sendto(
                b"READY=1", address.replace("@", "\0", 1) if address[0] == "@" else address
            )
