"""The pytest plugin: fixtures for the tests of those who build on the service.

pytest loads this module in each of its runs, so nothing else is imported before a fixture is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from payments_core import PaymentsService, Resources
    from payments_core_http.testing import CapturedEvents, PaymentsSandbox, SandboxTime


@contextmanager
def _failing_without_packages() -> Iterator[None]:
    """End the test with the command that installs a missing package, and nothing else."""
    from payments_core.extras import ExtraMissing

    try:
        yield
    except ExtraMissing as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture
def payments_events() -> CapturedEvents:
    """The signed events that the service has delivered; see `CapturedEvents`."""
    with _failing_without_packages():
        from payments_core_http.testing import CapturedEvents

    return CapturedEvents()


@pytest.fixture
def payments_service(payments_events: CapturedEvents) -> Iterator[PaymentsService]:
    """A `PaymentsService` in memory, on simulated chains; its clock moves only on request."""
    from payments_core.extras import naming_extra

    with _failing_without_packages(), naming_extra("the fixture payments_service"):
        from payments_core_http.testing.sandbox import open_service

    service = open_service(payments_events, *_find_public_url())
    yield service
    service.close()


def _find_public_url() -> Iterator[str]:
    """That of a Django project with the service, whose tests follow its links."""
    if "payments_core_http.django.apps" in sys.modules:
        from django.conf import settings

        yield from filter(None, [getattr(settings, "PAYMENTS_PUBLIC_URL", None)])


@pytest.fixture
def payments_sandbox(
    payments_service: PaymentsService, payments_events: CapturedEvents
) -> PaymentsSandbox:
    """The service with an app, its keys and a client, and Payments in every state."""
    with _failing_without_packages():
        from payments_core_http.testing import PaymentsSandbox

    return PaymentsSandbox(payments_service, payments_events)


@pytest.fixture
def payments_clock(payments_service: PaymentsService) -> SandboxTime:
    """The sandbox's time: only `advance` moves it."""
    with _failing_without_packages():
        from payments_core_http.testing import SandboxTime

    return SandboxTime(payments_service)


@pytest.fixture
def payments_django(db: None, payments_service: PaymentsService) -> Iterator[Resources]:
    """What `payments_core_http.django.get_resources()` returns, of `payments_service`; handlers of
    events use the connections of the test. It needs pytest-django, and brings its `db`."""
    # `db` is an argument: pytest-django makes test databases only for fixtures that a test names.
    from payments_core_http.django.testing import install

    with install(payments_service) as resources:
        yield resources
