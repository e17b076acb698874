"""The pytest plugin: its fixtures, Payments in every state, and events for an application."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request

from payments_core import PaymentsService
from payments_core.payments.transitions import PAYMENT
from payments_core_http.client import verify_webhook
from payments_core_http.testing import CapturedEvents, PaymentsSandbox, SandboxTime
from payments_core_http.testing.sandbox import _STATUSES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "test-your-integration.md"


@pytest.mark.parametrize("status", _STATUSES)
def test_a_payment_reaches_every_status(payments_sandbox: PaymentsSandbox, status: str) -> None:
    payment = payments_sandbox.make_payment(status, reference="order-1")
    assert (payment.status, payment.reference) == (status, "order-1")
    assert payment.amount == "25.00"


def test_every_status_of_a_payment_can_be_made() -> None:
    assert set(_STATUSES) == set(PAYMENT.states)


def test_another_status_is_refused(payments_sandbox: PaymentsSandbox) -> None:
    with pytest.raises(ValueError, match="succeeded"):
        payments_sandbox.make_payment("paid")


def test_events_are_captured_as_they_would_come(
    payments_sandbox: PaymentsSandbox, payments_events: CapturedEvents
) -> None:
    payment = payments_sandbox.make_payment("succeeded")
    names = sorted(name for name in payments_events.names if name.startswith("payment."))
    assert names == [
        "payment.accepted", "payment.created", "payment.executing", "payment.processing",
        "payment.succeeded",
    ]  # fmt: skip
    [event] = payments_events.named("payment.succeeded")
    assert event.payload["paymentId"] == payment.id
    for one in payments_events.deliveries:
        assert verify_webhook(one.body, one.headers, payments_events.signing_secret) == one.event


def test_an_application_gets_the_deliveries_and_a_failure_is_retried(
    payments_sandbox: PaymentsSandbox,
    payments_events: CapturedEvents,
    payments_clock: SandboxTime,
) -> None:
    seen: list[str] = []
    statuses = ["503 Service Unavailable"]

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read()
        event = verify_webhook(body, environ, payments_events.signing_secret)
        seen.append(f"{environ['PATH_INFO']} {event.name}")
        start_response(statuses.pop() if statuses else "204 No Content", [])
        return []

    payments_events.forward_to(app, "/hooks")
    payments_sandbox.make_payment()
    assert seen == ["/hooks payment.created"]
    payments_clock.advance(timedelta(minutes=1))
    assert seen == ["/hooks payment.created"] * 2


def test_an_asgi_application_gets_them_too(
    payments_sandbox: PaymentsSandbox,
    payments_events: CapturedEvents,
    payments_clock: SandboxTime,
) -> None:
    """Also in a test that has an event loop; what fails is a 500, and comes again."""
    server, seen = FastAPI(), []

    @server.post("/hooks")
    async def receive(request: Request) -> None:
        event = verify_webhook(
            await request.body(), request.headers, payments_events.signing_secret
        )
        seen.append(event.name)
        if len(seen) == 1:
            raise LookupError

    async def play() -> None:
        payments_sandbox.make_payment()
        assert seen == ["payment.created"]
        payments_clock.advance(timedelta(minutes=1))

    payments_events.forward_to(server, "/hooks")
    asyncio.run(play())
    assert seen == ["payment.created"] * 2


def test_the_clock_stands_until_it_is_moved(
    payments_clock: SandboxTime, payments_service: PaymentsService
) -> None:
    for partner in ("one", "two"):  # of several apps over HTTP none may move it
        payments_service.tenants.create_app(partner, partner)
    before = payments_clock.now()
    assert payments_clock.now() == before
    payments_clock.advance(90)
    assert payments_clock.now() - before == timedelta(seconds=90)
    assert payments_service.parts.ports.clock.now() >= 0


def test_loading_the_plugin_loads_nothing_of_the_service() -> None:
    script = (
        "import sys, payments_core_http.testing.plugin;"
        "print({'httpx2', 'falcon', 'payments_core.service'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.timeout(240)
def test_the_tests_of_the_page_work_as_they_stand(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert len([line for line in blocks[-1].splitlines() if line]) == 8
    for number, block in enumerate(blocks):
        (tmp_path / f"test_shop_{number}.py").write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{''.join(blocks).count('def test_')} passed" in done.stdout
