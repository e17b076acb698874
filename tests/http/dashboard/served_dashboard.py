"""A dashboard with something on every page, and each page's path: for a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
from playwright.sync_api import Page

from payments_core_http.app import create_app
from payments_core_http.observability.requests import NOOP_OBSERVER
from payments_core_http.request_recorder import RequestRecorder
from tests.http.api_harness import ApiHarness
from tests.http.console import LATER, NEVER, OK, Console
from tests.http.dashboard.operator_browser import CHEAP
from tests.http.pages.browser import serve

HOME = "/dashboard/inbox"
LIST = "/dashboard/payments"
PAGES = (
    "inbox",
    "search",
    "payments",
    "payment",
    "payment-late",
    "payment-waiting",
    "refund",
    "refund-confirm",
    "reconcile",
    "cancel",
    "activity",
    "verifications",
    "verification",
    "screening",
    "screening-blocked",
    "screening-decision",
    "webhooks",
    "webhook",
    "health",
    "delivery-failed",
    "rotate",
    "recover",
    "events",
    "event",
    "requests",
    "request",
    "keys",
    "audit",
    "security",
)
"""The names of all pages that a link leads to."""

REVIEWED, BLOCKED = ("0x" + "ab" * 18 + ending for ending in ("4e71", "b10c"))
"""Whom the sandbox's provider reviews, and whom it blocks."""

LONG = "order-" + "1042" * 30
"""A reference that no line has room for."""


@attrs.frozen
class ServedDashboard:
    """A served dashboard, its operator's password, and what the tests act on."""

    url: str
    console: Console
    password: str = attrs.field(repr=False)
    paid: str
    late: str
    waiting: str
    verification: str
    held: str
    endpoint: str
    failed: str
    event: str
    request: str

    @property
    def pages(self) -> Mapping[str, str]:
        """The path of every page that a link leads to, by its name, as in PAGES."""
        return {
            "inbox": HOME,
            "search": "/dashboard/search?q=nobody",
            "payments": LIST,
            "payment": self.paid,
            "payment-late": self.late,
            "payment-waiting": self.waiting,
            "refund": f"{self.paid}/refund",
            "refund-confirm": f"{self.paid}/refund?amount=4.50&reason=Stale+bread",
            "reconcile": f"{self.late}/reconcile?action=accept",
            "cancel": f"{self.waiting}/cancel",
            "activity": "/dashboard/activity",
            "verifications": "/dashboard/verifications",
            "verification": self.verification,
            "screening": "/dashboard/screening",
            "screening-blocked": "/dashboard/screening?status=blocked",
            "screening-decision": self.held,
            "webhooks": "/dashboard/webhooks",
            "webhook": self.endpoint,
            "health": f"{self.endpoint}/health",
            "delivery-failed": self.failed,
            "rotate": f"{self.endpoint}/rotate",
            "recover": f"{self.endpoint}/recover",
            "events": "/dashboard/events",
            "event": self.event,
            "requests": "/dashboard/requests",
            "request": f"/dashboard/requests/{self.request}",
            "keys": "/dashboard/keys",
            "audit": "/dashboard/audit",
            "security": "/dashboard/security",
        }

    def log_in(self, page: Page, password: str | None = None) -> None:
        """Log in at the page that is open."""
        page.fill("[name=username]", "olivia")
        page.fill("[name=password]", password or self.password)
        page.click("main button")


@contextmanager
def serve_dashboard(
    choose_app: Callable[[ApiHarness], Any] = lambda api: api.app, prefix: str = ""
) -> Iterator[ServedDashboard]:
    """Payments in three states, an endpoint with deliveries in three, and an operator."""
    console = Console()
    service = console.api.service
    service.parts.operators._cost = CHEAP
    late = _create(console, "late", reference=LONG)
    console.advance(3_700)
    _pay(console, late, "31.5")
    paid = _create(console, "paid", reference="order-1043", metadata={"table": 7, "note": LONG})
    _pay(console, paid, "25")
    waiting = _create(console, "waiting", amount="120.00", description="Three loaves of bread")
    wallet = {"type": "wallet", "address": REVIEWED}
    _pay(
        console, _create(console, "held", "18.00", reference="order-1044", destination=wallet), "18"
    )
    [held] = (
        service.acting_as(service.tenants.system_authority(console.api.partition))
        .screening.list_held()
        .records
    )
    body = {"amount": "4.50", "destination": BLOCKED, "reason": "Stale bread"}
    console.call("POST", f"/v2/payments/{paid['id']}/refunds", body, key="blocked")
    path = f"/v2/accounts/{console.payer}/verifications"
    verification = console.call("POST", path, {}, key="verify").json
    endpoint = console.endpoint("https://93.184.216.34/hooks/" + "payments/" * 9)
    by_answer = {}
    for answer in (OK, LATER, NEVER):
        console.receiver.answer = answer
        event_id = console.happen()
        console.run()
        by_answer[answer.status] = console.delivery(endpoint, event_id)
    console.receiver.answer = OK
    request_id = _log_requests(console)
    hook = f"/dashboard/webhooks/{endpoint['id']}"
    with serve(choose_app(console.api)) as url:
        yield ServedDashboard(
            url=url + prefix,
            console=console,
            password=service.operators.create(console.api.partition, "olivia").password,
            paid=f"{LIST}/{paid['id']}",
            late=f"{LIST}/{late['id']}",
            waiting=f"{LIST}/{waiting['id']}",
            verification=f"/dashboard/verifications/{verification['id']}",
            held=f"/dashboard/screening/{held.id}",
            endpoint=hook,
            failed=f"{hook}/deliveries/{by_answer[503]['id']}",
            request=request_id,
            event=f"/dashboard/events/{by_answer[400]['outboxEventId']}",
        )


def _log_requests(console: Console) -> str:
    """Recorded requests, good ones and a bad one, and the id of that."""
    api = console.api
    recorder = RequestRecorder.over(api.service, "sandbox", NOOP_OBSERVER)  # type: ignore[arg-type]
    plain = api.validated
    api.validated = create_app(api.service, mode="sandbox", observer=recorder)  # type: ignore[arg-type]
    api.call("GET", "/v2/accounts?limit=2")
    body = {"intent": "receive", "amount": "a lot", "reference": LONG[:60], "metadata": {"t": LONG}}
    seen = api.call("POST", "/v2/payments", body, key="log")
    api.call("GET", f"/v2/accounts/{api.account_id}")
    recorder.flush()
    api.validated = plain
    return seen.headers["x-request-id"]


def _create(console: Console, key: str, amount: str = "25.00", **more: Any) -> Any:
    console.system.advance(1)
    seen = console.create(amount, key=key, **more)
    assert seen.status == 201, seen.body
    return seen.json


def _pay(console: Console, payment: Any, amount: str) -> None:
    console.transfer(payment["escrow"]["address"], amount)
