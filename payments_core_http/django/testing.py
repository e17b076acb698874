"""What the fixture `payments_django` of the pytest plugin does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connections

from payments_core_http.django import events
from payments_core_http.django.configuration import read_own_setting
from payments_core_http.django.process import adopt, get_resources

if TYPE_CHECKING:
    from payments_core import PaymentsService, Resources

MODE = "sandbox"


@contextmanager
def install(service: PaymentsService) -> Iterator[Resources]:
    """Let the project use this service, with its app and its handlers of events."""
    partner = read_own_setting("PAYMENTS_PARTNER_ID")
    if service.tenants.find_app_by_partner(partner) is None:
        service.tenants.create_app(read_own_setting("PAYMENTS_APP_NAME"), partner)
    with adopt(service, MODE), _sharing_connections():
        resources = get_resources()
        events.register_handlers(resources)
        yield resources


@contextmanager
def _sharing_connections() -> Iterator[None]:
    """Let handlers, which have threads of their own, use the connections of the test.

    They see what the test has written, also in its transaction. While a handler runs, the test
    waits for it.
    """
    shared = {alias: connections[alias] for alias in connections}

    @contextmanager
    def use_shared() -> Iterator[None]:
        for alias, connection in shared.items():
            connections[alias] = connection
        yield

    for connection in shared.values():
        connection.inc_thread_sharing()
    before, events.within_call = events.within_call, use_shared
    try:
        yield
    finally:
        events.within_call = before
        for connection in shared.values():
            connection.dec_thread_sharing()
