"""Every metric, as a table: the registration and docs/reference/metrics.md are made from it.

Labels take few values, all of them known from the code: never an id, a path or an address.
"""

from __future__ import annotations

from typing import Literal, get_args

import attrs

from payments_core.telemetry import AttemptOutcome, RetryReason
from payments_core_http.errors import RateLimitReason

Kind = Literal["counter", "gauge", "histogram"]

FAST_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
COMMIT_OUTCOMES = (
    "committed", "refused", "replayed", "outdated", "lost", "unavailable", "failed",
)  # fmt: skip
SLOW_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@attrs.frozen
class Metric:
    """One metric. `watch_for` says what an operator should be told of, if of anything.

    Those `at_scrape` are asked for when Prometheus asks, and not kept. `known` are the values of
    a single label: they are there from the start, since what appears at 1 has not risen to it.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    watch_for: str = ""
    buckets: tuple[float, ...] = ()
    at_scrape: bool = False
    known: tuple[str, ...] = ()


METRICS = (
    Metric(
        "payments_build_info",
        "gauge",
        ("version", "mode"),
        "1; the labels say which version serves which mode.",
    ),
    # Requests
    Metric(
        "payments_http_requests_total",
        "counter",
        ("route", "method", "status_class"),
        "Requests answered. `route` is the path's template, `status_class` such as `2xx`.",
        "a share of `5xx` that lasts",
    ),
    Metric(
        "payments_http_request_seconds",
        "histogram",
        ("route", "method"),
        "How long the application took to answer, without the time on the wire.",
        "the 99th percentile above what partners were promised",
        FAST_BUCKETS_S,
    ),
    Metric(
        "payments_http_requests_in_flight",
        "gauge",
        (),
        "Requests being answered now, of which there can be as many as threads.",
        "as many as threads, for minutes",
    ),
    Metric(
        "payments_http_rate_limited_total",
        "counter",
        ("reason",),
        "Requests refused by a rate policy, a blocked address, or a limiter that does not answer.",
        "any `rate_limiter_unavailable`",
        known=get_args(RateLimitReason),
    ),
    Metric(
        "payments_http_replays_total",
        "counter",
        (),
        "Requests answered from the store of their Idempotency-Key.",
    ),
    # Commits
    Metric(
        "payments_commit_seconds",
        "histogram",
        ("outcome",),
        "Commits, reruns included: `committed`, `refused` by a rule, `replayed`, `outdated`"
        " (what it rests on is looked at again), `lost` to another worker, `unavailable` (the"
        " storage, or a chain), or `failed`.",
        "any `failed`; `unavailable` that lasts",
        FAST_BUCKETS_S,
        known=COMMIT_OUTCOMES,
    ),
    Metric(
        "payments_commit_reruns_total",
        "counter",
        ("why",),
        "Transactions run again: `lost_race`, or `unanswered` where the answer to COMMIT was lost.",
        "a rate of `unanswered` that lasts",
        known=get_args(RetryReason),
    ),
    # Jobs
    Metric(
        "payments_job_seconds",
        "histogram",
        ("queue", "kind", "outcome"),
        "Jobs run: `ok`, `failed` (it is tried again), or `lost` to another worker. Deliveries are"
        " counted as attempts instead.",
        "a share of `failed` that lasts",
        SLOW_BUCKETS_S,
    ),
    Metric(
        "payments_jobs_parked_total",
        "counter",
        ("queue", "kind"),
        "Jobs that came to no outcome 20 times, and are not tried any more.",
        "any",
    ),
    Metric(
        "payments_queue_lag_seconds",
        "gauge",
        ("queue",),
        "How long the job has waited that has been due for longest; 0 where none is due. What waits"
        " behind a parked job waits on. Every process that has the storage tells the same.",
        "minutes",
        at_scrape=True,
    ),
    # Webhooks
    Metric(
        "payments_webhook_attempt_seconds",
        "histogram",
        ("outcome",),
        "Attempts at deliveries: `delivered`, `refused` for good, `failing` (a status that is tried"
        " again), `no_answer`, `unresolved`, `forbidden`, or `fault` where it is ours.",
        "any `fault`; a share of `no_answer` across partners",
        SLOW_BUCKETS_S,
        known=(*get_args(AttemptOutcome), "fault"),
    ),
    # Chains
    Metric(
        "payments_chain_head_height",
        "gauge",
        ("chain_id",),
        "The newest block of a chain when it was last scanned by this process.",
        "none new for minutes",
    ),
    Metric(
        "payments_chain_scanned_height",
        "gauge",
        ("chain_id",),
        "Up to which block a chain was scanned.",
        "far behind the head",
    ),
    Metric(
        "payments_chain_last_scan_timestamp_seconds",
        "gauge",
        ("chain_id",),
        "When this process last scanned a chain with success, in Unix seconds; until it has, when"
        " this worker started. The workers take turns: take the maximum over all of them.",
        "older than the chain's longest pause and a few minutes",
    ),
    Metric(
        "payments_chain_scan_errors_total",
        "counter",
        ("chain_id",),
        "Scans that came to nothing, since the chain's nodes did not answer well enough.",
        "a rate that lasts",
    ),
    # The process
    Metric(
        "payments_alarms_total",
        "counter",
        ("source",),
        "Log records that begin with `ALARM`; `source` is the module.",
        "any",
    ),
    Metric(
        "payments_storage_up",
        "gauge",
        (),
        "1 where the storage answered this scrape within a second.",
        "0",
        at_scrape=True,
    ),
)

METRIC_BY_NAME = {metric.name: metric for metric in METRICS}
