"""Reorgs of the simulated chain on every storage: what goes, what comes back, and where."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.chains.port import ChainUnavailable
from tests.service.chain_harness import ANN, BOB, EVE, USDC, ChainHarness


class TestReorgs:
    def test_the_last_blocks_get_other_hashes_and_the_chain_no_lower(
        self, chain_harness: ChainHarness
    ) -> None:
        latest = chain_harness.chain.mine(10).latest.number
        before = {number: chain_harness.chain.block(number) for number in range(latest + 1)}
        heads = chain_harness.chain.reorg(4)
        assert heads.latest.number == latest
        assert heads == chain_harness.chain.heads() == chain_harness.another().heads()
        changed = {
            number for number in before if chain_harness.chain.block(number) != before[number]
        }
        assert changed == set(range(latest - 3, latest + 1))

    def test_every_reorg_makes_blocks_that_were_never_there(
        self, chain_harness: ChainHarness
    ) -> None:
        chain_harness.chain.mine(10)
        seen = Counter({chain_harness.chain.heads().latest.hash: 1})
        for depth in (2, 5, 1, 3, 3):
            seen[chain_harness.chain.reorg(depth).latest.hash] += 1
        assert set(seen.values()) == {1}
        assert len(seen) == 6

    def test_blocks_below_many_forks_keep_their_hashes(
        self, memory_chain_harness: ChainHarness
    ) -> None:
        chain = memory_chain_harness.chain
        chain.mine(10)
        for _ in range(40):
            chain.mine(3)
            chain.reorg(1)
        low = [chain.block(number) for number in range(20, 100)]
        chain.reorg(5)
        assert [chain.block(number) for number in range(20, 100)] == low

    def test_what_was_in_dropped_blocks_is_gone(self, chain_harness: ChainHarness) -> None:
        chain_harness.give(ANN, 5, "stays")
        chain_harness.chain.mine(3)
        hash = chain_harness.give(ANN, 7, "goes")
        moved = chain_harness.chain.transfer(USDC, ANN, BOB, 4, "goes too")
        chain_harness.chain.reorg(2)
        assert chain_harness.chain.transaction(hash) is None
        assert chain_harness.chain.transaction(moved) is None
        assert (chain_harness.newest(ANN), chain_harness.newest(BOB)) == (5, 0)
        assert len(chain_harness.chain.scan([USDC], None, 0, 1_000)) == 1

    def test_even_what_was_final_can_go(self, chain_harness: ChainHarness) -> None:
        chain_harness.chain.mint(USDC, ANN, 5, "funds")
        assert chain_harness.chain.balances(USDC, [ANN]).amounts[ANN] == 5
        chain_harness.chain.reorg(4)
        assert chain_harness.chain.balances(USDC, [ANN]).amounts[ANN] == 0

    def test_a_dropped_transfer_may_be_made_again(self, chain_harness: ChainHarness) -> None:
        hash = chain_harness.give(ANN, 5, "gift")
        chain_harness.chain.reorg(1)
        assert chain_harness.give(ANN, 5, "gift") == hash
        assert chain_harness.newest(ANN) == 5

    def test_what_comes_back_is_in_another_block_at_another_place(
        self, chain_harness: ChainHarness
    ) -> None:
        hashes = [
            chain_harness.give(ANN, 5, "first"),
            chain_harness.chain.transfer(USDC, None, ANN, 1, "failed", reverts=True),
            chain_harness.chain.transfer(USDC, ANN, BOB, 5, "second"),
        ]
        before = [chain_harness.chain.transaction(hash) for hash in hashes]
        heads = chain_harness.chain.reorg(3, reinclude=True)
        for _ in range(2):
            after = [chain_harness.chain.transaction(hash) for hash in hashes]
            for old, new in zip(before, after, strict=True):
                assert old is not None
                assert new is not None
                assert new.block == heads.latest
                assert new.block != old.block
                assert new.succeeded == old.succeeded
                for was, now in zip(old.logs, new.logs, strict=True):
                    assert now.position == was.position
                    assert now.log_index != was.log_index
                    assert now.amount_atomic == was.amount_atomic
            places = [log.log_index for view in after if view for log in view.logs]
            assert places == sorted(set(places))
            found = chain_harness.chain.scan([USDC], None, 0, 1_000)
            assert [item.transaction_hash for item in found] == [hashes[0], hashes[2]]
            before, heads = after, chain_harness.chain.reorg(1, reinclude=True)
        assert chain_harness.chain.balances(USDC, [BOB]).amounts[BOB] == 0  # not final yet
        assert (chain_harness.newest(ANN), chain_harness.newest(BOB)) == (0, 5)

    def test_a_transaction_of_ours_that_was_dropped_is_sent_again_in_its_slot(
        self, chain_harness: ChainHarness
    ) -> None:
        chain_harness.chain.mint(USDC, chain_harness.vault, 100, "funds")
        first, second = chain_harness.signed(0), chain_harness.signed(1)
        chain_harness.chain.broadcast(first)
        chain_harness.chain.broadcast(second)
        chain_harness.chain.reorg(2)
        assert chain_harness.chain.transaction(first.hash) is None
        with pytest.raises(ChainUnavailable):
            chain_harness.chain.broadcast(second)
        chain_harness.chain.broadcast(first)
        chain_harness.chain.broadcast(second)
        chain_harness.chain.broadcast(first)  # it is there; that is harmless
        assert (chain_harness.newest(chain_harness.vault), chain_harness.newest(BOB)) == (80, 20)

    def test_only_the_slots_that_were_dropped_are_free_again(
        self, chain_harness: ChainHarness
    ) -> None:
        chain_harness.chain.mint(USDC, chain_harness.vault, 100, "funds")
        for slot in range(3):
            chain_harness.chain.broadcast(chain_harness.signed(slot))
        chain_harness.chain.reorg(1)
        with pytest.raises(ChainUnavailable):
            chain_harness.chain.broadcast(chain_harness.signed(3))
        chain_harness.chain.broadcast(chain_harness.signed(2))
        chain_harness.chain.reorg(1, reinclude=True)
        chain_harness.chain.broadcast(chain_harness.signed(3))
        assert chain_harness.newest(BOB) == 40

    def test_a_name_takes_place_once(self, chain_harness: ChainHarness) -> None:
        chain_harness.give(ANN, 5, "first")
        chain_harness.chain.mine(1)
        chain_harness.chain.reorg(1, name="r")
        chain_harness.chain.reorg(1, name="r")
        chain_harness.chain.reorg(1, name="s")
        assert chain_harness.newest(ANN) == 5

    @pytest.mark.parametrize("depth", [0, -1, 51])
    def test_no_reorg_is_deeper_than_the_books_reach(
        self, memory_chain_harness: ChainHarness, depth: int
    ) -> None:
        with pytest.raises(ValueError, match="1 to 50"):
            memory_chain_harness.chain.reorg(depth)

    def test_the_first_block_stays(self, chain_harness: ChainHarness) -> None:
        genesis = chain_harness.chain.block(0)
        heads = chain_harness.chain.reorg(50)
        assert heads.latest == chain_harness.chain.block(0) == genesis
        chain_harness.give(ANN, 5, "gift")
        assert chain_harness.chain.reorg(50).latest.number == 1
        assert chain_harness.chain.block(0) == genesis
        assert chain_harness.newest(ANN) == 0

    @pytest.mark.parametrize("seed", range(12))
    def test_balances_are_those_of_the_transfers_that_are_in_the_chain(
        self, memory_chain_harness: ChainHarness, seed: int
    ) -> None:
        chance, chain_harness = random.Random(seed), memory_chain_harness
        holders = [ANN, BOB, EVE]
        for step in range(150):
            what = chance.random()
            if what < 0.55:
                source = chance.choice([None, *holders])
                amount = chance.randrange(1, 9)
                name = f"t-{step}"
                chain_harness.chain.transfer(USDC, source, chance.choice(holders), amount, name)
            elif what < 0.7:
                chain_harness.clock.advance(chance.randrange(1, 3))
            elif what < 0.85:
                depth = chance.choice([1, 2, 3, 4, 50])
                chain_harness.chain.reorg(depth, reinclude=chance.random() < 0.5)
            heads = chain_harness.chain.heads()
            logs = chain_harness.chain.scan([USDC], None, 0, heads.final.number)
            expected: Counter[str] = Counter()
            for item in logs:
                expected[item.recipient] += item.amount_atomic
                expected[item.sender] -= item.amount_atomic
            at = chain_harness.chain.balances(USDC, holders)
            assert at.height == heads.final.number
            assert at.amounts == {holder: expected[holder] for holder in holders}
            assert min(at.amounts.values()) >= 0

    def test_reorgs_beside_many_senders_lose_and_double_nothing(self, opener: object) -> None:
        chain_harness = ChainHarness(opener())  # type: ignore[operator]
        chain_harness.chain.mint(USDC, chain_harness.vault, 1_000, "funds")
        chain_harness.chain.mine(20)

        def send(number: int) -> None:
            chain_harness.another().transfer(USDC, None, ANN, 1, f"t-{number}")

        def reorg(number: int) -> None:
            chain_harness.another().reorg(2, reinclude=number % 2 == 0)

        with ThreadPoolExecutor(4) as pool:
            done = [pool.submit(send, number) for number in range(24)]
            done += [pool.submit(reorg, number) for number in range(6)]
            for one in done:
                one.result(60)
        left = chain_harness.chain.scan([USDC], [ANN], 0, 1_000)
        assert (
            chain_harness.newest(ANN) == len(left) == len({item.transaction_hash for item in left})
        )
