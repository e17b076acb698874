"""OpenTelemetry: a span for each request, each job and each attempt at a webhook.

It is enabled by the standard variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT`, if the extra `otel`
is installed; otherwise nothing of it is imported. There are no other variables.

A caller's `traceparent` counts only if the caller is a trusted proxy: anyone else could join our
traces to their own, and have them all sampled. Webhooks carry none, so that partners learn no trace
of ours. No span has a path, a query, a header, a body or an exception's text: they may contain
secrets. A span has the route instead of the path, and the exception's class instead of its text.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from payments_core.extras import describe_need
from payments_core.fork_safety import register_fork_reset
from payments_core.telemetry import AttemptOutcome, EndAttempt, HeldFinding, RetryReason
from payments_core_http import redaction
from payments_core_http.client_address import Proxy, is_trusted
from payments_core_http.observability.bounded_probe import BoundedProbe
from payments_core_http.observability.metrics import Metrics
from payments_core_http.observability.requests import NO_ROUTE, ObservedRequest

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Span, SpanKind, Tracer

    from payments_core.service import PaymentsService

SERVICE_NAME = "payments-core"
"""The default of `OTEL_SERVICE_NAME`."""

FLUSH_TIMEOUT_S = 5.0
"""How long the end of a process waits for the last spans to be sent."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
"""Variables with the collector's key; OpenTelemetry logs values that it cannot parse as is."""
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

_log = logging.getLogger(__name__)


def add_tracing(
    metrics: Metrics, version: str, mode: str, trusted_proxies: tuple[Proxy, ...] = ()
) -> Metrics | TracedMetrics:
    """The metrics, together with traces if they are configured."""
    tracer = make_tracer(version, mode)
    return metrics if tracer is None else TracedMetrics(metrics, tracer, trusted_proxies)


def make_tracer(version: str, mode: str, environ: Mapping[str, str] = os.environ) -> Tracer | None:
    """The tracer that the environment's `OTEL_*` variables configure, if any.

    A tracer that was already set up, for example by `opentelemetry-instrument`, is used as it is.
    """
    redaction.register_secrets(_find_secrets(environ))
    if not _is_configured(environ):
        return None
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
    except ModuleNotFoundError as missing:
        _log.warning("OTEL_* enables traces: the export %s", describe_need(missing.name or ""))
        return None
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = _make_exporting_provider(version, mode)
    return provider.get_tracer(SERVICE_NAME, version)


def _is_configured(environ: Mapping[str, str]) -> bool:
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if exporters == "none" or not (exporters or any(environ.get(name) for name in _ENDPOINTS)):
        return False
    if exporters not in ("", "otlp"):
        _log.warning("no traces: OTEL_TRACES_EXPORTER must be otlp or none")
        return False
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        _log.warning("no traces: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf")
        return False
    return True


def _find_secrets(environ: Mapping[str, str]) -> Iterator[str]:
    """The headers of the exporter: the whole text, each header, and each value."""
    for variable in _HEADERS:
        text = environ.get(variable, "")
        for header in (text, *text.split(",")):
            value = header.partition("=")[2]
            yield from (header.strip(), value.strip(), unquote(value).strip())


def _make_exporting_provider(version: str, mode: str) -> Any:
    """A provider that sends spans by OTLP over HTTP; the variables configure where, and which."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    own = {"service.version": version, "deployment.environment.name": mode}
    own = {name: value for name, value in own.items() if name not in resource.attributes}
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        own["service.name"] = SERVICE_NAME
    # `TracedMetrics.close` ends it: at the exit of the interpreter the wait for it would have no
    # bound.
    provider = TracerProvider(resource=resource.merge(Resource(own)), shutdown_on_exit=False)
    exporter: Any = _ProcessExporter(OTLPSpanExporter)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class _ProcessExporter:
    """An exporter for each process: a forked child has copies of its parent's connections, and
    would read the answers to its parent's spans. The processor is made again by OpenTelemetry.
    """

    def __init__(self, make: Callable[[], SpanExporter]) -> None:
        self._make = make
        self._made: SpanExporter | None = make()
        self._inherited: tuple[SpanExporter | None, ...] = ()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Make another when it is needed. The parent's is kept: to close it may speak TLS."""
        self._inherited, self._made = (*self._inherited, self._made), None

    def _exporter(self) -> SpanExporter:
        if self._made is None:
            self._made = self._make()
        return self._made

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See OpenTelemetry's SpanExporter; so are the others."""
        return self._exporter().export(spans)

    def shutdown(self) -> None:
        self._exporter().shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter().force_flush(timeout_millis)


class TracedMetrics:
    """Updates the metrics and makes spans, as telemetry of the core and observer of requests."""

    def __init__(
        self, metrics: Metrics, tracer: Tracer, trusted_proxies: tuple[Proxy, ...] = ()
    ) -> None:
        from opentelemetry import propagate, trace
        from opentelemetry.context import Context

        self._metrics = metrics
        self._tracer = tracer
        self._trusted = trusted_proxies
        self._trace = trace
        self._extract = propagate.extract
        self._nobody = Context()

    def watch(self, service: PaymentsService, mode: str) -> None:
        """The registry of `Metrics`."""
        self._metrics.watch(service, mode)

    def close(self) -> None:
        """Send the last spans, if that can be done within seconds."""
        self._metrics.close()
        processor = getattr(self._tracer, "span_processor", None)
        if processor is not None:
            try:
                BoundedProbe(processor.force_flush, name="payments-spans").ask(FLUSH_TIMEOUT_S)
            except Exception as error:
                _log.warning("the last spans were not sent: %s", type(error).__name__)

    # The application's observer.

    @contextmanager
    def observe_request(
        self, request: ObservedRequest, environ: Mapping[str, Any]
    ) -> Iterator[None]:
        has_route = request.route != NO_ROUTE
        name = f"{request.method} {request.route}" if has_route else request.method
        facts: dict[str, str | int] = {
            "http.request.method": request.method,
            "url.scheme": str(environ.get("wsgi.url_scheme", "http")),
            "payments.request_id": request.id,
        }
        if has_route:
            facts["http.route"] = request.route
        context, kind = self._extract_parent(environ), self._trace.SpanKind.SERVER
        with (
            self._metrics.observe_request(request, environ),
            self._start_span(name, kind, facts, context) as span,
        ):
            try:
                yield
            finally:
                span.set_attribute("http.response.status_code", request.status)
                if request.environment_id is not None:
                    span.set_attribute("payments.environment_id", request.environment_id)
                if request.status >= 500:
                    self._mark_failed(span, str(request.status))

    def _extract_parent(self, environ: Mapping[str, Any]) -> Context:
        """The trace of the request, if a trusted proxy sent one; otherwise a new one."""
        if not is_trusted(environ, self._trusted):
            return self._nobody
        headers = {
            name[5:].replace("_", "-").lower(): str(value)
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        return self._extract(headers, self._nobody)

    # The core's telemetry.

    @contextmanager
    def observe_job(self, queue: str, kind: str, count: int = 1) -> Iterator[None]:
        facts: dict[str, str | int] = {
            "payments.job.queue": queue,
            "payments.job.kind": kind,
            "payments.job.count": count,
        }
        internal = self._trace.SpanKind.INTERNAL
        with (
            self._metrics.observe_job(queue, kind, count),
            self._start_span(f"job {kind}", internal, facts),
        ):
            yield

    def record_parked(self, queue: str, kind: str) -> None:
        self._metrics.record_parked(queue, kind)

    @contextmanager
    def observe_attempt(self) -> Iterator[EndAttempt]:
        facts: dict[str, str | int] = {"http.request.method": "POST"}
        client = self._trace.SpanKind.CLIENT
        with (
            self._metrics.observe_attempt() as counted,
            self._start_span("webhook attempt", client, facts) as span,
        ):

            def ended(outcome: AttemptOutcome) -> None:
                counted(outcome)
                span.set_attribute("payments.webhook.outcome", outcome)
                if outcome != "delivered":
                    self._mark_failed(span, outcome)

            yield ended

    def observe_commit(self) -> AbstractContextManager[object]:
        return self._metrics.observe_commit()

    def record_retry(self, why: RetryReason) -> None:
        self._metrics.record_retry(why)

    def record_scan(self, chain_id: int, height: int, head: int) -> None:
        self._metrics.record_scan(chain_id, height, head)

    def record_scan_failure(self, chain_id: int) -> None:
        self._metrics.record_scan_failure(chain_id)

    def record_stored_bytes(self, stored: int, limit: int) -> None:
        self._metrics.record_stored_bytes(stored, limit)

    def record_held(self, finding: HeldFinding) -> None:
        self._metrics.record_held(finding)

    # One span.

    @contextmanager
    def _start_span(
        self,
        name: str,
        kind: SpanKind,
        facts: Mapping[str, str | int],
        context: Context | None = None,
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(
            name,
            context=context,
            kind=kind,
            attributes=dict(facts),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                self._mark_failed(span, type(error).__qualname__)
                raise

    def _mark_failed(self, span: Span, what: str) -> None:
        span.set_attribute("error.type", what)
        span.set_status(self._trace.StatusCode.ERROR)
