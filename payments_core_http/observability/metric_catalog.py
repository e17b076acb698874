"""Every metric, as a table: the registration and docs/reference/metrics.md are made from it.

Labels take few values, all of them known from the code: never an id, a path or an address.
"""

from __future__ import annotations

from typing import Literal, get_args

import attrs

from payments_core.telemetry import AttemptOutcome, HeldFinding, RetryReason
from payments_core_http.errors import RateLimitReason

Kind = Literal["counter", "gauge", "histogram"]

FAST_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
COMMIT_OUTCOMES = (
    "committed", "refused", "replayed", "outdated", "lost", "unavailable", "failed",
)  # fmt: skip
SLOW_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

STORED_BUCKETS = tuple(digit * 10.0**power for power in range(6, 12) for digit in (1, 2, 5))
SHARE_BUCKETS = (0.1, 0.25, 0.5, 0.8, 0.9, 1.0)


@attrs.frozen
class Metric:
    """One metric. `watch_for` describes the values that need attention, if any.

    Metrics `at_scrape` are read at each scrape, and not kept. `known` are the values of a single
    label: they exist from the start, since a series that appears at 1 shows no increase.
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
        "Always 1; the labels give the version and the mode.",
    ),
    # Requests
    Metric(
        "payments_http_requests_total",
        "counter",
        ("route", "method", "status_class"),
        "Completed requests. `route` is the path template; an example of `status_class` is `2xx`.",
        "a persistent share of `5xx`",
    ),
    Metric(
        "payments_http_request_seconds",
        "histogram",
        ("route", "method"),
        "Duration of a request in the application, without network time.",
        "a 99th percentile above your service level",
        FAST_BUCKETS_S,
    ),
    Metric(
        "payments_http_requests_in_flight",
        "gauge",
        (),
        "Requests in progress; at most one per thread.",
        "equal to the number of threads, for minutes",
    ),
    Metric(
        "payments_http_rate_limited_total",
        "counter",
        ("reason",),
        "Requests refused by a rate policy, by a blocked address, or because the limiter is down.",
        "any `rate_limiter_unavailable`",
        known=get_args(RateLimitReason),
    ),
    Metric(
        "payments_http_replays_total",
        "counter",
        (),
        "Requests answered with the stored response of their Idempotency-Key.",
    ),
    # Commits
    Metric(
        "payments_commit_seconds",
        "histogram",
        ("outcome",),
        "Commits, including reruns: `committed`, `refused` by a rule, `replayed`, `outdated`"
        " (its input changed; it runs again), `lost` to another worker, `unavailable` (the"
        " storage or a chain), or `failed`.",
        "any `failed`; persistent `unavailable`",
        FAST_BUCKETS_S,
        known=COMMIT_OUTCOMES,
    ),
    Metric(
        "payments_commit_reruns_total",
        "counter",
        ("why",),
        "Transactions run again: `lost_race`, or `unanswered` if the reply to COMMIT was lost.",
        "a persistent rate of `unanswered`",
        known=get_args(RetryReason),
    ),
    # Jobs
    Metric(
        "payments_job_seconds",
        "histogram",
        ("queue", "kind", "outcome"),
        "Jobs run: `ok`, `failed` (it is retried), or `lost` to another worker. Deliveries are"
        " counted as attempts instead.",
        "a persistent share of `failed`",
        SLOW_BUCKETS_S,
    ),
    Metric(
        "payments_jobs_parked_total",
        "counter",
        ("queue", "kind"),
        "Jobs that failed 20 times and are no longer retried.",
        "any",
    ),
    Metric(
        "payments_queue_lag_seconds",
        "gauge",
        ("queue",),
        "How long the oldest due job has waited; 0 if no job is due. Jobs behind a parked job are"
        " counted too. Every process on the same storage reports the same value.",
        "minutes",
        at_scrape=True,
    ),
    # Webhooks
    Metric(
        "payments_webhook_attempt_seconds",
        "histogram",
        ("outcome",),
        "Delivery attempts: `delivered`, `refused` (not retried), `failing` (a status that is"
        " retried), `no_answer`, `unresolved`, `forbidden`, `postponed` (the environment has too"
        " many name resolutions in progress), or `fault` (an internal error).",
        "any `fault`; a share of `no_answer` across partners",
        SLOW_BUCKETS_S,
        known=(*get_args(AttemptOutcome), "fault"),
    ),
    # Chains
    Metric(
        "payments_chain_head_height",
        "gauge",
        ("chain_id",),
        "The latest block of a chain at the last scan of this process.",
        "no increase for minutes",
    ),
    Metric(
        "payments_chain_scanned_height",
        "gauge",
        ("chain_id",),
        "The last block of a chain that was scanned.",
        "far behind the head",
    ),
    Metric(
        "payments_chain_last_scan_timestamp_seconds",
        "gauge",
        ("chain_id",),
        "Time of the last successful scan of a chain by this process, in Unix seconds; before the"
        " first scan, the start of the worker. Workers take turns: use the maximum of all workers.",
        "older than the chain's longest pause and a few minutes",
    ),
    Metric(
        "payments_chain_scan_errors_total",
        "counter",
        ("chain_id",),
        "Scans that failed because too few of the chain's nodes answered correctly.",
        "a persistent rate",
    ),
    Metric(
        "payments_sender_gas_transfers",
        "gauge",
        ("chain_id",),
        "For about how many transfers the sender of a chain that has the fewest coins can pay, of"
        " those that this process has read in the last ten minutes; use the minimum of all"
        " processes. `payments doctor` names the senders.",
        "fewer than your transfers of a few days",
        at_scrape=True,
    ),
    # Screening
    Metric(
        "payments_transfers_held_total",
        "counter",
        ("finding",),
        "Transfers that screening has begun to hold: `review` (the provider looks at somebody),"
        " `silent` (it does not answer), or `blocked` (it has stopped the transfer, or refused the"
        " destination of a request). `payments admin screening list` lists those that wait.",
        "any `silent`; each `blocked` and `review` waits for a decision",
        known=get_args(HeldFinding),
    ),
    # Storage
    Metric(
        "payments_stored_bytes",
        "histogram",
        (),
        "What the environments store, in bytes of their rows' bodies: each counts once an hour."
        " `payments admin limits stored` lists them.",
        "a sum that grows faster than your disk",
        STORED_BUCKETS,
    ),
    Metric(
        "payments_stored_share",
        "histogram",
        (),
        "The same as a share of each environment's storage limit; 1 is full.",
        "any above 0.8",
        SHARE_BUCKETS,
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
        "1 if the storage answered within one second during this scrape, else 0.",
        "0",
        at_scrape=True,
    ),
)

METRIC_BY_NAME = {metric.name: metric for metric in METRICS}
