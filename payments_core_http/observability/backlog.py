"""What each scrape reads from the storage: how long jobs wait, and whether it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from payments_core.background_jobs import QUEUES
from payments_core.clock import SECOND
from payments_core_http.observability.bounded_probe import BoundedProbe
from payments_core_http.observability.metric_catalog import METRIC_BY_NAME

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

MAX_WAIT_S = 1.0
"""A scrape waits no longer for the storage; Prometheus itself gives up after ten seconds."""


class BacklogCollector:
    """A collector of one service and mode, in the sense of prometheus_client."""

    def __init__(self, service: PaymentsService, mode: str) -> None:
        self._service = service
        self._mode = mode
        self._storage = BoundedProbe(self._read_lags, name="payments-scrape")

    def collect(self) -> Iterator[Any]:
        try:
            lags_s = self._storage.ask(MAX_WAIT_S)
        except Exception:  # on any error, a scrape must report the rest; `storage_up` reports this
            yield _make_gauge("payments_storage_up", {(): 0})
            return
        yield _make_gauge("payments_storage_up", {(): 1})
        yield _make_gauge(
            "payments_queue_lag_seconds", {(name,): it for name, it in lags_s.items()}
        )

    def _read_lags(self) -> Mapping[str, float]:
        self._service.refresh()  # a sandbox's clock may have been moved
        lags_s = {}
        for queue in QUEUES:
            due = self._service.parts.ports.storage.next_due(queue.full_name(self._mode))
            waited_ms = 0 if due is None else max(0, self._service.parts.ports.clock.now() - due)
            lags_s[queue.name] = waited_ms / SECOND
        return lags_s


def _make_gauge(name: str, values: Mapping[tuple[str, ...], float]) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    metric = METRIC_BY_NAME[name]
    family = GaugeMetricFamily(name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
