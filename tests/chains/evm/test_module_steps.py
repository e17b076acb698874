"""The steps of a role module as the outbox has them, on a node."""

from __future__ import annotations

import attrs
import pytest

from payments_core.chains.port import Contract, ModuleIntent, SignerRefused, TransferIntent
from payments_core.chains.role_modules import ModuleChain, ModuleState
from tests.chains.evm.deployed import ENV, Deployed
from tests.chains.evm.nodes import OPERATOR, OWNER, STRANGER
from tests.chains.evm.safes import ZERO
from tests.chains.evm.test_deploy_role_module import Home


def test_the_outbox_prepares_both_transactions_from_what_is_stored(deployed: Deployed) -> None:
    home = Home(deployed, "vault")
    tokens = (home.token,)
    assert isinstance(home.chain, ModuleChain)
    assert home.chain.find_module(ENV, home.address, tokens) == home.module.address
    accepted = home.accepted(home.decided(), home.signs())
    deploy = ModuleIntent(home.address, home.module.address, tokens)
    for step in (deploy, attrs.evolve(deploy, signature=accepted.hex())):
        slot = int(home.node.ask("eth_getTransactionCount", OPERATOR, "latest"), 16)
        prepared = home.chain.prepare(module_intent(step), slot)
        home.chain.broadcast(prepared)
        assert home.node.receipt(prepared.hash).succeeded
    standing = home.chain.read_module(ENV, home.address, tokens)
    assert standing == ModuleState(1, OWNER, is_deployed=True, is_enabled=True)
    with pytest.raises(SignerRefused, match="no longer configured"):
        home.chain.prepare(module_intent(attrs.evolve(deploy, module=STRANGER)), 0)


def module_intent(step: ModuleIntent) -> TransferIntent:
    """A step as the outbox has it."""
    source = Contract("operator", "operator", OPERATOR)
    return TransferIntent("out_1", ENV, ZERO, source, step.module, 0, module=step)
