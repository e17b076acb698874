"""Scans: every transfer of a range of blocks, once, and in the chain's order."""

from __future__ import annotations

from payments_core.chains.port import Chain, ScannedTransfer
from payments_core.conformance.chain.harness import Harness


class ScanChecks(Harness):
    """A scan that misses one transfer loses somebody's money."""

    def test_a_scan_finds_each_transfer_once_and_in_order(self) -> None:
        chain, recipient = self.open(), self.new_address()
        first = chain.heads().latest.number + 1
        hashes = [
            self.send_external_transfer(self.token, recipient, amount) for amount in (1, 2, 3, 4)
        ]
        found = self._scan_for(chain, first, recipient)
        assert [item.transaction_hash for item in found] == hashes
        assert [item.amount_atomic for item in found] == [1, 2, 3, 4]
        for item in found:
            view, block = self.require_in_block(chain, item.transaction_hash)
            assert item.block.is_same(block), "a scan and the transaction must name the same block"
            (log,) = [log for log in view.logs if log.recipient == recipient]
            assert (item.token_address, item.sender, item.log_index) == (
                log.token_address,
                log.sender,
                log.log_index,
            )

    def test_both_ends_of_the_range_belong_to_it(self) -> None:
        chain, recipient = self.open(), self.new_address()
        blocks = []
        for amount in (1, 2, 3):
            _, block = self.require_in_block(
                chain, self.send_external_transfer(self.token, recipient, amount)
            )
            blocks.append(block.number)
            self.mine_blocks(1)
        for first, last, expected in (
            (blocks[0], blocks[2], [1, 2, 3]),
            (blocks[1], blocks[1], [2]),
            (blocks[0] + 1, blocks[2] - 1, [2]),
            (blocks[0], blocks[1] - 1, [1]),
        ):
            found = chain.scan([self.token], [recipient], first, last)
            assert [item.amount_atomic for item in found] == expected, (first, last)

    def test_a_scan_filters_by_recipient_and_token(self) -> None:
        chain, one, two = self.open(), self.new_address(), self.new_address()
        first = chain.heads().latest.number + 1
        self.send_external_transfer(self.token, one, 1)
        self.send_external_transfer(self.token, two, 2)
        if self.other_token is not None:
            self.send_external_transfer(self.other_token, one, 3)
        last = chain.heads().latest.number

        def amounts(tokens: list[str], recipients: list[str] | None) -> list[int]:
            found = chain.scan(tokens, recipients, first, last)
            return [item.amount_atomic for item in found if item.recipient in (one, two)]

        assert amounts([self.token], [one]) == [1]
        assert amounts([self.token], [one, two]) == [1, 2]
        assert amounts([self.token], None) == [1, 2]
        assert amounts([self.token], []) == []
        assert amounts([], None) == []
        if self.other_token is not None:
            assert amounts([self.token, self.other_token], None) == [1, 2, 3]
            assert amounts([self.other_token], [one, two]) == [3]

    def test_a_scan_omits_failures_and_keeps_zero_amounts(self) -> None:
        chain, recipient = self.open(), self.new_address()
        first = chain.heads().latest.number + 1
        self.send_failed_transaction(self.token, recipient)
        hash = self.send_external_transfer(self.token, recipient, 0)
        found = self._scan_for(chain, first, recipient)
        assert [item.transaction_hash for item in found] == [hash], (
            "a transfer of zero must be returned"
        )

    def _scan_for(self, chain: Chain, first: int, recipient: str) -> list[ScannedTransfer]:
        found = chain.scan([self.token], None, first, chain.heads().latest.number)
        return [item for item in found if item.recipient == recipient]
