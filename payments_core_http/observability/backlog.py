"""What each scrape reads: how long jobs wait, whether the storage answers, the gas of senders."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from payments_core.background_jobs import QUEUES
from payments_core.chains.gas import MAX_FOLLOWED, ReportsGas
from payments_core.chains.outbox.nonces import find_present_senders
from payments_core.clock import MINUTE, SECOND, Instant
from payments_core_http.observability.bounded_probe import BoundedProbe
from payments_core_http.observability.metric_catalog import METRIC_BY_NAME

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_log = logging.getLogger(__name__)

FOLLOW_AGAIN_MS = 10 * MINUTE
"""How often the senders are looked up in the storage."""

MAX_WAIT_S = 1.0
"""A scrape waits no longer for the storage; Prometheus itself gives up after ten seconds."""


class BacklogCollector:
    """A collector of one service and mode, in the sense of prometheus_client."""

    def __init__(self, service: PaymentsService, mode: str) -> None:
        self._service = service
        self._mode = mode
        self._followed_at: Instant | None = None
        self._storage = BoundedProbe(self._read_lags, name="payments-scrape")

    def collect(self) -> Iterator[Any]:
        yield _make_gauge("payments_sender_gas_transfers", self._find_fewest_transfers())
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
        self._follow_senders()
        return lags_s

    def _follow_senders(self) -> None:
        """Have those that have sent before read with the heads, since a process that has just
        started knows none."""
        now, before = self._service.parts.ports.clock.now(), self._followed_at
        if before is not None and before <= now < before + FOLLOW_AGAIN_MS:
            return
        for chain in self._service.chains.values():
            if isinstance(chain, ReportsGas):
                storage = self._service.parts.ports.storage
                chain.follow_senders(find_present_senders(storage, chain, MAX_FOLLOWED))
        self._followed_at = now

    def _find_fewest_transfers(self) -> Mapping[tuple[str, ...], float]:
        """By chain; one whose senders are not known is absent."""
        fewest: dict[tuple[str, ...], float] = {}
        for number, chain in self._service.chains.items():
            if not isinstance(chain, ReportsGas):
                continue
            try:
                counted = chain.list_affordable().values()
            except Exception:  # an adapter's fault must not hide all other figures
                _log.exception("chain %d does not say what its senders can pay", number)
                continue
            if counted:
                fewest[(str(number),)] = min(counted)
        return fewest


def _make_gauge(name: str, values: Mapping[tuple[str, ...], float]) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    metric = METRIC_BY_NAME[name]
    family = GaugeMetricFamily(name, metric.help, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
