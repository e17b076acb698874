"""What is counted, under which labels; and that a scrape shows it whatever happens."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from docs.alert_rows import ALERTS
from payments_core.background_jobs import QUEUES
from payments_core.chains.outbox.record import Sender
from payments_core.chains.port import AddressSpec, ChainUnavailable
from payments_core.clock import MINUTE
from payments_core.engine.decision import Decision, LeaseLost
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.parking import CLAIMS_BEFORE_PARKING
from payments_core.engine.jobs.worker import Worker
from payments_core.errors import InvalidState
from payments_core.limiters.memory import MemoryLimiter
from payments_core.maintenance.stored_bytes import StoredBytesCounter
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import StorageUnavailable, Transaction
from payments_core.webhooks.transports.port import TransportResult
from payments_core_http.observability import backlog
from payments_core_http.observability.metric_catalog import METRIC_BY_NAME, METRICS
from payments_core_http.observability.metrics import Metrics
from payments_core_http.throttling import Throttle
from tests.core.engine.jobs.bench import AUTHORITY, STOPPING, Bench
from tests.http.api_harness import ApiHarness
from tests.observability.asking import BrokenWire, observed
from tests.webhooks.webhook_bench import Bench as Webhooks
from tests.webhooks.webhook_bench import Names, Wire

ROOT = Path(__file__).resolve().parents[2]


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def text(metrics: Metrics) -> str:
    return metrics.render_exposition("")[0].decode()


# Requests


def test_a_request_is_counted_by_its_route_and_its_class(metrics: Metrics) -> None:
    api = observed(metrics)
    for _ in range(3):
        api.call("GET", "/v2/things/payment_" + "A" * 24)
    labels = {"route": "/v2/things/{paymentId}", "method": "GET"}
    assert value(metrics, "payments_http_requests_total", **labels, status_class="4xx") == 3
    assert value(metrics, "payments_http_request_seconds_count", **labels) == 3
    assert value(metrics, "payments_http_requests_in_flight") == 0


def test_a_request_is_in_flight_until_it_has_ended(metrics: Metrics) -> None:
    api = observed(metrics)
    seen: list[float | None] = []
    api.service.things.before = lambda: seen.append(
        value(metrics, "payments_http_requests_in_flight")
    )
    api.make()
    assert seen == [1]
    assert value(metrics, "payments_http_requests_in_flight") == 0


def test_replays_and_refused_rates_are_counted(metrics: Metrics) -> None:
    api = observed(metrics, Throttle(MemoryLimiter()))
    api.make()
    api.make()
    assert value(metrics, "payments_http_replays_total") == 1
    for _ in range(25):
        api.call("GET", "/nowhere")
    blocked = value(metrics, "payments_http_rate_limited_total", reason="abuse_blocked")
    assert blocked
    assert value(metrics, "payments_http_rate_limited_total", reason="rate_limit_exceeded") == 0


def test_a_limiter_that_breaks_is_counted_as_one_that_is_not_there(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    limiter = MemoryLimiter()
    api = observed(metrics, Throttle(limiter))
    monkeypatch.setattr(limiter, "check", None)  # raises TypeError
    assert api.call("GET", "/v2/things").status == 429
    reason = "rate_limiter_unavailable"
    assert value(metrics, "payments_http_rate_limited_total", reason=reason) == 1


def test_labels_take_values_that_the_code_knows(metrics: Metrics) -> None:
    api = observed(metrics, telemetry=metrics)
    for number in range(30):
        api.call(f"BREW{number}", f"/coffee/{number}", valid=False)
        api.call("GET", f"/v2/things/payment_{number:024}")
        api.make(key=f"k-{number}")
    reported = text(metrics)
    assert api.partition not in reported
    assert "coffee" not in reported
    assert len(re.findall(r"^payments_http_requests_total\{", reported, re.M)) == 3


# The core


@pytest.fixture
def bench(metrics: Metrics) -> Bench:
    made = Bench()
    made.committer._telemetry = metrics
    return made


def worker(bench: Bench, metrics: Metrics) -> Worker:
    def taken(claimed: object) -> None:
        raise LeaseLost("job_1")

    handlers = {"note": bench.note, "break": bench.fail, "taken": taken}
    return Worker(bench.storage, bench.clock, "sandbox", handlers, (STOPPING,), telemetry=metrics)


@pytest.mark.parametrize(
    ("kind", "outcome"), [("note", "ok"), ("break", "failed"), ("taken", "lost")]
)
def test_a_job_is_counted_by_how_it_ended(
    bench: Bench, metrics: Metrics, kind: str, outcome: str
) -> None:
    bench.add("a", kind)
    worker(bench, metrics).run_due()
    labels = {"queue": "payments", "kind": kind, "outcome": outcome}
    assert value(metrics, "payments_job_seconds_count", **labels) == 1


def test_a_parked_job_is_counted_once(bench: Bench, metrics: Metrics) -> None:
    bench.add("a", "break")
    runner = worker(bench, metrics)
    for _ in range(CLAIMS_BEFORE_PARKING + 3):
        runner.run_due()
        bench.clock.advance(700)
    labels = {"queue": "payments", "kind": "break"}
    assert value(metrics, "payments_jobs_parked_total", **labels) == 1


def refuse(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
    raise InvalidState("thing", "closed", "close")


def fail(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
    raise ValueError("a fault")


def unreachable(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
    raise StorageUnavailable("no route")


@pytest.mark.parametrize(
    ("decide", "outcome"),
    [(refuse, "refused"), (fail, "failed"), (unreachable, "unavailable")],
)
def test_a_commit_is_counted_by_how_it_ended(
    bench: Bench, metrics: Metrics, decide: object, outcome: str
) -> None:
    with pytest.raises(Exception, match=r".*"):
        bench.committer.commit(AUTHORITY, decide)  # type: ignore[arg-type]
    assert value(metrics, "payments_commit_seconds_count", outcome=outcome) == 1
    bench.add("a")
    assert value(metrics, "payments_commit_seconds_count", outcome="committed") == 1


def test_reruns_are_counted(metrics: Metrics) -> None:
    bench = Bench(storage=MemoryStorage(Weakness(seed=1)))
    bench.committer._telemetry = metrics
    for number in range(80):
        bench.add(f"s{number}")
    reruns = [
        value(metrics, "payments_commit_reruns_total", why=why)
        for why in ("lost_race", "unanswered")
    ]
    assert sum(filter(None, reruns)) > 0


def test_a_chain_exports_its_height_and_when_it_was_scanned(metrics: Metrics) -> None:
    api = ApiHarness(telemetry=metrics)
    began = time.time()
    api.service.worker("sandbox").run_due()
    height = value(metrics, "payments_chain_scanned_height", chain_id="8453")
    assert height is not None
    assert height == value(metrics, "payments_chain_head_height", chain_id="8453")
    at = value(metrics, "payments_chain_last_scan_timestamp_seconds", chain_id="8453")
    assert at is not None
    assert began <= at <= time.time()


def test_the_alert_of_a_stale_scan_sees_a_chain_that_was_never_scanned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Judged as Prometheus would, some time after two workers started."""
    [stale] = (alert for alert in ALERTS if alert.name == "PaymentsScanStale")
    rule = r"time\(\) - max by \(chain_id\) \((\w+)\) > (\d+)"
    [(name, limit)] = re.findall(rule, stale.expression)
    workers = [Metrics("1", "sandbox"), Metrics("1", "sandbox")]
    for one in workers:
        one.expect_scans([8453, 1])
    later = time.time() + int(limit) + 1
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: later)
        workers[0].record_scan(1, 5, 5)

    def is_stale(chain: str) -> bool:
        reported = [value(one, name, chain_id=chain) for one in workers]
        return later - max(at for at in reported if at is not None) > int(limit)

    assert (is_stale("8453"), is_stale("1")) == (True, False)


def test_each_count_of_stored_bytes_is_reported_without_its_environment(metrics: Metrics) -> None:
    api = ApiHarness(telemetry=metrics)
    partition = api.partition
    counter = StoredBytesCounter(api.service.parts.ports, RECORD_TYPES)
    assert counter.run(partition) is False
    stored = api.service.tenants.get_environment(partition).stored_bytes
    assert stored is not None
    assert value(metrics, "payments_stored_bytes_sum") == stored
    assert value(metrics, "payments_stored_share_bucket", le="0.1") == 1
    metrics.record_stored_bytes(85, 100)
    metrics.record_stored_bytes(1, 0)
    shares = [
        value(metrics, "payments_stored_share_bucket", le=end) for end in ("0.8", "0.9", "1.0")
    ]
    assert shares == [1, 2, 3]
    assert value(metrics, "payments_stored_bytes_count") == 3
    assert partition not in text(metrics)


def test_the_holds_of_screening_exist_from_the_start(metrics: Metrics) -> None:
    assert value(metrics, "payments_transfers_held_total", finding="blocked") == 0
    metrics.record_held("blocked")
    assert value(metrics, "payments_transfers_held_total", finding="blocked") == 1


def test_a_silent_chain_is_counted(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    api = ApiHarness(telemetry=metrics)

    def silent() -> None:
        raise ChainUnavailable("nobody answers")

    monkeypatch.setattr(api.service.chains[8453], "heads", silent)
    api.service.worker("sandbox").run_due()
    assert value(metrics, "payments_chain_scan_errors_total", chain_id="8453") == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (TransportResult(204), "delivered"),
        (TransportResult(404), "refused"),
        (TransportResult(429), "failing"),
        (TransportResult(503), "failing"),
        (TransportResult(failure="timed out"), "no_answer"),
    ],
)
def test_an_attempt_is_counted_by_what_was_answered(
    metrics: Metrics, answer: TransportResult, outcome: str
) -> None:
    assert attempted(metrics, Webhooks(wire=Wire([answer]))) == outcome


def test_an_attempt_is_counted_that_never_left(metrics: Metrics) -> None:
    nowhere = Webhooks(names=Names({"partner.example": None}))
    assert attempted(metrics, nowhere) == "unresolved"


def test_an_attempt_is_counted_that_may_not_leave(metrics: Metrics) -> None:
    inside = Webhooks()
    inside.endpoint()
    inside.names.table["partner.example"] = ("10.0.0.1",)
    assert attempted(metrics, inside) == "forbidden"


def test_a_fault_of_ours_is_counted_as_one(metrics: Metrics) -> None:
    assert attempted(metrics, Webhooks(wire=BrokenWire())) == "fault"


def attempted(metrics: Metrics, webhooks: Webhooks) -> str:
    """What came of one attempt at one delivery."""
    webhooks.attempts._telemetry = metrics
    if not webhooks.names.asked:
        webhooks.endpoint()
    webhooks.happen()
    webhooks.worker.run_due()
    name = "payments_webhook_attempt_seconds_count"
    known = METRIC_BY_NAME["payments_webhook_attempt_seconds"].known
    [outcome] = [one for one in known if value(metrics, name, outcome=one)]
    return outcome


# At the scrape


def test_a_queue_lags_by_what_waits_longest(metrics: Metrics) -> None:
    api = ApiHarness()
    metrics.watch(api.service, "sandbox")
    api.service.worker("sandbox")  # has every chain scanned from now on
    api.service.parts.ports.clock.advance(90)  # type: ignore[attr-defined]
    assert value(metrics, "payments_queue_lag_seconds", queue="chain") == 90
    assert value(metrics, "payments_queue_lag_seconds", queue="webhooks") == 0
    assert value(metrics, "payments_storage_up") == 1
    reported = re.findall(r'^payments_queue_lag_seconds\{queue="(\w+)"\}', text(metrics), re.M)
    assert reported == [queue.name for queue in QUEUES]


def test_a_chain_shows_its_sender_with_the_fewest_coins(metrics: Metrics) -> None:
    api, name = ApiHarness(), "payments_sender_gas_transfers"
    chain: Any = api.service.chains[8453]
    metrics.watch(api.service, "sandbox")
    others = [f"env_{number}" for number in range(3)]
    for number, environment_id in enumerate([api.partition, *others]):
        chain.set_coins(environment_id, 7 + number)
    assert value(metrics, name, chain_id="8453") is None
    operators = [operator_of(chain, one) for one in [*others, api.partition]]
    chain.follow_senders(operators)
    chain.heads()
    assert value(metrics, name, chain_id="8453") == 7
    reported = re.findall(rf"^{name}\{{.*$", text(metrics), re.M)
    assert reported == [name + '{chain_id="8453"} 7.0']  # and no address


def test_a_scrape_has_those_that_have_sent_before_followed(metrics: Metrics) -> None:
    api, name = ApiHarness(), "payments_sender_gas_transfers"
    chain: Any = api.service.chains[8453]
    chain.set_coins(api.partition, 3)
    storage = api.service.parts.ports.storage
    operator = operator_of(chain, api.partition)
    former = Sender(id="8453:0x" + "1" * 40, chain_id=8453)
    present = Sender(id=f"8453:{operator}", chain_id=8453)

    def work(tx: Transaction) -> None:
        tx.insert(present)
        tx.insert(former)

    storage.transact(api.partition, work)
    metrics.watch(api.service, "sandbox")
    text(metrics)
    chain.heads()
    assert value(metrics, name, chain_id="8453") == 3
    assert chain.list_affordable() == {operator: 3}


def test_senders_are_looked_up_again_after_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    api, asked = ApiHarness(), list[int]()
    monkeypatch.setattr(
        backlog,
        "find_present_senders",
        lambda storage, chain, limit: asked.append(chain.chain_id) or [],
    )
    collector = backlog.BacklogCollector(api.service, "sandbox")
    served, clock = sorted(api.service.chains), api.service.parts.ports.clock
    minutes = backlog.FOLLOW_AGAIN_MS // MINUTE
    for passed_s, lookups in ((0, 1), (60 * minutes - 1, 1), (1, 2)):
        clock.advance(passed_s)  # type: ignore[attr-defined]
        list(collector.collect())
        assert sorted(asked) == sorted(served * lookups)


def operator_of(chain: Any, environment_id: str) -> str:
    return str(chain.derive(AddressSpec(environment_id, "operator", "operator")))


def test_a_scrape_does_not_wait_for_storage_that_hangs(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, hangs = ApiHarness(), threading.Event()
    asked: list[str] = []

    def hanging(queue: str, after: object = None) -> None:
        asked.append(queue)
        hangs.wait(30)

    monkeypatch.setattr(api.service.parts.ports.storage, "next_due", hanging)
    monkeypatch.setattr(backlog, "MAX_WAIT_S", 0.05)
    metrics.watch(api.service, "sandbox")
    began = time.monotonic()
    reported = [text(metrics) for _ in range(3)]
    assert time.monotonic() - began < 5
    assert all("payments_storage_up 0.0" in one for one in reported)
    assert all("payments_build_info" in one for one in reported)
    assert not any("payments_queue_lag_seconds{" in one for one in reported)
    assert len(asked) == 1  # the three scrapes left one thread behind, not three
    hangs.set()


def test_a_scrape_shows_that_storage_is_out_of_reach(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = ApiHarness()

    def refuse(queue: str, after: object = None) -> None:
        raise StorageUnavailable("no route")

    monkeypatch.setattr(api.service.parts.ports.storage, "next_due", refuse)
    metrics.watch(api.service, "sandbox")
    assert value(metrics, "payments_storage_up") == 0


def test_alarms_are_counted_by_their_module(metrics: Metrics, bench: Bench) -> None:
    metrics.watch(ApiHarness().service, "sandbox")
    bench.add("a", "break")
    runner = worker(bench, metrics)
    for _ in range(CLAIMS_BEFORE_PARKING):
        runner.run_due()
        bench.clock.advance(700)
    assert value(metrics, "payments_alarms_total", source="engine.jobs.parking") == 1
    metrics.close()
    metrics.close()


# The table


def test_the_table_and_the_registry_agree(metrics: Metrics) -> None:
    metrics.watch(ApiHarness().service, "sandbox")
    kinds = {
        family.name: family.type
        for family in metrics.registry.collect()
        if family.name.startswith("payments_")
    }
    assert kinds == {metric.name.removesuffix("_total"): metric.kind for metric in METRICS}
    assert "process_cpu_seconds_total" in text(metrics)
    assert "python_gc_collections_total" in text(metrics)
    assert value(metrics, "payments_build_info", version="1.2.3", mode="sandbox") == 1
