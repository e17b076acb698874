"""A received event, read from a body of either format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec


class ReceivedEvent(msgspec.Struct, frozen=True, rename="camel"):
    """A verified event, of either format. It is a prompt to read the resource: it may repeat, and
    come late.

    >>> event = read_event(
    ...     b'{"id": "evt_1", "name": "payment.succeeded", "apiVersion": "2026-09-09",'
    ...     b' "createdAt": "2026-12-01T10:00:00.000Z", "payload": {"paymentId": "payment_1"}}'
    ... )
    >>> event.name, event.payload["paymentId"]
    ('payment.succeeded', 'payment_1')
    """

    id: str
    name: str
    api_version: str
    created_at: str
    payload: Mapping[str, Any]


class _CloudEvent(msgspec.Struct, frozen=True):
    """An event in the structured mode of CloudEvents."""

    specversion: Literal["1.0"]
    id: str
    type: str
    apiversion: str
    time: str
    data: Mapping[str, Any]


_decode_envelope = msgspec.json.Decoder(ReceivedEvent).decode
_decode_cloud_event = msgspec.json.Decoder(_CloudEvent).decode


def read_event(body: bytes) -> ReceivedEvent:
    """The event of a body that is known to be ours: `verify` is for deliveries from outside.

    Raises msgspec.DecodeError.
    """
    try:
        return _decode_envelope(body)
    except msgspec.ValidationError as error:
        try:
            given = _decode_cloud_event(body)
        except msgspec.ValidationError:
            raise error from None
    return ReceivedEvent(given.id, given.type, given.apiversion, given.time, given.data)
