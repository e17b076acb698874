"""The page of metrics, from the table that registers them."""

from __future__ import annotations

from docs.markdown import code, table
from payments_core_http.observability.metric_catalog import METRICS, Metric


def page() -> str:
    """All of our metrics."""
    return "\n\n".join(
        [
            "# Metrics",
            "What `GET /metrics` of the operators' listener answers, of `payments serve` and"
            " `payments worker` alike; [Observe](../how-to/observe.md) says how to collect and use"
            " it.\n"
            "Besides these there are `process_*` and `python_*`, as every Python process has"
            " them.\n"
            "A histogram has `_bucket`, `_sum` and `_count`.\n"
            "No label holds an id, a path or an address.",
            table(("Metric", "Type", "Labels", "What it is", "Look when"), map(_row, METRICS)),
        ]
    )


def _row(metric: Metric) -> tuple[str, ...]:
    labels = ", ".join(code(label) for label in metric.labels)
    return (code(metric.name), metric.kind, labels or "–", metric.help, metric.watch_for or "–")
