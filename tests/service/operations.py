"""Every public operation of the service."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from payments_core.resources import Resources, Shown
from payments_core.service import PaymentsService
from payments_core.tenants.authorization import Authority

OPEN = ("tenants", "operators", "operator_sessions", "client_tokens", "checkout")
"""The resources of the service itself, whose operations have no authority bound."""


def find_resource(service: PaymentsService, authority: Authority, resource: str) -> Any:
    """A resource by its name, of the service itself or bound to the authority."""
    holder: Any = service if resource in OPEN else service.acting_as(authority)
    return getattr(holder, resource)


def list_operations() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Resource, name, and the function as callers see it."""
    kinds = {name: one.kind for name, one in vars(Resources).items() if isinstance(one, Shown)}
    hints = get_type_hints(PaymentsService)
    for resource, kind in {**{name: hints[name] for name in OPEN}, **kinds}.items():
        for name, operation in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield resource, name, operation
