"""Spans of requests, jobs and attempts, as OpenTelemetry's own exporters receive them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from payments_core.engine.jobs.worker import Worker
from payments_core.webhooks.transports.port import TransportResult
from payments_core_http.client_address import parse_networks
from payments_core_http.observability.metrics import Metrics
from payments_core_http.observability.tracing import TracedMetrics, make_tracer
from tests.core.engine.jobs.bench import STOPPING, Bench
from tests.observability.asking import observed
from tests.webhooks.webhook_bench import Bench as Webhooks
from tests.webhooks.webhook_bench import Wire

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Spans:
    """What was traced."""

    def __init__(self, metrics: Metrics) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self._metrics, self._tracer = metrics, provider.get_tracer("test")
        self.trust("10.0.0.0/8")

    def trust(self, proxy: str) -> None:
        """Trust this proxy, and no other."""
        proxies = parse_networks([proxy])
        self.traced = TracedMetrics(self._metrics, self._tracer, proxies)

    @property
    def all(self) -> list[object]:
        return list(self._kept.get_finished_spans())

    @property
    def one(self):  # type: ignore[no-untyped-def]  # the SDK's own span
        [span] = self._kept.get_finished_spans()
        return span


@pytest.fixture
def spans(metrics: Metrics) -> Spans:
    return Spans(metrics)


def test_a_request_is_a_span_of_its_route(spans: Spans) -> None:
    api = observed(spans.traced)
    seen = api.call("GET", f"/v2/things/payment_{'Z' * 24}?a=b")
    span = spans.one
    assert (span.name, span.kind) == ("GET /v2/things/{paymentId}", SpanKind.SERVER)
    assert dict(span.attributes) == {
        "http.request.method": "GET",
        "http.route": "/v2/things/{paymentId}",
        "http.response.status_code": seen.status,
        "url.scheme": "http",
        "payments.request_id": seen.headers["x-request-id"],
        "payments.environment_id": api.partition,
    }
    assert span.status.status_code is StatusCode.UNSET
    assert "ZZZ" not in span.to_json()


def test_a_fault_of_ours_marks_the_span_and_shows_no_text(spans: Spans) -> None:
    observed(spans.traced).call("GET", "/v2/burst")
    span = spans.one
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "500"
    assert span.events == ()
    assert "sk_sandbox" not in span.to_json()


def test_a_path_that_there_is_not_is_named_by_its_method_alone(spans: Spans) -> None:
    observed(spans.traced).call("BREW", "/coffee", valid=False)
    assert spans.one.name == "_OTHER"
    assert "http.route" not in spans.one.attributes


@pytest.mark.parametrize(
    ("peer", "joins"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("203.0.113.7", False),
        ("::1", False),
        ("", False),
        ("unix", False),
    ],
)
def test_a_trace_goes_on_only_from_a_trusted_proxy(spans: Spans, peer: str, joins: bool) -> None:
    assert goes_on(spans, peer) is joins


@pytest.mark.parametrize("peer", ["", None, b"", "unix:"])
def test_a_trace_goes_on_from_a_socket_that_is_trusted(spans: Spans, peer: Any) -> None:
    spans.trust("unix")
    assert goes_on(spans, peer)


def goes_on(spans: Spans, peer: Any) -> bool:
    """Whether the trace of a request from this peer goes on."""
    api = observed(spans.traced)
    api.call(
        "GET",
        "/v2/partners/config",
        headers={"traceparent": TRACEPARENT},
        environ={"REMOTE_ADDR": peer},
        valid=isinstance(peer, str),
    )
    joins = spans.one.parent is not None
    assert (f"{spans.one.context.trace_id:032x}" == TRACE) is joins
    return joins


def test_a_job_is_a_span(spans: Spans) -> None:
    bench = Bench()
    handlers = {"note": bench.note, "break": bench.fail}
    worker = Worker(
        bench.storage, bench.clock, "sandbox", handlers, (STOPPING,), telemetry=spans.traced
    )
    bench.add("a", "note")
    bench.add("b", "break")
    worker.run_due()
    good, bad = sorted(spans.all, key=lambda span: span.name == "job break")  # type: ignore[attr-defined]
    assert good.name == "job note"  # type: ignore[attr-defined]
    assert good.attributes["payments.job.queue"] == "payments"  # type: ignore[attr-defined]
    assert bad.attributes["error.type"] == "ValueError"  # type: ignore[attr-defined]
    assert "whsec_" not in bad.to_json()  # type: ignore[attr-defined]


def test_an_attempt_is_a_span_and_partners_learn_no_trace(spans: Spans) -> None:
    webhooks = Webhooks(wire=Wire([TransportResult(503)]))
    webhooks.attempts._telemetry = spans.traced
    webhooks.endpoint("https://partner.example/hook/secret-path")
    webhooks.happen()
    webhooks.worker.run_due()
    span = spans.one
    assert (span.name, span.kind) == ("webhook attempt", SpanKind.CLIENT)
    assert span.attributes["payments.webhook.outcome"] == "failing"
    assert "secret-path" not in span.to_json()
    [(request, _)] = webhooks.wire.sent  # type: ignore[attr-defined]
    assert "traceparent" not in {name.lower() for name in request.headers}


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_SERVICE_NAME": "shop"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_SDK_DISABLED": "TRUE"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "zipkin"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_there_are_no_traces_unless_they_are_asked_for(environ: dict[str, str]) -> None:
    assert make_tracer("1", "sandbox", environ) is None


def test_nothing_is_imported_unless_it_is_asked_for() -> None:
    script = """
import sys
from payments_core_http.observability.metrics import Metrics
from payments_core_http.observability.tracing import add_tracing
metrics = Metrics("1", "sandbox")
assert add_tracing(metrics, "1", "sandbox") is metrics
assert not any(name.startswith("opentelemetry") for name in sys.modules)
"""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    subprocess.run([sys.executable, "-c", script], env=environ, check=True)


class Collector(HTTPServer):
    """Takes what an exporter sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.taken: list[tuple[str, str, bytes]] = []


class Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, self.headers["X-Tenant"], body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield made
        made.shutdown()


EXPORTING = """
from payments_core_http.observability.metrics import Metrics
from payments_core_http.observability.requests import new_request
from payments_core_http.observability.tracing import add_tracing
traced = add_tracing(Metrics("1.2.3", "sandbox"), "1.2.3", "sandbox")
request = new_request("req_1", "GET", "/v2/things")
with traced.observe_request(request, {}):
    request.status = 200
traced.close()
"""


def test_spans_go_where_the_standard_variables_say(collector: Collector) -> None:
    environ = os.environ | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=shop",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=blue",
    }
    subprocess.run([sys.executable, "-c", EXPORTING], env=environ, check=True, timeout=60)
    [(path, tenant, body)] = collector.taken
    assert (path, tenant) == ("/v1/traces", "shop")
    for reported in (b"GET /v2/things", b"payments-core", b"1.2.3", b"blue", b"req_1"):
        assert reported in body


LOGGED = (
    """
import logging
from payments_core_http.observability import logs
logs.configure("DEBUG", "json")
"""
    + EXPORTING
)


@pytest.mark.parametrize("variable", ["HEADERS", "TRACES_HEADERS"])
def test_headers_that_opentelemetry_cannot_read_are_not_in_the_log(
    collector: Collector, variable: str
) -> None:
    environ = os.environ | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        f"OTEL_EXPORTER_OTLP_{variable}": "x tenant=horse staple, no-equals-sign ,key=%20tigerpaw",
    }
    script = f"{LOGGED}\nlogging.getLogger('other').warning('it was tigerpaw')\n"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, check=True, timeout=60,
        capture_output=True, text=True,
    )  # fmt: skip
    assert '"logger":"opentelemetry.util.re"' in done.stderr
    assert '"it was [redacted]"' in done.stderr
    for reported in ("horse", "staple", "no-equals-sign", "tigerpaw"):
        assert reported not in done.stderr


def test_a_collector_that_is_not_there_does_not_hold_up_the_end() -> None:
    environ = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    subprocess.run(
        [sys.executable, "-c", EXPORTING], env=environ, check=True, timeout=30, capture_output=True
    )


class KeepingCollector(ThreadingHTTPServer):
    """Keeps connections open, and notes by which each span came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Keeping)
        self.ports: list[int] = []


class Keeping(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: KeepingCollector

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.ports.append(self.client_address[1])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


FORKING = """
import os
from payments_core_http.observability.tracing import make_tracer
tracer = make_tracer("1.2.3", "sandbox")

def send():
    tracer.start_span("span").end()
    assert tracer.span_processor.force_flush()

send()
child = os.fork()
if child == 0:
    send()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
send()
"""


def test_a_forked_process_sends_its_spans_by_a_connection_of_its_own() -> None:
    with KeepingCollector() as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{collector.server_port}"
        environ = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": url}
        subprocess.run([sys.executable, "-c", FORKING], env=environ, check=True, timeout=60)
        collector.shutdown()
    before, of_child, after = collector.ports
    assert before == after != of_child
