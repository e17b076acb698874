"""Reorganisations: what was in blocks that are no more."""

from __future__ import annotations

from payments_core.conformance.chain.setting import AMOUNT, Setting


class ReorgChecks(Setting):
    """What a chain has undone, it must not tell of."""

    def test_what_was_undone_is_in_no_block(self) -> None:
        self.require("can_reorg")
        chain, recipient = self.open(), self.address()
        hash = self.give(self.token, recipient, AMOUNT)
        _, before = self.in_block(chain, hash)
        height = chain.heads().latest.number
        self.reorg(height - before.number + 1)
        view = chain.transaction(hash)
        assert view is None or view.block is None, "an undone transaction is in a block"
        assert chain.heads().latest.number >= height, "the chain got lower"
        after = chain.block(before.number)
        assert after is not None
        assert after.hash != before.hash, "another block has the hash of the one undone"
        found = chain.scan([self.token], [recipient], before.number, chain.heads().latest.number)
        assert found == (), "a scan finds what was undone"
        self.make_final()
        assert chain.balances(self.token, [recipient]).amounts == {recipient: 0}

    def test_what_was_before_stays(self) -> None:
        self.require("can_reorg")
        chain, recipient = self.open(), self.address()
        first = self.give(self.token, recipient, 1)
        _, block = self.in_block(chain, first)
        self.give(self.token, recipient, 2)
        self.reorg(chain.heads().latest.number - block.number)
        assert self.in_block(chain, first)[1] == block
        assert self.newest(chain, recipient) == 1

    def test_undone_bytes_are_taken_again(self) -> None:
        self.require("can_reorg")
        self.require("can_send")
        chain, environment = self.open(), self.environment()
        self.give(self.token, self.vault(chain, environment).address, 2 * AMOUNT)
        self.make_final()
        intent = self.funding(chain, environment, AMOUNT)
        signed = chain.prepare(intent, 0)
        self.send(chain, signed)
        _, block = self.in_block(chain, signed.hash)
        self.reorg(chain.heads().latest.number - block.number + 1)
        self.send(chain, signed)
        self.in_block(chain, signed.hash)
        assert self.newest(chain, intent.recipient) == AMOUNT
