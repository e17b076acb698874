"""The rows of the table of alerts (`docs/alerts.py`)."""

from __future__ import annotations

from typing import Literal

import attrs

Severity = Literal["page", "ticket"]


@attrs.frozen(kw_only=True)
class Alert:
    """An alert: its PromQL `expression`, and for how long it must hold (`2m`) before it is sent.

    `summary` is a template of Prometheus, in one line. `meaning` is a sentence without its end, as
    plain text. `response` is Markdown for `docs/reference/`. `query` is PromQL to paste, whose
    results `decisions` tell apart: what it shows, and what to do. `note` is for who sets the
    threshold.
    """

    name: str
    expression: str
    hold: str = ""
    severity: Severity
    summary: str
    meaning: str
    response: str
    query: str = ""
    decisions: tuple[tuple[str, str], ...] = ()
    note: str = ""


RUNBOOK = "../how-to/runbook.md"

ALERTS = (
    Alert(
        name="PaymentsDown",
        expression='up{job=~"payments-.*"} == 0',
        hold="2m",
        severity="page",
        summary="{{ $labels.job }} on {{ $labels.instance }} does not answer",
        meaning="a process does not answer on its management listener",
        response="Run `systemctl status` and `journalctl --unit` for the instance. Its last line"
        " names a refused setting. If it runs and only its listener does not answer, restart it.",
    ),
    Alert(
        name="PaymentsStorageDown",
        expression="payments_storage_up == 0",
        hold="1m",
        severity="page",
        summary="{{ $labels.instance }} cannot reach the storage",
        meaning="the storage did not answer a scrape for a minute",
        response="Check that PostgreSQL runs and that this machine can reach it, and that it has"
        " free disk space and free connections. SQLite: check the disk space."
        f" If the server is down: [failover]({RUNBOOK}#failover).",
    ),
    Alert(
        name="PaymentsAlarm",
        expression="increase(payments_alarms_total[15m]) > 0\n"
        "or (payments_alarms_total unless payments_alarms_total offset 15m)",
        severity="page",
        summary="ALARM from {{ $labels.source }}: read the log of {{ $labels.instance }}",
        meaning="the log has an ALARM: money may be in an unexpected place",
        response="Read the log line today; `source` names the module. It names the Payment or"
        " transfer: a reorg that undid"
        f" [an accepted transfer]({RUNBOOK}#a-reorg-undid-an-accepted-transfer) or a final block,"
        " a signer that refuses, a sender without progress, a parked job. Move nothing by hand"
        " before you have checked the chain itself.",
    ),
    Alert(
        name="PaymentsJobParked",
        expression="increase(payments_jobs_parked_total[15m]) > 0\n"
        "or (payments_jobs_parked_total unless payments_jobs_parked_total offset 15m)",
        severity="page",
        summary="A job of kind {{ $labels.kind }} in queue {{ $labels.queue }} is parked and is"
        " no longer retried",
        meaning="a job had no outcome after 20 claims; if it stops its lane, all jobs behind it"
        " wait",
        response="Read the warnings about its kind."
        " [Fix the cause](../how-to/purge-and-parked-jobs.md), then run"
        " `payments admin jobs parked` and `payments admin jobs retry`.",
    ),
    Alert(
        name="PaymentsErrors",
        expression='sum(rate(payments_http_requests_total{status_class="5xx"}[5m]))\n'
        "/ sum(rate(payments_http_requests_total[5m])) > 0.01",
        hold="5m",
        severity="page",
        summary="{{ $value | humanizePercentage }} of requests fail with status 5xx",
        meaning="more than one request in a hundred ends with a 5xx",
        response="503: check the storage. 500: an internal error; find its stack trace in the log"
        " by `requestId`. If it started with an upgrade:"
        f" [roll back]({RUNBOOK}#upgrade-without-downtime).",
    ),
    Alert(
        name="PaymentsSlow",
        expression="histogram_quantile(0.99,\n"
        "  sum by (le) (rate(payments_http_request_seconds_bucket[5m]))) > 1",
        hold="10m",
        severity="ticket",
        summary="The 99th percentile of request durations is {{ $value | humanizeDuration }}",
        meaning="one request in a hundred takes a second or more",
        response="Find out whether commits are slow, or the processes.",
        query="histogram_quantile(0.99,\n  sum by (le) (rate(payments_commit_seconds_bucket[5m])))",
        decisions=(
            (
                "more than half of the alert's own value",
                f"the storage is the cause: look for [locks]({RUNBOOK}#commits-wait-for-a-lock),"
                " a full disk, a vacuum; add no processes",
            ),
            (
                "much less, and a core is busy for each `payments serve`",
                f"the processes are the cause: [scale out]({RUNBOOK}#scale-out)",
            ),
            (
                "much less, and the cores are idle",
                "requests wait for a chain's node or another provider: `payments doctor` names it",
            ),
        ),
    ),
    Alert(
        name="PaymentsThreadsBusy",
        expression="min_over_time(payments_http_requests_in_flight[5m]) >= 8",
        severity="ticket",
        summary="{{ $labels.instance }} has had no free thread for minutes",
        meaning="all threads of a process have been busy for minutes",
        response="Find the routes in which the threads spend their time, in threads.",
        query="topk(5, sum by (route) (rate(payments_http_request_seconds_sum[5m])))",
        decisions=(
            (
                "many routes, in proportion to their traffic",
                "as for [PaymentsSlow](#paymentsslow): the storage or the processor",
            ),
            (
                "routes that ask a chain (wallets, balances, options)",
                "a node is slow: `payments networks check` names it; more threads"
                " (`http.threads`) help until it is replaced",
            ),
            (
                "one route, of one partner's traffic",
                "lower that environment's [rate](../how-to/limit-requests.md)",
            ),
        ),
        note="The number is http.threads of the configuration; its default is 8.",
    ),
    Alert(
        name="PaymentsLimiterDown",
        expression='increase(payments_http_rate_limited_total{reason="rate_limiter_unavailable"}'
        "[5m]) > 0",
        hold="2m",
        severity="page",
        summary="{{ $labels.instance }} refuses requests because the limiter does not answer",
        meaning="requests are refused because the limiter does not answer",
        response="Start Redis, or start another one and change `limiter.url`; an empty one is"
        " enough. You cannot switch the limiter off. If the log has a stack trace, the adapter is"
        " at fault.",
    ),
    Alert(
        name="PaymentsCommitsFailing",
        expression='increase(payments_commit_seconds_count{outcome="failed"}[15m]) > 0',
        severity="ticket",
        summary="{{ $labels.instance }} failed to commit because of an internal error",
        meaning="a commit failed with an unexpected error, and was undone",
        response="No money is lost: what was not committed did not happen. Find the stack trace"
        " in the log of that instance, and see whether it goes on.",
        query='sum by (instance) (increase(payments_commit_seconds_count{outcome="failed"}[1h]))',
        decisions=(
            (
                "a few, and none in the last quarter of an hour",
                "report the stack trace; nothing else is to be done",
            ),
            (
                "a growing number on one instance",
                "restart it; if it goes on there, replace the machine",
            ),
            (
                "a growing number on all, since an upgrade",
                f"[roll back]({RUNBOOK}#upgrade-without-downtime), then report it",
            ),
            (
                "a growing number on all, without an upgrade",
                "a row may be damaged: `payments doctor`, then"
                " [damaged rows](../how-to/damaged-rows.md)",
            ),
        ),
    ),
    Alert(
        name="PaymentsCommitsUnanswered",
        expression='rate(payments_commit_reruns_total{why="unanswered"}[10m]) > 0.01',
        hold="10m",
        severity="ticket",
        summary="{{ $labels.instance }} loses its database connection during COMMIT",
        meaning="answers to COMMIT are lost; nothing is done twice, but something breaks"
        " connections",
        response="Find out what closes connections: a pooler, a firewall's idle timeout, restarts"
        " of PostgreSQL.",
    ),
    Alert(
        name="PaymentsQueueLag",
        expression='max by (queue) (payments_queue_lag_seconds{queue!="webhooks"}) > 120',
        hold="5m",
        severity="page",
        summary="A due job of queue {{ $labels.queue }} has waited {{ $value | humanizeDuration }}",
        meaning="a job has waited for more than two minutes",
        response="Check that workers run, and that no job before it is parked. Otherwise add a"
        " worker.",
    ),
    Alert(
        name="PaymentsWebhookLag",
        expression='max(payments_queue_lag_seconds{queue="webhooks"}) > 900',
        hold="5m",
        severity="ticket",
        summary="A due webhook delivery has waited {{ $value | humanizeDuration }}",
        meaning="a delivery has waited for a quarter of an hour",
        response="Find the endpoint: a slow endpoint delays only its own deliveries. If all"
        " endpoints lag, check outbound connections and the workers.",
    ),
    Alert(
        name="PaymentsWebhooksFailing",
        expression='sum(rate(payments_webhook_attempt_seconds_count{outcome!="delivered"}[15m]))\n'
        "/ sum(rate(payments_webhook_attempt_seconds_count[15m])) > 0.5",
        hold="15m",
        severity="ticket",
        summary="{{ $value | humanizePercentage }} of webhook delivery attempts fail",
        meaning="most delivery attempts fail",
        response="Check whether one large partner fails, or all. If all: check name resolution and"
        " outbound connections of the workers.",
    ),
    Alert(
        name="PaymentsWebhookFaults",
        expression='increase(payments_webhook_attempt_seconds_count{outcome="fault"}[15m]) > 0',
        severity="ticket",
        summary="{{ $labels.instance }} failed to send a webhook because of an internal error",
        meaning="an internal error prevented deliveries",
        response="Read the warnings about `webhooks.deliver`. If a key was removed from the ring"
        " too early, its signing secrets cannot be opened: put the key back.",
    ),
    Alert(
        name="PaymentsScanStale",
        expression="time() - max by (chain_id) (payments_chain_last_scan_timestamp_seconds) > 300",
        hold="2m",
        severity="page",
        summary="Chain {{ $labels.chain_id }} was last scanned {{ $value | humanizeDuration }} ago",
        meaning="no worker has scanned a chain for five minutes, or since it started five minutes"
        " ago",
        response="Check that workers run. Then continue as for"
        " [PaymentsScanErrors](#paymentsscanerrors). In a sandbox with simulated chains, omit this"
        " alert: they are scanned only when something happens.",
        note="Real chains are scanned every 15 seconds; simulated ones may wait for hours.\n"
        "Before its first scan a worker reports its start time: a chain never scanned also alerts.",
    ),
    Alert(
        name="PaymentsScanErrors",
        expression="sum by (chain_id) (increase(payments_chain_scan_errors_total[10m])) > 5",
        hold="10m",
        severity="ticket",
        summary="Scans of chain {{ $labels.chain_id }} fail: too few of its nodes answer correctly",
        meaning="scans of a chain fail repeatedly: its Payments wait, and nothing is lost",
        response=f"The warnings name the node: [a node is unfit]({RUNBOOK}#a-node-is-unfit).",
    ),
    Alert(
        name="PaymentsChainBehind",
        expression="max by (chain_id) (payments_chain_head_height)\n"
        "- max by (chain_id) (payments_chain_scanned_height) > 1000",
        hold="15m",
        severity="ticket",
        summary="The scan of chain {{ $labels.chain_id }} is {{ $value }} blocks behind",
        meaning="the scan is far behind the chain's newest block",
        response="After a stop, wait until the scan catches up. Otherwise the nodes are slow.",
    ),
    Alert(
        name="PaymentsChainStalled",
        expression="max by (chain_id) (max_over_time(payments_chain_head_height[5m]))\n"
        "<= max by (chain_id) (max_over_time(payments_chain_head_height[5m] offset 10m))",
        hold="5m",
        severity="ticket",
        summary="The nodes of chain {{ $labels.chain_id }} report no new block for 10 minutes",
        meaning="the nodes show no new block",
        response="Read the status page of the chain. If only your nodes are stalled, replace them.",
    ),
    Alert(
        name="PaymentsSenderGasLow",
        expression="min by (chain_id) (payments_sender_gas_transfers) < 50",
        hold="5m",
        severity="page",
        summary="A sender of chain {{ $labels.chain_id }} has coins for {{ $value }} transfers:"
        " payments doctor names it",
        meaning="the coins of a sender pay for few more transfers; without coins, requests are"
        " refused and transfers wait",
        response="`payments doctor` and `payments networks` name the sender and say for how many"
        " transfers its coins are enough. Send coins of the chain to it:"
        f" [a sender without coins]({RUNBOOK}#a-sender-has-no-coins).",
        note="The number should be that of your transfers of a few days, on the chain with the"
        " most.",
    ),
    Alert(
        name="PaymentsTransfersHeld",
        expression="sum by (finding) (increase(payments_transfers_held_total[15m])) > 0\n"
        "or sum by (finding) (payments_transfers_held_total"
        " unless payments_transfers_held_total offset 15m) > 0",
        severity="ticket",
        summary="Screening holds transfers: {{ $labels.finding }}",
        meaning="screening has begun to hold transfers, or has stopped some; none of them moves"
        " before somebody is cleared",
        response="`payments admin screening list ENVIRONMENT`, and the same with"
        " `--status blocked`, say which; the [dashboard](../how-to/screening.md#decide) lists them"
        " too.",
        query="sum by (finding) (increase(payments_transfers_held_total[1h]))",
        decisions=(
            (
                "`silent`",
                "the provider does not answer: ask it; the transfers go on by themselves when it"
                " answers, and all others that need a new verdict wait too",
            ),
            (
                "`review`",
                "the provider looks at somebody: wait for it, or"
                " [decide](../how-to/screening.md#decide)",
            ),
            (
                "`blocked`",
                "nothing moves until an operator clears it:"
                " [decide](../how-to/screening.md#decide)",
            ),
        ),
        note="A deployment that screens strangers all day may alert on silent alone.",
    ),
    Alert(
        name="PaymentsStorageLimitNear",
        expression="histogram_quantile(1,\n"
        "  sum by (le) (increase(payments_stored_share_bucket[2h]))) > 0.85",
        hold="10m",
        severity="ticket",
        summary="An environment stores more than 80 % of its limit: payments admin limits stored",
        meaning="an environment stores more than four fifths of its storage limit; at the limit it"
        " creates no accounts",
        response="`payments admin limits stored` names the environment. If it grows as its"
        " business does, raise its limit (`payments admin limits storage`) and check the disk."
        " Otherwise ask its partner what it stores.",
        note="The quantile is the upper end of the fullest environment's bucket: 0.8, 0.9 or 1.",
    ),
)
"""Every alert, those that stop the service first."""
