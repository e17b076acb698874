"""Prints `deploy/grafana-dashboard.json`: the alerts that fire, and a panel for each metric."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from payments_core_http.observability.metric_catalog import METRICS, Metric

ROWS: Mapping[str, tuple[str, ...]] = {
    "Requests": ("payments_http_",),
    "Commits and storage": ("payments_commit_", "payments_storage_", "payments_stored_"),
    "Jobs": ("payments_jobs_", "payments_job_", "payments_queue_"),
    "Webhooks": ("payments_webhook_",),
    "Chains": ("payments_chain_", "payments_sender_", "payments_transfers_"),
    "The process": ("payments_alarms_", "payments_build_"),
}
"""The rows of the dashboard: the beginnings of the names of their metrics."""

_QUANTILES = (0.5, 0.99)
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3


def print_dashboard() -> str:
    """The dashboard, for Grafana's import."""
    panels = [_alerts_panel(), *_lay_out()]
    dashboard = {
        "title": "payments-core",
        "uid": "payments-core",
        "tags": ["payments"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource",
                 "query": "prometheus"},
            ]
        },
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, start=1)],
    }  # fmt: skip
    return json.dumps(dashboard, indent=1, ensure_ascii=False) + "\n"


def _alerts_panel() -> dict[str, Any]:
    return {
        "title": "Alerts that fire",
        "description": "Each leads to its section of docs/reference/alerts.md.",
        "type": "table",
        "datasource": _DATASOURCE,
        "gridPos": {"x": 0, "y": 0, "w": 24, "h": 6},
        "targets": [
            {
                "refId": "A",
                "datasource": _DATASOURCE,
                "expr": 'ALERTS{alertname=~"Payments.*", alertstate="firing"}',
                "format": "table",
                "instant": True,
            }
        ],
    }


def _lay_out() -> Iterator[dict[str, Any]]:
    top = 6
    for title, beginnings in ROWS.items():
        yield {
            "title": title,
            "type": "row",
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": 24, "h": 1},
            "panels": [],
        }
        top += 1
        metrics = [metric for metric in METRICS if metric.name.startswith(beginnings)]
        for place, metric in enumerate(metrics):
            line, column = divmod(place, _COLUMNS)
            where = {"x": column * _WIDTH, "y": top + line * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield _panel(metric, where)
        top += -(-len(metrics) // _COLUMNS) * _HEIGHT


def _panel(metric: Metric, where: Mapping[str, int]) -> dict[str, Any]:
    watch = f" Look when: {metric.watch_for}." if metric.watch_for else ""
    return {
        "title": metric.name.removeprefix("payments_"),
        "description": f"{metric.help}{watch}",
        "type": "timeseries",
        "datasource": _DATASOURCE,
        "gridPos": where,
        "fieldConfig": {"defaults": {"unit": _unit(metric), "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": _DATASOURCE,
             "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(_queries(metric))
        ],
    }  # fmt: skip


def _queries(metric: Metric) -> Sequence[tuple[str, str]]:
    """The expressions of a metric's panel, each with the legend of its lines."""
    by = ", ".join(metric.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels) or "all"
    grouped = f" by ({by})" if by else ""
    if metric.kind == "counter":
        return ((f"sum{grouped} (rate({metric.name}[$__rate_interval]))", legend),)
    if metric.kind == "histogram":
        buckets = f"sum by (le) (rate({metric.name}_bucket[$__rate_interval]))"
        return tuple(
            (f"histogram_quantile({quantile}, {buckets})", f"p{quantile * 100:.0f}")
            for quantile in _QUANTILES
        )
    if metric.name.endswith("_timestamp_seconds"):
        return ((f"time() - max{grouped} ({metric.name})", legend),)
    best = "min" if metric.name in _LEAST else "max"
    return ((f"{best}{grouped} ({metric.name})", legend),)


_LEAST = ("payments_sender_gas_transfers", "payments_storage_up")
"""Gauges of which the least value of all processes counts."""

_UNITS = {"_seconds": "s", "_bytes": "bytes", "_share": "percentunit"}


def _unit(metric: Metric) -> str:
    """Grafana's name of the unit. A time is shown as what has passed of it."""
    if metric.kind == "counter":
        return "ops"
    return next((unit for end, unit in _UNITS.items() if metric.name.endswith(end)), "short")
