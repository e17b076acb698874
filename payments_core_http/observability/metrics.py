"""Prometheus metrics: what the core and the application report, counted and timed.

One registry per process. `payments_core_http.observability.metric_catalog` says what each metric
means.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from payments_core.accounts.vaults.balance import StaleBalance
from payments_core.chains.outbox.nonces import SignerKeyChanged
from payments_core.chains.outbox.record import StaleChainView
from payments_core.chains.port import ChainUnavailable
from payments_core.engine.decision import LeaseLost
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import PaymentsError, Unavailable
from payments_core.telemetry import AttemptOutcome, EndAttempt, HeldFinding, RetryReason
from payments_core_http.observability.metric_catalog import METRICS, Metric
from payments_core_http.observability.requests import ObservedRequest

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

ErrorType = type[BaseException] | None

OUTCOME_BY_ERROR: tuple[tuple[type[BaseException], str], ...] = (
    (AlreadyResponded, "replayed"),
    (LeaseLost, "lost"),
    (Unavailable, "unavailable"),
    (ChainUnavailable, "unavailable"),
    (PaymentsError, "refused"),
    (StaleChainView, "outdated"),
    (StaleBalance, "outdated"),
    (SignerKeyChanged, "outdated"),
)
"""The outcome of a commit that raised; the first match applies."""

_LOGGERS = ("payments_core", "payments_core_http")


class Metrics:
    """Listens to the core (`payments_core.telemetry.Telemetry`) and to the application
    (`payments_core_http.observability.requests.RequestObserver`)."""

    def __init__(self, service_version: str, mode: str) -> None:
        from prometheus_client import (
            CollectorRegistry,
            GCCollector,
            PlatformCollector,
            ProcessCollector,
        )

        self.registry: CollectorRegistry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._families = {
            metric.name: _register(metric, self.registry)
            for metric in METRICS
            if not metric.at_scrape
        }
        self._children: dict[tuple[str, ...], Any] = {}
        self._in_flight: set[ObservedRequest] = set()
        in_flight = self._families["payments_http_requests_in_flight"]
        in_flight.set_function(lambda: len(self._in_flight))
        self._alarms = _AlarmHandler(self)
        self._watched: list[Any] = []
        for metric in METRICS:
            for value in metric.known:
                self._child(metric.name, value)
        self._child("payments_build_info", service_version, mode).set(1)

    def watch(self, service: PaymentsService, mode: str) -> None:
        """Report a service's queues and storage at each scrape, and count its alarms."""
        from payments_core_http.observability.backlog import BacklogCollector

        backlog = BacklogCollector(service, mode)
        self.registry.register(backlog)
        self._watched.append(backlog)
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self._alarms)  # adds it once

    def expect_scans(self, chains: Iterable[int]) -> None:
        """Report from now on how long ago each of these was scanned, also if none ever is."""
        for number in chains:
            name = "payments_chain_last_scan_timestamp_seconds"
            self._child(name, str(number)).set_to_current_time()

    def close(self) -> None:
        """Undo `watch`."""
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self._alarms)
        for backlog in self._watched:
            self.registry.unregister(backlog)
        self._watched = []

    def render_exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics in a format that an `Accept` header names, and its content type."""
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    # The application's observer.

    def observe_request(
        self, request: ObservedRequest, environ: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        self._in_flight.add(request)
        return _Timer(lambda took_s, failure: self._record_request(request, took_s))

    def _record_request(self, request: ObservedRequest, took_s: float) -> None:
        self._in_flight.discard(request)
        route, method = request.route, request.method
        status_class = f"{request.status // 100}xx"
        self._child("payments_http_requests_total", route, method, status_class).inc()
        self._child("payments_http_request_seconds", route, method).observe(took_s)
        if request.is_replay:
            self._child("payments_http_replays_total").inc()
        if request.rate_limit_reason is not None:
            self._child("payments_http_rate_limited_total", request.rate_limit_reason).inc()

    # The core's telemetry.

    def observe_job(self, queue: str, kind: str, count: int = 1) -> AbstractContextManager[object]:
        def record_job(took_s: float, failure: ErrorType) -> None:
            outcome = (
                "ok" if failure is None else _choose_by_error(failure, LeaseLost, "lost", "failed")
            )
            histogram = self._child("payments_job_seconds", queue, kind, outcome)
            for _ in range(count):
                histogram.observe(took_s)

        return _Timer(record_job)

    def record_parked(self, queue: str, kind: str) -> None:
        self._child("payments_jobs_parked_total", queue, kind).inc()

    def observe_attempt(self) -> AbstractContextManager[EndAttempt]:
        return _AttemptTimer(self._record_attempt)

    def _record_attempt(self, took_s: float, outcome: str) -> None:
        self._child("payments_webhook_attempt_seconds", outcome).observe(took_s)

    def observe_commit(self) -> AbstractContextManager[object]:
        return _Timer(self._record_commit)

    def _record_commit(self, took_s: float, failure: ErrorType) -> None:
        self._child("payments_commit_seconds", _classify_commit(failure)).observe(took_s)

    def record_retry(self, why: RetryReason) -> None:
        self._child("payments_commit_reruns_total", why).inc()

    def record_scan(self, chain_id: int, height: int, head: int) -> None:
        chain = str(chain_id)
        self._child("payments_chain_scanned_height", chain).set(height)
        self._child("payments_chain_head_height", chain).set(head)
        self._child("payments_chain_last_scan_timestamp_seconds", chain).set_to_current_time()

    def record_scan_failure(self, chain_id: int) -> None:
        self._child("payments_chain_scan_errors_total", str(chain_id)).inc()

    def record_stored_bytes(self, stored: int, limit: int) -> None:
        self._child("payments_stored_bytes").observe(stored)
        self._child("payments_stored_share").observe(stored / limit if limit else 1.0)

    def record_held(self, finding: HeldFinding) -> None:
        self._child("payments_transfers_held_total", finding).inc()

    def count_alarm(self, source: str) -> None:
        """A record began with `ALARM`."""
        self._child("payments_alarms_total", source).inc()

    def _child(self, name: str, *labels: str) -> Any:
        """A metric with its labels. The library's own look-up takes a lock, and longer."""
        key = (name, *labels)
        child = self._children.get(key)
        if child is None:
            family = self._families[name]
            child = self._children[key] = family.labels(*labels) if labels else family
        return child


class _Timer:
    """Times the block, and reports how it ended."""

    __slots__ = ("_began", "_ended")

    def __init__(self, ended: Callable[[float, ErrorType], None]) -> None:
        self._ended = ended

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(
        self, kind: ErrorType, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended(time.perf_counter() - self._began, kind)


class _AttemptTimer:
    """A timer of an attempt, whose outcome is set from outside."""

    __slots__ = ("_began", "_ended", "_outcome")

    def __init__(self, ended: Callable[[float, str], None]) -> None:
        self._ended = ended
        self._outcome = "fault"

    def __enter__(self) -> EndAttempt:
        self._began = time.perf_counter()
        return self._set_outcome

    def _set_outcome(self, outcome: AttemptOutcome) -> None:
        self._outcome = outcome

    def __exit__(
        self, kind: ErrorType, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended(time.perf_counter() - self._began, self._outcome)


class _AlarmHandler(logging.Handler):
    """Counts the records that begin with `ALARM`, so that code that logs one needs no metrics."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("ALARM"):
            self._metrics.count_alarm(record.name.partition(".")[2] or record.name)


def _register(metric: Metric, registry: Any) -> Any:
    from prometheus_client import Counter, Gauge, Histogram

    if metric.kind == "histogram":
        return Histogram(
            metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=registry
        )
    kind = Counter if metric.kind == "counter" else Gauge
    return kind(metric.name, metric.help, metric.labels, registry=registry)


def _classify_commit(failure: ErrorType) -> str:
    if failure is None:
        return "committed"
    return next((name for kind, name in OUTCOME_BY_ERROR if issubclass(failure, kind)), "failed")


def _choose_by_error(
    failure: type[BaseException], kind: type[BaseException], yes: str, no: str
) -> str:
    return yes if issubclass(failure, kind) else no
