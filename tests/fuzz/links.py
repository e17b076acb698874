"""Links that Schemathesis does not find by itself: from what makes an object to what is done to it.

It infers most from names and schemas. It does not where the id of what was made stands deeper in
the answer, or where nothing is read of it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

MADE = (
    ("createWebhook", "webhookId", "/webhookEndpoint/id"),
    ("createClientSession", "clientSessionId", "/clientSessionId"),
    ("createMandate", "mandateId", "/id"),
    ("listWebhookDeliveries", "deliveryId", "/deliveries/0/id"),
    ("exchangePaymentLink", "paymentId", "/paymentId"),
)
"""An operation, what it makes, and where the id is."""

_NAMES = re.compile(r"\{(\w+)\}")


def add_links(document: dict[str, Any]) -> None:
    """Write the links into a document."""
    operations = {
        operation["operationId"]: (path, operation) for path, operation in found(document)
    }
    for source, name, pointer in MADE:
        source_path, operation = operations[source]
        known = set(_NAMES.findall(source_path))
        parameters = {held: f"$request.path.{held}" for held in known}
        parameters[name] = f"$response.body#{pointer}"
        success = next(
            response
            for status, response in operation["responses"].items()
            if status.startswith("2")
        )
        for target, (path, _) in operations.items():
            names = set(_NAMES.findall(path))
            if name in names <= known | {name} and target != source:
                success.setdefault("links", {})[f"{source}To{target}"] = {
                    "operationId": target,
                    "parameters": {needed: parameters[needed] for needed in sorted(names)},
                }


def found(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation, with its path."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            yield path, operation
