"""Blocks, transactions and balances as the chain reports them."""

from __future__ import annotations

import time

from payments_core.acceptance import Acceptance
from payments_core.chains.token_balances import read_token_balances
from payments_core.conformance.chain.harness import (
    AMOUNT,
    Harness,
    require_available,
    require_unavailable,
)

SHARED_FOR_S = 5.0
"""The maximum age of the final block of `token_balances`."""

NO_HASH = "0x" + "5a" * 32
MILLISECONDS = 10**11
"""More than the seconds since 1970, and less than the milliseconds, for some thousand years."""


class ReadingChecks(Harness):
    """All reads are of one chain, and contain only what that chain knows."""

    def test_the_final_block_is_not_above_the_newest(self) -> None:
        chain = self.open()
        self.mine_blocks(self.finality_blocks + 2)
        heads = chain.heads()
        assert heads.final.number < heads.latest.number, "a new block must not be final yet"
        assert chain.block(heads.latest.number) is not None
        assert chain.block(heads.final.number) == heads.final, (
            "the final block must be the block of that height"
        )

    def test_the_final_block_is_that_of_the_policys_last_row(self) -> None:
        self.require_capability("can_choose_policy")
        small = Acceptance(depth=1, up_to="10")
        self.mine_blocks(self.finality_blocks + 6)
        for depth in (self.finality_blocks + 1, self.finality_blocks + 4):
            heads = self.open_with((small, Acceptance(depth=depth))).heads()
            assert heads.latest.number - heads.final.number == depth, (
                "the final block must have as many blocks on top as the last row of its network's"
                " `acceptance` asks for, which is `network.finality`"
            )

    def test_the_safe_block_is_read_for_a_row_that_asks_for_it(self) -> None:
        self.require_capability("can_choose_policy")
        self.mine_blocks(self.finality_blocks + 2)
        policy = (Acceptance("safe", up_to="10"), Acceptance("finalized"))
        try:
            heads = self.open_with(policy).heads()
        except ValueError:
            return  # its nodes know no such block, and the adapter says so when it is opened
        assert heads.safe_height is not None, (
            "heads must have `safe_height` if a row has the tag `safe`, or `open_chain` must raise"
            " ValueError: otherwise small Payments wait for finality, and nobody knows why"
        )
        assert heads.final.number <= heads.safe_height <= heads.latest.number

    def test_blocks_come_and_stay(self) -> None:
        chain = self.open()
        first = chain.heads().latest
        self.mine_blocks(2)
        after = chain.heads()
        assert after.latest.number >= first.number + 2, "the chain must grow"
        assert chain.block(first.number) == first, "a block must not change without a reorg"
        assert chain.block(after.latest.number + 1_000) is None, (
            "a height above the newest block must return None"
        )

    def test_every_block_has_a_hash_of_its_own(self) -> None:
        chain = self.open()
        self.mine_blocks(5)
        latest = chain.heads().latest.number
        blocks = [chain.block(number) for number in range(latest - 4, latest + 1)]
        assert len({block.hash for block in blocks if block}) == 5, (
            "two blocks must not have the same hash"
        )
        assert [block.number for block in blocks if block] == list(range(latest - 4, latest + 1))

    def test_every_block_has_its_time(self) -> None:
        chain = self.open()
        self.mine_blocks(self.finality_blocks + 2)
        heads = chain.heads()
        _, block = self.require_in_block(
            chain, self.send_external_transfer(self.token, self.new_address(), AMOUNT)
        )
        known = (heads.final, heads.latest, block, chain.block(heads.latest.number))
        times = [one.time for one in known if one is not None and one.time is not None]
        assert len(times) == 4, "heads, blocks and transactions must have the time of their block"
        assert min(times) > MILLISECONDS, "a time must be in milliseconds since 1970"
        assert times[0] <= times[1] <= times[2], "a later block must not have an earlier time"

    def test_what_nobody_sent_is_not_known(self) -> None:
        chain = self.open()
        assert chain.transaction(NO_HASH) is None
        assert chain.transactions([NO_HASH]) == {NO_HASH: None}

    def test_a_transfer_is_seen_as_it_was_made(self) -> None:
        chain, recipient = self.open(), self.new_address()
        view, block = self.require_in_block(
            chain, self.send_external_transfer(self.token, recipient, AMOUNT)
        )
        assert view.succeeded
        (log,) = [log for log in view.logs if log.recipient == recipient]
        assert (log.token_address, log.amount_atomic) == (self.token, AMOUNT)
        assert log.position >= 0
        assert chain.block(block.number) == block, (
            "the block of a transaction must be on the same chain"
        )

    def test_many_transactions_are_read_like_one_by_one(self) -> None:
        chain, recipient = self.open(), self.new_address()
        hashes = [
            self.send_external_transfer(self.token, recipient, amount) for amount in (1, 2, 3)
        ]
        asked = [*hashes, NO_HASH, hashes[0]]
        assert chain.transactions(asked) == {hash: chain.transaction(hash) for hash in asked}
        assert chain.transactions([]) == {}

    def test_a_failed_transaction_has_no_transfers(self) -> None:
        chain, recipient = self.open(), self.new_address()
        view, _ = self.require_in_block(chain, self.send_failed_transaction(self.token, recipient))
        assert not view.succeeded, "a failed transaction must not be reported as succeeded"
        assert view.logs == ()

    def test_a_balance_is_of_the_final_block(self) -> None:
        chain, holder, nobody = self.open(), self.new_address(), self.new_address()
        self.send_external_transfer(self.token, holder, AMOUNT)
        early = chain.balances(self.token, [holder, nobody])
        _, final = self._latest_and_final()
        assert early.height <= final, "a balance must be read at a final height"
        assert early.amounts == {holder: 0, nobody: 0}, (
            "a balance must not include transfers that are not final"
        )
        self.make_final()
        later = chain.balances(self.token, [holder, nobody])
        assert later.amounts == {holder: AMOUNT, nobody: 0}
        assert later.height > early.height

    def test_a_balance_is_of_one_token(self) -> None:
        self.require_capability("other_token")
        assert self.other_token is not None
        chain, holder = self.open(), self.new_address()
        self.send_external_transfer(self.other_token, holder, AMOUNT)
        self.make_final()
        assert chain.balances(self.token, [holder]).amounts == {holder: 0}
        assert chain.balances(self.other_token, [holder]).amounts == {holder: AMOUNT}

    def test_balances_of_several_tokens_are_those_of_each(self) -> None:
        self.require_capability("other_token")
        assert self.other_token is not None
        chain, holder, nobody = self.open(), self.new_address(), self.new_address()
        tokens, holders = [self.token, self.other_token], [holder, nobody]
        self.send_external_transfer(self.token, holder, AMOUNT)
        self.send_external_transfer(self.other_token, holder, AMOUNT + 1)
        early = read_token_balances(chain, tokens, holders)
        assert all(found.amounts == {holder: 0, nobody: 0} for found in early.values()), (
            "a balance must not include transfers that are not final"
        )
        self.make_final()
        until = time.monotonic() + SHARED_FOR_S
        found = read_token_balances(chain, tokens, holders)
        while found == early and time.monotonic() < until:
            time.sleep(0.05)
            found = read_token_balances(chain, tokens, holders)
        assert set(found) == set(tokens), "every token must be answered"
        assert {token: one.amounts for token, one in found.items()} == {
            self.token: {holder: AMOUNT, nobody: 0},
            self.other_token: {holder: AMOUNT + 1, nobody: 0},
        }, "the balances of each token must be its own"
        _, final = self._latest_and_final()
        assert all(one.height <= final for one in found.values())

    def test_an_unreachable_chain_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        chain, holder = self.open(), self.new_address()
        hash = self.send_external_transfer(self.token, holder, AMOUNT)
        latest = chain.heads().latest.number
        self.fail()
        try:
            require_unavailable(chain.heads)
            require_unavailable(lambda: chain.block(latest))
            require_unavailable(lambda: chain.transaction(hash))
            require_unavailable(lambda: chain.transactions([hash]))
            require_unavailable(lambda: chain.balances(self.token, [holder]))
            require_unavailable(lambda: read_token_balances(chain, [self.token], [holder]))
            require_unavailable(lambda: chain.scan([self.token], None, 0, latest))
        finally:
            self.restore()
        require_available(chain.heads, self.recovers_within_s)

    def _latest_and_final(self) -> tuple[int, int]:
        heads = self.open().heads()
        return heads.latest.number, heads.final.number
