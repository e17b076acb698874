"""Prints the alerts of `alert_rows.py`: the rules for Prometheus, and the page of runbooks."""

from __future__ import annotations

from collections.abc import Iterator

from docs.alert_rows import ALERTS, Alert
from docs.markdown import table

DOCS_URL = "https://payments-docs.example/"
"""Where an operator serves these pages: `docs/how-to/observe.md` says how to set it."""

_INTRODUCTION = (
    "# Alerts\n\n"
    "`deploy/prometheus-alerts.yml` has these alerts; each leads to its section here.\n"
    "Respond to a `page` at once, and to a `ticket` the next morning.\n"
    "Start with `payments doctor`: it names most causes."
)

_RULES_HEAD = f"""\
# Printed from docs/alerts.py by `make docs`: change the table.
# {DOCS_URL} stands for the address of your copy of the pages.
# The names of the scrape jobs must be payments-serve and payments-worker.
# For a counter whose first value is 1, increase() returns 0; `unless ... offset` detects it.
# severity "page" wakes the operator; "ticket" can wait until morning.
groups:
  - name: payments
    rules:
"""


def print_rules() -> str:
    """The rules, for `rule_files` of Prometheus."""
    return _RULES_HEAD + "\n\n".join("\n".join(_print_rule(alert)) for alert in ALERTS) + "\n"


def _print_rule(alert: Alert) -> Iterator[str]:
    yield f"      - alert: {alert.name}"
    if alert.note:
        yield from (f"        # {line}" for line in alert.note.splitlines())
    lines = alert.expression.splitlines()
    if len(lines) == 1:
        yield f"        expr: {lines[0]}"
    else:
        yield "        expr: >"
        yield from (f"          {line}" for line in lines)
    if alert.hold:
        yield f"        for: {alert.hold}"
    yield f"        labels: {{severity: {alert.severity}}}"
    yield "        annotations:"
    yield f'          summary: "{alert.summary}"'
    yield f'          description: "{_capitalize(alert.meaning)}."'
    yield f"          runbook_url: {DOCS_URL}reference/alerts.html#{alert.name.lower()}"


def page() -> str:
    """A section for each alert: what it means, what to check and what to decide."""
    return "\n\n".join([_INTRODUCTION, *(_print_section(alert) for alert in ALERTS)])


def _print_section(alert: Alert) -> str:
    parts = [
        f"## {alert.name}",
        f"`{alert.severity}`: {alert.meaning}.",
        alert.response,
    ]
    if alert.decisions:
        parts.append(f"Paste this query:\n\n```promql\n{alert.query}\n```")
        parts.append(table(("If it shows", "Do"), alert.decisions))
    return "\n\n".join(parts)


def _capitalize(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
