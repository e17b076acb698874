"""The payloads of events in dated contracts, by their names in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_core.contracts.versions import Versions
from payments_core.engine.events import CATALOGUE, Event, EventType


def _name_payload(event: EventType) -> str:
    """Events of a family share a payload, unless one has its own fields."""
    family = event.name.partition(".")[0]
    first = next(one for one in CATALOGUE if one.name.startswith(f"{family}."))
    words = (family if first.fields == event.fields else event.name).replace(".", "_").split("_")
    return "".join(map(str.capitalize, words)) + "Payload"


PAYLOAD_NAMES: Mapping[str, str] = {event.name: _name_payload(event) for event in CATALOGUE}
"""What the payload of each event is called in the OpenAPI document, and in dated contracts."""


def render_payload(event: Event, versions: Versions) -> Mapping[str, Any]:
    """The payload in the contract that the event is bound to; it is stored in the newest."""
    return render_fields(event.name, event.payload, event.api_version, versions)


def render_fields(
    name: str, payload: Mapping[str, Any], date: str, versions: Versions
) -> Mapping[str, Any]:
    """A payload of an event by its name in the contract of a date.

    A later release may have stored an event that this one does not know; it stays as it is.
    """
    return versions.render(PAYLOAD_NAMES.get(name, ""), payload, date)
