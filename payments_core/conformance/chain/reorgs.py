"""Reorganisations: the contents of removed blocks."""

from __future__ import annotations

from payments_core.conformance.chain.harness import AMOUNT, Harness


class ReorgChecks(Harness):
    """A chain must not report what it has undone."""

    def test_a_reorged_transaction_is_in_no_block(self) -> None:
        self.require_capability("can_reorg")
        chain, recipient = self.open(), self.new_address()
        hash = self.send_external_transfer(self.token, recipient, AMOUNT)
        _, before = self.require_in_block(chain, hash)
        height = chain.heads().latest.number
        self.reorg(height - before.number + 1)
        view = chain.transaction(hash)
        assert view is None or view.block is None, (
            "a transaction that a reorg removed must have no block"
        )
        assert chain.heads().latest.number >= height, "the newest height must not fall"
        after = chain.block(before.number)
        assert after is not None
        assert after.hash != before.hash, "a new block must not have the hash of a removed block"
        found = chain.scan([self.token], [recipient], before.number, chain.heads().latest.number)
        assert found == (), "a scan must not return removed transfers"
        self.make_final()
        assert chain.balances(self.token, [recipient]).amounts == {recipient: 0}

    def test_what_was_before_the_reorg_stays(self) -> None:
        self.require_capability("can_reorg")
        chain, recipient = self.open(), self.new_address()
        first = self.send_external_transfer(self.token, recipient, 1)
        _, block = self.require_in_block(chain, first)
        self.send_external_transfer(self.token, recipient, 2)
        self.reorg(chain.heads().latest.number - block.number)
        assert self.require_in_block(chain, first)[1] == block
        assert self.read_final_balance(chain, recipient) == 1

    def test_a_reorged_transaction_can_be_broadcast_again(self) -> None:
        self.require_capability("can_reorg")
        self.require_capability("can_send")
        chain, environment = self.open(), self.new_environment_id()
        self.send_external_transfer(
            self.token, self.vault_contract(chain, environment).address, 2 * AMOUNT
        )
        self.make_final()
        intent = self.funding_intent(chain, environment, AMOUNT)
        signed = chain.prepare(intent, 0)
        self.send_and_mine(chain, signed)
        _, block = self.require_in_block(chain, signed.hash)
        self.reorg(chain.heads().latest.number - block.number + 1)
        self.send_and_mine(chain, signed)
        self.require_in_block(chain, signed.hash)
        assert self.read_final_balance(chain, intent.recipient) == AMOUNT
