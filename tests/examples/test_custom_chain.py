"""The chain adapter of the examples, held to what our own adapters are held to."""

from __future__ import annotations

import pytest

from examples import custom_chain
from payments_core.addresses import encode_checksum_address
from payments_core.chains.port import Chain
from payments_core.conformance.chain import ChainConformance
from payments_core.entropy import system_entropy
from tests.shipped import asset_of

ETHEREUM = 1


class TestLedgerChain(ChainConformance):
    token = asset_of(ETHEREUM, "USDC").address
    other_token = asset_of(ETHEREUM, "USDT").address
    finality_blocks = custom_chain.FINALITY_BLOCKS
    can_reorg = True
    can_fail = True

    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self.ledger = custom_chain.Ledger(b"the operator's key")

    def open(self) -> Chain:
        return custom_chain.LedgerChain(ETHEREUM, self.ledger)

    def new_address(self) -> str:
        return encode_checksum_address(system_entropy(20))

    def send_external_transfer(self, token: str, recipient: str, amount_atomic: int) -> str:
        return custom_chain.transfer(self.ledger, token, recipient, amount_atomic)

    def send_failed_transaction(self, token: str, recipient: str) -> str:
        return custom_chain.transfer(self.ledger, token, recipient, 1, fails=True)

    def mine_blocks(self, count: int) -> None:
        self.ledger.mine(count)

    def reorg(self, depth: int) -> None:
        self.ledger.reorg(depth)

    def fail(self) -> None:
        self.ledger.down = True

    def restore(self) -> None:
        self.ledger.down = False


def test_the_program_shows_a_payment_on_the_chain(capsys: pytest.CaptureFixture[str]) -> None:
    custom_chain.main()
    assert capsys.readouterr().out == (
        "awaiting_payment\nexecuting\nexecuting\nsucceeded\nsucceeded\nthe wallet has 25000000\n"
    )
