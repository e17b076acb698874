"""Whatever an operation is given, it answers in the words of the service, and stores nothing that
cannot be read.

Each operation that takes an idempotency key is called with each of its arguments replaced by values
that no caller means. The fields of input classes are in `test_library_inputs.py`, except those
that are records of their own; what is not of the asked kind is in `test_argument_kinds.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cached_property
from typing import Any, get_type_hints

import attrs
import pytest

from payments_core.accounts.record import Settlement
from payments_core.accounts.vaults.record import AllowedDestination, PolicyTerms
from payments_core.accounts.wallet_signatures import MessageSignature
from payments_core.errors import PaymentsError, ValidationFailed
from payments_core.payment_settings.record import AllowedWallet, PaymentTerms
from payments_core.payments.mandates.operations import NewMandate
from payments_core.service import PaymentsService
from payments_core.webhooks.lifecycle import EndpointChanges
from tests.service.world import BASE, WALLET, World

ODD = (
    "", "\ud800", "\0", "x" * 9_000, True, 0, 1.5, -1, 2**64, Decimal("NaN"), b"x", [1],
    ["\ud800"], {"a": object()}, {1: 1}, object(),
)  # fmt: skip

NOT_CALLED = {
    "accounts.hold_open": "works inside a transaction",
    "payments.create_receive_payment": "is for other operations",
    "role_modules.deploy": "takes bytes, which the legacy interface reads from text",
}


def operations() -> Iterator[tuple[str, str, inspect.Signature]]:
    for resource, value in vars(PaymentsService).items():
        if not isinstance(value, cached_property):
            continue
        kind = get_type_hints(value.func)["return"]
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            signature = inspect.signature(method)
            is_public = not name.startswith("_") and f"{resource}.{name}" not in NOT_CALLED
            if is_public and "idempotency_key" in signature.parameters:
                yield resource, name, signature


OPERATIONS = {f"{resource}.{name}": (resource, name, it) for resource, name, it in operations()}


def sound_arguments(world: World) -> dict[str, Any]:
    """A value for each name of a parameter that is not an input class."""
    service, server, payer = world.service, world.server, world.payer
    payment = world.payment()
    option = world.option(payment).option
    vault = world.vault_of()
    mandate = NewMandate(vault_id=vault.id, amount_per_period="5", period="day")
    endpoint, _ = service.webhooks.create(server, url="https://192.0.43.8/1")
    return {
        "account_id": payer.id, "vault_id": vault.id, "payment_id": payment.payment.id,
        "mandate_id": service.mandates.create(server, payer.id, mandate).mandate.id,
        "option_id": option.id, "action_id": option.action_id, "endpoint_id": endpoint.id,
        "session_id": payment.payment.session_id, "chain_id": BASE, "address": WALLET,
        "chain_type": "evm", "signature": "0x" + "11" * 65, "username": "zoe",
        "status": "approved", "capability": "us_bank_payout", "enabled": False,
        "method": "direct", "transaction_hash": "0x" + "ab" * 32, "reason": "late",
        "resolution": "won", "action": "accept", "url": "https://192.0.43.8/2",
        "since": world.clock.now(),
    }  # fmt: skip


def read_lists(world: World) -> None:
    """Every list of the environment answers."""
    service, server = world.service, world.server
    service.payments.list(server, limit=100)
    service.webhooks.list(server, limit=100)
    service.webhook_events.list(server, limit=100)
    for item in service.accounts.list(server, limit=100).records:
        service.wallets.list(server, item.account.id)
        service.verifications.list(server, item.account.id)
        service.deposits.list_addresses(server, item.account.id)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_odd_arguments_are_refused_in_the_words_of_the_service(
    memory_world: World, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    world = memory_world
    resource, name, signature = OPERATIONS[operation]
    call = getattr(getattr(world.service, resource), name)
    is_payers = resource in ("vault_options", "funding")
    authority = world.client if is_payers else world.server
    sound = sound_arguments(world)
    hints = get_type_hints(inspect.unwrap(getattr(type(getattr(world.service, resource)), name)))
    given = {
        it.name: sound.get(it.name, "x")
        for it in signature.parameters.values()
        if it.default is it.empty and it.name not in ("self", "authority")
    }
    for parameter in signature.parameters:
        if parameter in ("self", "authority") or parameter.endswith("_version"):
            continue
        if attrs.has(hints[parameter]):
            continue
        for odd in ODD:
            with suppress(PaymentsError):
                call(authority, **{**given, parameter: odd})
    read_lists(world)
    for endpoint in world.service.webhooks.list(world.server).records:  # nobody is there
        world.service.webhooks.update(world.server, endpoint.id, EndpointChanges(status="archived"))
    world.run()
    assert "failed at attempt" not in caplog.text  # no job was left that cannot be done


TERMS = PaymentTerms(allowed_destinations=(AllowedWallet(chain_id=BASE, address=WALLET),))
POLICY = PolicyTerms(allowed_destinations=(AllowedDestination(type="wallet", address=WALLET),))
SIGNED = MessageSignature(chain_type="evm", address=WALLET, message="m", signature="0x11")
INPUTS: Mapping[str, Any] = {
    "accounts.set_settlement": Settlement(chain_id=BASE, asset_symbol="USDC"),
    "wallets.add_by_message": SIGNED,
    "payment_settings.replace": TERMS,
    "vault_policies.replace": POLICY,
    "webhooks.update": EndpointChanges(),
}


@pytest.mark.parametrize("operation", INPUTS)
def test_odd_fields_of_records_are_refused_by_their_paths(
    memory_world: World, operation: str
) -> None:
    world, sound = memory_world, sound_arguments(memory_world)
    resource, name, signature = OPERATIONS[operation]
    call = getattr(getattr(world.service, resource), name)
    ids = {it: sound[it] for it in signature.parameters if it.endswith("_id")}
    [parameter] = signature.parameters.keys() & {"settlement", "wallet", "terms", "changes"}
    for field in attrs.fields(type(INPUTS[operation])):
        for odd in (object(), 1.5, b"x", {"a": object()}):
            changed = attrs.evolve(INPUTS[operation], **{field.alias: odd})
            with pytest.raises(ValidationFailed) as refused:
                call(world.server, **ids, **{parameter: changed})
            assert all(fault.path for fault in refused.value.fields)
