"""The wallet's transactions of a rehearsal, cut off at each point: every call moves funds once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

from payments_core import KeyRing, PaymentsService, open_storage
from payments_core.chains.evm import abi
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.networks import shipped_networks
from payments_core_http.cli.rehearse import saved
from payments_core_http.cli.rehearse.payer import Payer, WalletCall
from payments_core_http.cli.rehearse.saved import Rehearsal, SignedCall
from payments_core_http.cli.rehearse.stage import Stage, StepFailed
from payments_core_http.cli.rehearse.wallet import Wallet
from tests.chains.evm.nodes import ADMIN, STRANGER, Node, anvil_or_skip
from tests.chains.scenes import signer
from tests.cli.local_testnet import CHAIN, KEY, MILLION, USDC

PAY = WalletCall(USDC, abi.transfer(STRANGER, MILLION))


class Cut(Exception):
    """The process ends here."""


@attrs.frozen
class CutPayer(Payer):
    """A wallet whose process ends while it sends: before the node has it, or after."""

    reaches_node: bool = False

    def send(self, signed: SignedCall) -> None:
        """See Payer."""
        if self.reaches_node:
            super().send(signed)
        raise Cut


@pytest.fixture
def node() -> Iterator[Node]:
    with anvil_or_skip(chain_id=CHAIN) as process:
        node = Node(process.url)
        code = load_contract("TestToken").runtime or b""
        node.ask("anvil_setCode", USDC, "0x" + code.hex())
        node.do(ADMIN, USDC, abi.MINT.call(ADMIN, 10 * MILLION))
        node.ask("anvil_mine", "0x10")
        yield node
        node.close()


@pytest.fixture
def stage(node: Node, tmp_path: Path) -> Iterator[Stage]:
    network = shipped_networks()[CHAIN]
    assert network.fees is not None
    with ExitStack() as opened:
        nodes = NodeQuorum([node.url], CHAIN)
        opened.callback(nodes.close)
        chain = EvmChain(nodes, Deployment(ADMIN), signer())
        ring = KeyRing.parse(KeyRing.generate())
        service = PaymentsService(open_storage("memory:"), ring, chains={CHAIN: chain})
        opened.callback(service.close)
        yield Stage(
            service=service,
            environment_id="env_1",
            payer=Payer(Wallet(bytes.fromhex(KEY)), chain, nodes, network.fees),
            network=network,
            asset=network.tokens[0],
            amount_atomic=MILLION,
            deployment=Deployment(ADMIN),
            rehearsal=Rehearsal(CHAIN, "rehearsal", ADMIN, "84532/USDC", "1.00", "rehearsal-1"),
            path=tmp_path / "rehearsal.json",
            check_interrupts=lambda: None,
        )


def cut(stage: Stage, *, reaches_node: bool) -> Stage:
    """Send, until the process ends; the stage of the next one, which has only the file."""
    payer = stage.payer
    cut_payer = CutPayer(payer.wallet, payer.chain, payer.nodes, payer.fees, reaches_node)
    with pytest.raises(Cut):
        attrs.evolve(stage, payer=cut_payer).send("pay", PAY)
    return reopen(stage)


def reopen(stage: Stage) -> Stage:
    """The stage of another process."""
    rehearsal = saved.load(stage.path)
    assert rehearsal is not None
    return attrs.evolve(stage, rehearsal=rehearsal)


def count_paid(node: Node) -> int:
    """How many times the call was carried out."""
    return int.from_bytes(node.call(USDC, abi.BALANCE_OF.call(STRANGER))) // MILLION


@pytest.mark.parametrize("reaches_node", [False, True])
def test_a_call_that_was_cut_off_is_made_once(node: Node, stage: Stage, reaches_node: bool) -> None:
    after = cut(stage, reaches_node=reaches_node)
    signed = after.rehearsal.signed["pay"]
    if reaches_node:
        node.receipt(signed.hash)  # a node answers before its block is made
    assert count_paid(node) == reaches_node
    assert after.send("pay", PAY) == signed.hash
    assert reopen(after).send("pay", PAY) == signed.hash
    assert count_paid(node) == 1


def test_a_call_whose_nonce_was_taken_is_signed_again_only_when_that_is_final(
    node: Node, stage: Stage
) -> None:
    after = cut(stage, reaches_node=False)
    node.do(ADMIN, STRANGER, value=1)  # the person uses the wallet for something else
    assert not after.payer.is_replaced(after.rehearsal.signed["pay"])
    node.ask("anvil_mine", "0x10")
    with pytest.raises(StepFailed, match=r"has taken nonce 1, .* nothing was moved"):
        after.send("pay", PAY)
    again = reopen(after)
    assert again.rehearsal.signed == {}
    again.send("pay", PAY)
    assert count_paid(node) == 1


def test_a_call_that_fails_in_its_block_is_not_repeated(node: Node, stage: Stage) -> None:
    after = cut(stage, reaches_node=False)
    node.ask("evm_setAutomine", False)
    after.payer.send(after.rehearsal.signed["pay"])
    node.ask("anvil_setCode", USDC, "0xfe")  # the token changes before the block
    node.ask("anvil_mine", "0x1")
    for _ in range(2):
        with pytest.raises(StepFailed, match="failed in its block"):
            after.send("pay", PAY)
