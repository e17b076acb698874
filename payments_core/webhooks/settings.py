"""A deployment's settings for webhooks."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.validation.arguments import check_fields
from payments_core.webhooks.destinations import RefusedPrefix


@attrs.frozen
class WebhookSettings:
    """A deployment's settings for webhooks.

    An environment has at most `max_active_endpoints`: every event makes a delivery to each.
    A delivery is attempted `max_attempts` times at most, each for at most `attempt_s` seconds.
    `local_allowed` is for a sandbox bound only to loopback: http:// and loopback are then allowed.
    `refused_prefixes` are an operator's own, in addition to the built-in table.

    >>> rules = WebhookSettings(refused_prefixes=(RefusedPrefix.of("10.9.0.0/16", "our network"),))
    >>> Settings(webhooks=rules).webhooks == rules
    True
    """

    __repr__ = brief_repr

    max_active_endpoints: int = 100
    max_attempts: int = 10
    attempt_s: int = 10
    local_allowed: bool = False
    refused_prefixes: tuple[RefusedPrefix, ...] = ()

    def __attrs_post_init__(self) -> None:
        check_fields(self)

    def delivery_policy(self) -> dict[str, Any]:
        """`deliveryPolicy` as the config route and the console show it."""
        return {
            "guarantee": "at_least_once",
            "maxAttempts": self.max_attempts,
            "localPrivateDestinationsAllowed": self.local_allowed,
            "dedupe": {
                "deliveryRetryHeader": "x-service-delivery",
                "eventHeader": "x-service-event-id",
            },
        }
