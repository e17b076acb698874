"""The alerts, their page and the dashboard: each asks for what there is, and leads somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docs.alert_rows import ALERTS
from docs.alerts import DOCS_URL
from docs.grafana import ROWS
from payments_core_http.observability.metric_catalog import METRIC_BY_NAME, METRICS

ROOT = Path(__file__).resolve().parents[2]
RULES = (ROOT / "deploy/prometheus-alerts.yml").read_text(encoding="utf-8")
DASHBOARD = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs/reference/alerts.md").read_text(encoding="utf-8")
NAMES = [alert.name for alert in ALERTS]

PANELS: list[dict[str, Any]] = [it for it in DASHBOARD["panels"] if it["type"] == "timeseries"]
QUERIES = "\n".join(target["expr"] for panel in PANELS for target in panel["targets"])
ASKED = "\n".join([RULES, QUERIES, *(alert.query for alert in ALERTS)])


def test_queries_ask_for_metrics_that_there_are() -> None:
    for name, suffix in re.findall(r"\b(payments_\w+?)(_bucket|_count|_sum)?\b", ASKED):
        metric = METRIC_BY_NAME[name]
        assert bool(suffix) == (metric.kind == "histogram"), name


def test_queries_ask_for_labels_that_there_are() -> None:
    for name, selector in re.findall(r"\b(payments_\w+?)(?:_bucket|_count|_sum)?\{(\w+)", ASKED):
        assert selector in METRIC_BY_NAME[name].labels
    for label, asked in re.findall(r'(\w+)!?="(\w+)"', RULES):
        known = [metric.known for metric in METRICS if metric.labels == (label,)]
        assert not any(known) or any(asked in values for values in known), (label, asked)


def test_each_alert_leads_to_its_section() -> None:
    assert len(NAMES) == len(set(NAMES)) > 10
    for name in NAMES:
        assert f"## {name}\n" in PAGE
        assert f"runbook_url: {DOCS_URL}reference/alerts.html#{name.lower()}\n" in RULES
    assert RULES.count("          description: ") == len(NAMES)


def test_what_is_pasted_has_its_decisions() -> None:
    for alert in ALERTS:
        assert bool(alert.query) == bool(alert.decisions), alert.name
    asked = {alert.name for alert in ALERTS if alert.query}
    assert {"PaymentsSlow", "PaymentsThreadsBusy", "PaymentsCommitsFailing"} <= asked


def test_the_dashboard_has_a_panel_for_each_metric() -> None:
    assert [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"] == list(ROWS)
    titles = {f"payments_{panel['title']}" for panel in PANELS}
    assert titles == set(METRIC_BY_NAME)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS}
    assert len(places) == len(PANELS)


def test_pages_name_alerts_that_there_are() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for name in re.findall(r"`(Payments[A-Z]\w+)`", page.read_text(encoding="utf-8")):
            if page.parent.name != "how-to" or name.endswith(("Service", "Sandbox", "Error")):
                continue
            assert name in NAMES or "Client" in name, (page.name, name)
