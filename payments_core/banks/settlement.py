"""When a transfer that a bank received settles: pure, from the tables of `rails`."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import count

import attrs

from payments_core.banks.banking_days import (
    add_banking_days,
    eastern_date,
    eastern_instant,
    is_banking_day,
)
from payments_core.banks.rails import SERVICES, Moment, RailService, ServiceName
from payments_core.clock import Instant


@attrs.frozen
class Settlement:
    """When a transfer settles: the settlement date of the rail, and the instant.

    A wire on the evening before a business day settles at once, and has the date of that day.
    """

    on: date
    at: Instant


def plan_settlement(name: ServiceName, received_at: Instant) -> Settlement:
    """When a transfer settles that the service received at this instant."""
    service = SERVICES[name]
    yesterday = eastern_date(received_at) - timedelta(days=1)  # its last window may still be open
    return next(
        settlement
        for days in count()
        if is_banking_day(day := yesterday + timedelta(days=days))
        if (settlement := _settle_on(service, day, received_at)) is not None
    )


def _settle_on(service: RailService, day: date, received_at: Instant) -> Settlement | None:
    """The settlement on this banking day, or None if it is too late for the day."""
    if service.hours is not None:
        if received_at > _at(day, service.hours.closes):
            return None
        return Settlement(day, max(received_at, _at(day, service.hours.opens)))
    for window in service.windows:
        if received_at <= _at(day, window.deadline):
            settles_on = add_banking_days(day, window.settles.days)
            return Settlement(settles_on, eastern_instant(settles_on, window.settles.at))
    return None


def _at(day: date, moment: Moment) -> Instant:
    return eastern_instant(day + timedelta(days=moment.days), moment.at)
