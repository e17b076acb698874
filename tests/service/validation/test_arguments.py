"""The outermost call checks its arguments, and no call inside does."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, get_type_hints

import pytest

from payments_core import (
    KeyRing,
    NewAccount,
    NewPayment,
    PaymentsService,
    Settings,
    ToAccount,
    WebhookSettings,
    open_storage,
)
from payments_core.errors import ValidationFailed
from payments_core.tenants.authorization import Authority
from payments_core.validation import arguments
from payments_core.validation.arguments import guard, is_checked
from tests.service.operations import list_operations

KEY_RING = KeyRing.parse(KeyRing.generate())


class Accounts:
    """A resource whose operations call one another."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def open(self, name: str, *, count: int = 1) -> str:
        """Call another operation with what no caller may give."""
        self.seen.append(name)
        return self.close(7, count=count)  # type: ignore[arg-type]

    def close(self, name: str, *, count: int = 1) -> str:
        """The arguments, as they came."""
        return f"{name} {count}"


@pytest.fixture(scope="module")
def service() -> Iterator[PaymentsService]:
    service = PaymentsService(open_storage("memory:"), KEY_RING)
    yield service
    service.close()


@pytest.fixture(scope="module")
def me(service: PaymentsService) -> Authority:
    app = service.tenants.create_app("Acme", "acme")
    return service.tenants.system_authority(app.environments["sandbox"])


def paths(call: Callable[[], object]) -> list[str]:
    with pytest.raises(ValidationFailed) as caught:
        call()
    return [fault.path for fault in caught.value.fields]


def test_only_the_outermost_call_is_checked() -> None:
    plain = Accounts()
    guarded = guard(plain)
    assert isinstance(guarded, Accounts)
    assert guarded.open("x", count=2) == "7 2"
    assert guarded.seen is plain.seen == ["x"]
    assert paths(lambda: guarded.close(7, count="2")) == ["name", "count"]  # type: ignore[arg-type]


def test_a_create_checks_its_arguments_once(service: PaymentsService, me: Authority) -> None:
    account = service.acting_as(me).accounts.create(
        NewAccount(external_user_id="bob", subject_type="individual")
    )
    new = NewPayment(amount="25.00", destination=ToAccount(account_id=account.account.id))
    entered: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == arguments.__file__:
            entered[frame.f_code.co_name] += 1

    shop = service.acting_as(me)
    sys.setprofile(count)
    try:
        shop.payments.receive(new, idempotency_key="order-1")
    finally:
        sys.setprofile(None)
    assert entered["checked"] == 1


@pytest.mark.parametrize("other", [None, "acme", object(), NewAccount])
def test_what_is_no_authority_is_refused_by_its_name(
    service: PaymentsService, other: object
) -> None:
    assert paths(lambda: service.acting_as(other)) == ["authority"]  # type: ignore[arg-type]


def test_every_fault_of_a_call_is_named_at_once(service: PaymentsService, me: Authority) -> None:
    new = NewPayment(amount=25, destination=ToAccount(account_id=""))  # type: ignore[arg-type]
    refused = paths(lambda: service.acting_as(me).payments.receive(new))
    assert refused == ["amount", "destination.account_id"]


CONSTRUCTORS: Mapping[str, tuple[Callable[[], object], list[str]]] = {
    "texts": (lambda: PaymentsService("sqlite:///x", "k"), ["storage", "key_ring"]),  # type: ignore[arg-type]
    "nothing": (lambda: PaymentsService(None, None), ["storage", "key_ring"]),  # type: ignore[arg-type]
    "other parts": (
        lambda: PaymentsService(
            open_storage("memory:"),
            KEY_RING,
            settings={},
            chains=[],
            clock=7,  # type: ignore[arg-type]
        ),
        ["settings", "chains", "clock"],
    ),
    "settings": (
        lambda: Settings(max_remote_calls="5", docs_url=3, webhooks=1),  # type: ignore[arg-type]
        ["docs_url", "max_remote_calls", "webhooks"],
    ),
    "webhooks": (
        lambda: WebhookSettings(local_allowed=1, attempt_s=1.5),
        ["attempt_s", "local_allowed"],
    ),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("given", CONSTRUCTORS)
def test_a_constructor_refuses_what_is_of_another_kind(given: str) -> None:
    make, refused = CONSTRUCTORS[given]
    assert paths(make) == refused


UNCHECKED = {
    "after": "the list's index checks it",
    "is_wanted": "a function",
}
"""The parameters of operations that are not checked, and why."""


def test_every_other_parameter_of_every_operation_is_checked() -> None:
    unchecked = set()
    for _, _, operation in list_operations():
        hints = get_type_hints(inspect.unwrap(operation), include_extras=True)
        del hints["return"]
        unchecked |= {one for one, hint in hints.items() if not is_checked(hint)}
    assert unchecked == UNCHECKED.keys()


def test_a_rule_is_made_for_every_parameter() -> None:
    made: dict[str, Any] = {}
    for resource, name, operation in list_operations():
        made[f"{resource}.{name}"] = arguments._argument_hooks(inspect.unwrap(operation))
    assert len(made) > 130


def test_a_session_of_python_shows_no_internals(service: PaymentsService, me: Authority) -> None:
    assert repr(service) == "<PaymentsService: chains simulated>"
    shop = service.acting_as(me)
    assert repr(shop) == f"<Resources of {me.partition}>"
    assert repr(shop.payments) == f"<Payments of {me.partition}>"
    assert repr(me) == f"<Authority: trusted, sandbox environment {me.partition}>"
    shown = repr(me.environment)
    assert "Environment(id=" in shown
    assert "version=1" not in shown
    assert "schema" not in shown
