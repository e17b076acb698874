"""A transfer as a call of our contracts: which factory is called, and with what. Pure.

The deployments are the generations of the contracts, for one admin. The first of them is the one
that derives new addresses. A stored address needs no field for its generation: the one that derives
it is the one whose factory is called.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.fees import Action
from payments_core.chains.port import Contract, SignerRefused, TransferIntent, is_coin_report
from payments_core.chains.typed_data import ZERO_ADDRESS


@attrs.frozen
class FactoryCall:
    """A call of a factory."""

    factory: str
    action: Action
    data: bytes


def find_deployment(
    deployments: Sequence[Deployment], environment_id: str, contract: Contract
) -> Deployment | None:
    """The generation that a contract of ours is of; None for an address of other contracts."""
    kind = contract.kind
    if kind == "operator":
        return None
    return next(
        (
            deployment
            for deployment in deployments
            if deployment.address(environment_id, kind, contract.owner_id) == contract.address
        ),
        None,
    )


def find_payer(deployments: Sequence[Deployment], intent: TransferIntent) -> str:
    """See Chain: a vault pays through the transfer's own escrow, of its own generation."""
    if is_coin_report(intent):
        return ZERO_ADDRESS
    if not _is_paid_out(intent):
        return intent.source.address
    found = find_deployment(deployments, intent.environment_id, intent.source)
    return (found or deployments[0]).address(intent.environment_id, "escrow", intent.id)


def encode_intent(deployments: Sequence[Deployment], intent: TransferIntent) -> FactoryCall:
    """The call that makes the transfer.

    Raises SignerRefused unless the money is at our contracts' address, and if they would pay
    another recipient, or cannot pay the token.
    """
    source, environment_id = intent.source, intent.environment_id
    deployment = find_deployment(deployments, environment_id, source)
    if deployment is None:
        raise SignerRefused(f"{intent.id}: {source.address} is not a contract of this deployment")
    required = intent.recipient
    if intent.escrow_of is not None:
        required = deployment.address(environment_id, "escrow", intent.escrow_of)
    elif source.kind == "deposit" and not is_coin_report(intent):
        required = deployment.address(environment_id, "vault", source.owner_id)
    if required != intent.recipient:
        raise SignerRefused(f"{intent.id}: the contracts would pay another recipient")
    token = intent.token_address
    if token == NATIVE_ADDRESS:
        if not deployment.pays_coin:
            raise SignerRefused(f"{intent.id}: {source.address} cannot pay native coin")
        token = deployment.factory
    return FactoryCall(deployment.factory, *_encode_call(intent, token))


def _is_paid_out(intent: TransferIntent) -> bool:
    return intent.source.kind == "vault" and intent.escrow_of is None


def _encode_call(intent: TransferIntent, token: str) -> tuple[Action, bytes]:
    """The factory's function for the transfer, and its calldata."""
    environment, amount = intent.environment_id, intent.amount_atomic
    source, to = intent.source, intent.recipient
    if is_coin_report(intent):
        assert source.kind != "operator"
        return "report", calls.report(environment, source.kind, source.owner_id)
    if source.kind == "escrow":
        return "pay", calls.pay(environment, source.owner_id, token, to, amount)
    if source.kind == "deposit":
        return "sweep", calls.sweep(environment, source.owner_id, token, amount)
    if _is_paid_out(intent):
        return "pay_out", calls.pay_out(environment, source.owner_id, intent.id, token, to, amount)
    assert intent.escrow_of is not None
    return "fund", calls.fund(environment, source.owner_id, intent.escrow_of, token, amount)
