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
from typing import Any, get_type_hints

import attrs
import pytest

from payments_core.accounts.record import Settlement
from payments_core.accounts.vaults.record import AllowedDestination, PolicyTerms
from payments_core.accounts.wallet_signatures import MessageSignature
from payments_core.errors import PaymentsError, ValidationFailed
from payments_core.payment_settings.record import AllowedWallet, PaymentTerms
from payments_core.payments.mandates.operations import NewMandate
from payments_core.webhooks.endpoint_fields import EndpointChanges
from tests.service.operations import find_resource, list_operations
from tests.service.world import BASE, WALLET, World

ODD = (
    "", "\ud800", "\0", "x" * 9_000, True, 0, 1.5, -1, 2**64, Decimal("NaN"), b"x", [1],
    ["\ud800"], {"a": object()}, {1: 1}, object(),
)  # fmt: skip

NOT_CALLED = {
    "legacy.deploy_role_module": "takes bytes, which the legacy interface reads from text",
}


def operations() -> Iterator[tuple[str, str, inspect.Signature]]:
    for resource, name, operation in list_operations():
        signature = inspect.signature(operation)
        if f"{resource}.{name}" not in NOT_CALLED and "idempotency_key" in signature.parameters:
            yield resource, name, signature


OPERATIONS = {f"{resource}.{name}": (resource, name, it) for resource, name, it in operations()}


def sound_arguments(world: World) -> dict[str, Any]:
    """A value for each name of a parameter that is not an input class."""
    service, server, payer = world.service, world.server, world.payer
    payment = world.payment()
    option = world.option(payment).option
    vault = world.vault_of()
    mandate = NewMandate(vault_id=vault.id, amount_per_period="5", period="day")
    endpoint, _ = service.acting_as(server).webhooks.create(url="https://192.0.43.8/1")
    return {
        "account_id": payer.id, "vault_id": vault.id, "payment_id": payment.payment.id,
        "mandate_id": service.acting_as(server).mandates.create(payer.id, mandate).mandate.id,
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
    service.acting_as(server).payments.list(limit=100)
    service.acting_as(server).webhooks.list(limit=100)
    service.acting_as(server).events.list(limit=100)
    for item in service.acting_as(server).accounts.list(limit=100).records:
        service.acting_as(server).wallets.list(item.account.id)
        service.acting_as(server).verifications.list(item.account.id)
        service.acting_as(server).deposits.list_addresses(item.account.id)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_odd_arguments_are_refused_in_the_words_of_the_service(
    memory_world: World, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    world = memory_world
    resource, name, signature = OPERATIONS[operation]
    authority = world.client if resource == "options" else world.server
    call = getattr(find_resource(world.service, authority, resource), name)
    sound = sound_arguments(world)
    hints = get_type_hints(inspect.unwrap(call))
    given = {
        it.name: sound.get(it.name, "x")
        for it in signature.parameters.values()
        if it.default is it.empty and it.name != "self"
    }
    for parameter in signature.parameters:
        if parameter == "self" or parameter.endswith("_version"):
            continue
        if attrs.has(hints[parameter]):
            continue
        for odd in ODD:
            with suppress(PaymentsError):
                call(**{**given, parameter: odd})
    read_lists(world)
    for endpoint in world.resources.webhooks.list().records:  # nobody is there
        world.resources.webhooks.change(endpoint.id, EndpointChanges(status="archived"))
    world.run()
    assert "failed at attempt" not in caplog.text  # no job was left that cannot be done


TERMS = PaymentTerms(allowed_destinations=(AllowedWallet(chain_id=BASE, address=WALLET),))
POLICY = PolicyTerms(allowed_destinations=(AllowedDestination(type="wallet", address=WALLET),))
SIGNED = MessageSignature(chain_type="evm", address=WALLET, message="m", signature="0x11")
INPUTS: Mapping[str, Any] = {
    "accounts.set_settlement": Settlement(chain_id=BASE, asset_symbol="USDC"),
    "wallets.add_by_message": SIGNED,
    "payment_settings.replace": TERMS,
    "vaults.replace_policy": POLICY,
    "webhooks.change": EndpointChanges(),
}


@pytest.mark.parametrize("operation", INPUTS)
def test_odd_fields_of_records_are_refused_by_their_paths(
    memory_world: World, operation: str
) -> None:
    world, sound = memory_world, sound_arguments(memory_world)
    resource, name, signature = OPERATIONS[operation]
    call = getattr(find_resource(world.service, world.server, resource), name)
    ids = {it: sound[it] for it in signature.parameters if it.endswith("_id")}
    [parameter] = signature.parameters.keys() & {"settlement", "wallet", "terms", "changes"}
    for field in attrs.fields(type(INPUTS[operation])):
        for odd in (object(), 1.5, b"x", {"a": object()}):
            changed = attrs.evolve(INPUTS[operation], **{field.alias: odd})
            with pytest.raises(ValidationFailed) as refused:
                call(**ids, **{parameter: changed})
            assert all(fault.path for fault in refused.value.fields)
