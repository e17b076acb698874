"""Two generations of the contracts: what is at addresses of the first one still moves."""

from __future__ import annotations

import attrs
import pytest

from payments_core.acceptance import Acceptance
from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import Deployment, Generation, PurseKind
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import RemoteSigner
from payments_core.chains.port import (
    AddressSpec,
    ChainMismatch,
    Contract,
    SignerRefused,
    TransferIntent,
)
from payments_core.chains.typed_data import ZERO_ADDRESS
from payments_core.networks import shipped_networks
from tests.chains.evm.deployed import CHAIN, ENV, MILLION, Deployed
from tests.chains.evm.nodes import ADMIN, MERCHANT, OPERATOR, PAYER, Node
from tests.chains.evm.test_deploy_role_module import OperatorKeys

NOBODY = "0x" + 40 * "7"


def open_chain(node: Node, generation: Generation = 2, *, refuses_first: bool = False) -> EvmChain:
    """The chain of a deployment that began with that generation; a block is final under another."""
    network = attrs.evolve(shipped_networks()[CHAIN], tokens=(), acceptance=(Acceptance(None, 1),))
    return EvmChain(
        NodeQuorum([node.url], CHAIN),
        Deployment(ADMIN, generation),
        RemoteSigner(OperatorKeys(), {ENV: OPERATOR}),
        network=network,
        refuses_first=refuses_first,
    )


@pytest.fixture
def both(node: Node) -> dict[Generation, Deployed]:
    """Both generations on one chain, with one admin."""
    return {1: Deployed(node, 1), 2: Deployed(node, 2)}


def intent(source: Contract, token: str, to: str, amount: int, **more: str) -> TransferIntent:
    return TransferIntent("out_1", ENV, token, source, to, amount, **more)


def at(deployed: Deployed, kind: PurseKind, owner_id: str) -> Contract:
    return Contract(kind, owner_id, deployed.address(kind, owner_id))


def send(chain: EvmChain, node: Node, wanted: TransferIntent) -> str:
    """Sign it and send it; it must succeed. The sender of its last log is the one foretold."""
    slot = int(node.ask("eth_getTransactionCount", OPERATOR, "latest"), 16)
    signed = chain.prepare(wanted, slot)
    chain.broadcast(signed)
    node.receipt(signed.hash)
    view = chain.transaction(signed.hash)
    assert view is not None
    assert view.succeeded
    log = view.logs[-1]
    assert (log.token_address, log.sender) == (wanted.token_address, chain.find_payer(wanted))
    assert (log.recipient, log.amount_atomic) == (wanted.recipient, wanted.amount_atomic)
    return signed.hash


@pytest.mark.parametrize("began_with", [1, 2])
@pytest.mark.parametrize("stored", [1, 2])
def test_stored_addresses_of_either_generation_pay(
    node: Node, both: dict[Generation, Deployed], began_with: Generation, stored: Generation
) -> None:
    chain, deployed = open_chain(node, began_with), both[stored]
    token = deployed.token()
    vault, escrow = at(deployed, "vault", "user"), at(deployed, "escrow", "payment")
    deposit = at(deployed, "deposit", "user")
    for contract in (vault, deposit):
        deployed.mint(token, contract.address, MILLION)
    send(chain, node, intent(vault, token, escrow.address, 400, escrow_of="payment"))
    send(chain, node, intent(escrow, token, MERCHANT, 300))
    send(chain, node, intent(deposit, token, vault.address, MILLION))
    send(chain, node, intent(vault, token, NOBODY, 5))
    assert deployed.balance(token, escrow.address) == 100
    assert deployed.balance(token, vault.address) == 2 * MILLION - 405


def test_new_addresses_are_of_the_generation_that_the_deployment_began_with(node: Node) -> None:
    for generation in (1, 2):
        chain = open_chain(node, generation)  # type: ignore[arg-type]
        deployment = Deployment(ADMIN, generation)  # type: ignore[arg-type]
        for kind in ("vault", "escrow", "deposit"):
            derived = chain.derive(AddressSpec(ENV, kind, "one"))  # type: ignore[arg-type]
            assert derived == deployment.address(ENV, kind, "one")  # type: ignore[arg-type]
        assert chain.contracts()["factory"] == deployment.factory


@pytest.mark.parametrize("kind", ["escrow", "vault"])
def test_no_transfer_crosses_from_one_generation_to_the_other(
    node: Node, both: dict[Generation, Deployed], kind: PurseKind
) -> None:
    chain, token = open_chain(node), "0x" + 40 * "5"
    new = both[2].address(kind, "one")
    wanted = intent(at(both[1], "deposit", "one"), token, new, 5)
    if kind == "escrow":
        wanted = intent(at(both[1], "vault", "one"), token, new, 5, escrow_of="one")
    with pytest.raises(SignerRefused, match="would pay another recipient"):
        chain.prepare(wanted, 0)


def test_a_deployment_that_does_not_say_its_generation_is_refused_where_the_first_is(
    node: Node,
) -> None:
    with pytest.raises(ChainMismatch, match="has no payments-core factory"):
        open_chain(node, refuses_first=True).check()
    Deployed(node, 1)
    with pytest.raises(ChainMismatch, match="set generation to 1 if"):
        open_chain(node, refuses_first=True).check()
    Deployed(node, 2)
    with pytest.raises(ChainMismatch, match="set generation to 1 if"):
        open_chain(node, refuses_first=True).check()
    open_chain(node, 1).check()
    open_chain(node, 2).check()


def test_native_coin_is_logged_scanned_and_paid_back_as_a_token(
    node: Node, both: dict[Generation, Deployed]
) -> None:
    chain, deployed = open_chain(node), both[2]
    escrow = at(deployed, "escrow", "payment")
    node.do(PAYER, escrow.address, value=700)
    before = chain.heads().latest.number
    hash = send(chain, node, intent(escrow, NATIVE_ADDRESS, escrow.address, 700))
    token = deployed.token()
    deployed.mint(token, escrow.address, 9)
    [found] = chain.scan([NATIVE_ADDRESS], [escrow.address], before, chain.heads().latest.number)
    assert (found.transaction_hash, found.token_address) == (hash, NATIVE_ADDRESS)
    assert (found.sender, found.amount_atomic) == (ZERO_ADDRESS, 700)
    node.ask("anvil_mine", "0x2")
    held = chain.token_balances([NATIVE_ADDRESS, token], [escrow.address])
    assert {one: held[one].amounts[escrow.address] for one in held} == {
        NATIVE_ADDRESS: 700, token: 9,
    }  # fmt: skip
    send(chain, node, intent(escrow, NATIVE_ADDRESS, NOBODY, 700))
    node.ask("anvil_mine", "0x2")
    assert chain.balances(NATIVE_ADDRESS, [escrow.address]).amounts == {escrow.address: 0}
    assert int(node.ask("eth_getBalance", NOBODY, "latest"), 16) == 700


def test_a_deposit_addresss_native_coin_goes_back_by_its_vault(
    node: Node, both: dict[Generation, Deployed]
) -> None:
    chain, deployed = open_chain(node), both[2]
    deposit, vault = at(deployed, "deposit", "user"), at(deployed, "vault", "user")
    node.do(PAYER, deposit.address, value=700)
    for wanted in (
        intent(deposit, NATIVE_ADDRESS, deposit.address, 700),
        intent(deposit, NATIVE_ADDRESS, vault.address, 700),
        intent(vault, NATIVE_ADDRESS, NOBODY, 700),
    ):
        send(chain, node, wanted)
    assert int(node.ask("eth_getBalance", NOBODY, "latest"), 16) == 700


def test_a_look_finds_coin_without_a_log_only_where_it_can_be_paid(
    node: Node, both: dict[Generation, Deployed]
) -> None:
    new, old = at(both[2], "escrow", "payment"), at(both[1], "escrow", "payment")
    dust, none = at(both[2], "escrow", "dust"), at(both[2], "escrow", "none")
    for address, amount in ((new, 10**16), (old, 10**16), (dust, 10**3)):
        node.do(PAYER, address.address, value=amount)
    contracts = [new, old, dust, none]
    node.ask("anvil_mine", "0x2")
    assert open_chain(node).find_unlogged_coin(ENV, contracts) == {new.address: 10**16}
    assert open_chain(node).find_unlogged_coin(ENV, [none, dust]) == {}
    assert open_chain(node).find_unlogged_coin(ENV, [old]) == {}
    assert open_chain(node, 1).find_unlogged_coin(ENV, contracts) == {}


def test_the_first_generation_cannot_pay_native_coin(
    node: Node, both: dict[Generation, Deployed]
) -> None:
    old = at(both[1], "escrow", "payment")
    for to in (old.address, NOBODY):
        with pytest.raises(SignerRefused, match="cannot pay native coin"):
            open_chain(node).prepare(intent(old, NATIVE_ADDRESS, to, 5), 0)


def test_who_brings_only_a_log_of_coin_moves_nothing(
    node: Node, both: dict[Generation, Deployed]
) -> None:
    """A stranger who reports first makes ours fail, and the coin is noticed all the same."""
    chain, deployed = open_chain(node), both[2]
    escrow = at(deployed, "escrow", "payment")
    node.do(PAYER, escrow.address, value=700)
    deployed.do(MERCHANT, calls.report(ENV, "escrow", "payment"))
    signed = chain.prepare(
        intent(escrow, NATIVE_ADDRESS, escrow.address, 700),
        int(node.ask("eth_getTransactionCount", OPERATOR, "latest"), 16),
    )
    chain.broadcast(signed)
    assert not node.receipt(signed.hash).succeeded
