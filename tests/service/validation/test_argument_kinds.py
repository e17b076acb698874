"""Every public operation refuses by its name what is not of the kind that it takes there.

No other argument is one that it could work with: one that is not checked first shows by an error
that is not the library's. What `test_every_operation.py` calls is there for what comes after.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import pytest
from msgspec import UnsetType

from payments_core import KeyRing
from payments_core.errors import NotFound, Unauthorized, ValidationFailed
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.tenants.authorization import Authority
from payments_core.validation.fields import Credential
from tests.service.operations import find_resource, list_operations
from tests.service.world import RING, World

NOTHING_PLAIN = (1.5, b"acct_1", [object()], {object(): object()}, object())
NO_CREDENTIAL = (*NOTHING_PLAIN, 7, True, ["acct_1"])
NO_TEXT = (7, True, ["acct_1"], "acct_\ud800", "acct_\0")


def is_plain(hint: Any) -> bool:
    """Whether it is of texts, numbers, flags and listed values alone."""
    if get_origin(hint) is Literal:
        return True
    if get_origin(hint) in (Union, UnionType, Sequence, Mapping):
        return all(map(is_plain, get_args(hint)))
    return hint in (str, int, bool, NoneType, UnsetType)


def checked_arguments() -> Iterator[tuple[str, str, str, tuple[object, ...]]]:
    """Resource, operation, parameter, and what is refused there."""
    for resource, name, operation in list_operations():
        written = inspect.unwrap(operation)
        rules = get_type_hints(written, include_extras=True)
        for parameter, hint in get_type_hints(written).items():
            if parameter not in inspect.signature(operation).parameters:
                continue
            if rules[parameter] in (Credential, Credential | None):
                yield resource, name, parameter, NO_CREDENTIAL
            elif hint in (str, str | None):
                yield resource, name, parameter, (*NOTHING_PLAIN, *NO_TEXT)
            elif is_plain(hint) or attrs.has(hint):
                yield resource, name, parameter, NOTHING_PLAIN


ARGUMENTS = tuple(checked_arguments())


@pytest.fixture(scope="module")
def service() -> Iterator[PaymentsService]:
    service = PaymentsService(MemoryStorage(), KeyRing.parse(RING))
    yield service
    service.close()


def authority_of(service: PaymentsService) -> Authority:
    app = service.tenants.find_app_by_partner("acme") or service.tenants.create_app("Acme", "acme")
    return service.tenants.system_authority(app.environments["sandbox"])


@pytest.mark.parametrize("resource", sorted({resource for resource, *_ in ARGUMENTS}))
def test_what_an_argument_cannot_be_is_refused_by_its_name(
    service: PaymentsService, resource: str
) -> None:
    for name, parameter, odd in [one[1:] for one in ARGUMENTS if one[0] == resource]:
        call = getattr(find_resource(service, authority_of(service), resource), name)
        signature = inspect.signature(call)
        others = [it.name for it in signature.parameters.values() if it.default is it.empty]
        for value in odd:
            with pytest.raises(ValidationFailed) as refused:
                call(**{**dict.fromkeys(others), parameter: value})
            paths = [re.split(r"[.[]", fault.path)[0] for fault in refused.value.fields]
            assert parameter in paths, (name, parameter, value)


def test_the_operations_of_every_resource_are_asked() -> None:
    seen = {one[:3] for one in ARGUMENTS}
    assert {("accounts", "read", "account_id"), ("operators", "create", "username")} <= seen
    assert {("payments", "receive", "new"), ("payments", "list", "limit")} <= seen
    assert ("tenants", "set_products", "products") in seen
    assert len(seen) > 200


def test_a_credential_may_be_any_text_and_opens_nothing(service: PaymentsService) -> None:
    refused = 0
    for resource, name, parameter, odd in ARGUMENTS:
        if odd is not NO_CREDENTIAL:
            continue
        call = getattr(find_resource(service, authority_of(service), resource), name)
        parameters = inspect.signature(call).parameters.values()
        given = {it.name: "x" for it in parameters if it.default is it.empty}
        given |= {"mode": "sandbox"} if "mode" in given else {}
        for text in ("\ud800", "\0"):
            try:
                call(**{**given, parameter: text})
            except (NotFound, Unauthorized):
                refused += 1
    assert refused > 20


def test_a_text_that_nothing_has_is_not_found(memory_world: World) -> None:
    for nobodys in ("", "x", "é", "x" * 9_000):
        with pytest.raises(NotFound):
            memory_world.resources.accounts.read(nobodys)


UNFIT = ((), ("x",), ("x", "y"), [1, "x"], (None, "x"), (2**63, "x"), (1, "\0"), (1, 2), "abc", 7)


def test_a_list_goes_on_behind_the_end_of_a_page_alone(memory_world: World) -> None:
    world = memory_world
    endpoint, _ = world.resources.webhooks.create(url="https://192.0.43.8/1")
    given: dict[str, Any] = {
        "account_id": world.payer.id, "payment_id": world.payment().payment.id,
        "endpoint_id": endpoint.id, "is_wanted": bool, "limit": 50,
        "from_": "2026-09-01", "to": "2026-09-02",
    }  # fmt: skip
    asked = 0
    for resource, name, operation in list_operations():
        parameters = inspect.signature(operation).parameters
        if "after" not in parameters or "onramp_account_id" in parameters:  # there is none
            continue
        asked += 1
        needed = {name: given[name] for name in given if name in parameters}
        found = find_resource(world.service, world.server, resource)
        call = partial(getattr(found, name), **needed)
        for unfit in UNFIT:
            with pytest.raises(ValidationFailed, match="after must be the `next` of a page"):
                call(after=unfit)
        for limit in (0, 1_001):
            with pytest.raises(ValidationFailed, match="limit must be"):
                call(limit=limit)
    assert asked > 15
