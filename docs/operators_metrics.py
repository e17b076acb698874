"""The page of metrics, from the table that registers them."""

from __future__ import annotations

from docs.markdown import code, table
from payments_core_http.observability.metric_catalog import METRICS, Metric


def page() -> str:
    """All of our metrics."""
    return "\n\n".join(
        [
            "# Metrics",
            "`GET /metrics` on the management listener of `payments serve` and `payments worker`"
            " answers with these metrics.\n"
            "[Observe](../how-to/observe.md) says how to collect and use them.\n"
            "The answer also contains `process_*` and `python_*`, the usual metrics of a Python"
            " process.\n"
            "A histogram has `_bucket`, `_sum` and `_count`.\n"
            "No label contains an id, a path or an address.",
            table(("Metric", "Type", "Labels", "What it is", "Look when"), map(_row, METRICS)),
        ]
    )


def _row(metric: Metric) -> tuple[str, ...]:
    labels = ", ".join(code(label) for label in metric.labels)
    return (code(metric.name), metric.kind, labels or "–", metric.help, metric.watch_for or "–")
