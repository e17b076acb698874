"""The simulated chain on every storage: blocks, scans, strangers' transfers, the faucet."""

from __future__ import annotations

import pytest

from payments_core.chains.port import AddressSpec
from payments_core.chains.simulated.addresses import is_contract
from payments_core.clock import HOUR
from payments_core.errors import AmountOutOfRange
from payments_core.money import MAX_ATOMIC
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.chain_harness import ANN, BOB, EVE, OTHER_TOKEN, USDC, ChainHarness


class TestBlocks:
    def test_a_block_is_asked_for_by_its_height_and_there_is_none_above_the_newest(
        self, chain_harness: ChainHarness
    ) -> None:
        latest = chain_harness.chain.mine(5).latest
        assert (
            chain_harness.chain.block(latest.number) == latest == chain_harness.chain.heads().latest
        )
        assert chain_harness.chain.block(latest.number + 1) is None
        assert chain_harness.chain.block(-1) is None
        assert chain_harness.another().block(2) == chain_harness.chain.block(2)
        assert chain_harness.another(1).block(0) != chain_harness.chain.block(0)

    def test_blocks_come_with_the_seconds_of_the_clock(self, chain_harness: ChainHarness) -> None:
        before = chain_harness.chain.mine(1).latest.number
        chain_harness.clock.advance(7)
        assert chain_harness.chain.heads().latest.number == before + 7
        chain_harness.clock.advance(-100)  # a clock that steps back takes away what nobody used
        assert chain_harness.chain.mine(1).latest.number > before

    def test_a_fresh_chain_has_a_block_for_every_second_since_it_was_looked_at(
        self, chain_harness: ChainHarness
    ) -> None:
        first = chain_harness.chain.heads()
        chain_harness.clock.advance(7)
        assert chain_harness.chain.heads().latest.number == first.latest.number + 7
        assert chain_harness.another().peek_heads().latest.number == first.latest.number + 7
        assert chain_harness.chain.mine(1).latest.number == first.latest.number + 8

    def test_a_chain_that_nobody_has_looked_at_has_a_block_for_each_second_of_an_advance(
        self, chain_harness: ChainHarness
    ) -> None:
        for seconds in (7, 5):
            before = chain_harness.clock.now()
            chain_harness.clock.advance(seconds)
            chain_harness.chain.advance_time(before, chain_harness.clock.now())
        assert chain_harness.chain.heads().latest.number == 12

    def test_no_transaction_gets_into_a_block_that_was_seen_while_it_was_committed(
        self, chain_harness: ChainHarness
    ) -> None:
        chain_harness.chain.mine(1)
        for _ in range(12):
            chain_harness.clock.advance(0.9)
            seen = chain_harness.chain.heads().latest  # by a reader, moments later
            chain_harness.clock.advance(-0.9)
            view = chain_harness.chain.transaction(
                chain_harness.give(ANN, 1, f"after {seen.number}")
            )
            assert view is not None
            assert view.block is not None
            assert view.block.number > seen.number
            assert view.block == chain_harness.chain.heads().latest
            chain_harness.clock.advance(0.1)

    def test_the_chain_may_rest_for_an_hour(self, chain_harness: ChainHarness) -> None:
        assert chain_harness.chain.max_scan_interval_ms == 6 * HOUR

    def test_the_addresses_of_contracts_can_be_distinguished_from_all_others(self) -> None:
        derive = ChainHarness(MemoryStorage()).chain.derive
        kinds = ("vault", "escrow", "deposit", "operator")
        ours = {derive(AddressSpec(env, kind, "x")) for env in "ab" for kind in kinds}
        assert len(ours) == 8
        assert all(is_contract(address) for address in ours)
        assert not any(is_contract(address) for address in (ANN, BOB, EVE, USDC))


class TestScan:
    def test_a_scan_gives_the_transfers_of_its_blocks_in_the_order_of_the_chain(
        self, chain_harness: ChainHarness
    ) -> None:
        hashes = [chain_harness.give(ANN, amount, f"t-{amount}") for amount in (1, 2, 3, 4)]
        first, last = (chain_harness.chain.transaction(hashes[n]) for n in (1, 2))
        assert first is not None
        assert first.block is not None
        assert last is not None
        assert last.block is not None
        found = chain_harness.chain.scan([USDC], None, first.block.number, last.block.number)
        assert [item.transaction_hash for item in found] == hashes[1:3]
        logs = [*first.logs, *last.logs]
        assert [(item.log_index, item.amount_atomic) for item in found] == [
            (log.log_index, log.amount_atomic) for log in logs
        ]
        assert {(item.token_address, item.sender, item.recipient) for item in found} == {
            (log.token_address, log.sender, log.recipient) for log in logs
        }
        assert [item.block for item in found] == [first.block, last.block]

    def test_a_scan_leaves_out_other_tokens_other_recipients_and_what_failed(
        self, chain_harness: ChainHarness
    ) -> None:
        wanted = chain_harness.give(ANN, 1, "wanted")
        chain_harness.give(BOB, 1, "to another")
        chain_harness.chain.transfer(OTHER_TOKEN, None, ANN, 1, "another token")
        chain_harness.chain.transfer(USDC, None, ANN, 1, "failed", reverts=True)
        chain_harness.chain.transfer(USDC, EVE, ANN, 1, "without the funds")
        chain_harness.another(10).transfer(USDC, None, ANN, 1, "on another chain")
        high = chain_harness.chain.heads().latest.number
        found = chain_harness.chain.scan([USDC], [ANN, EVE], 0, high)
        assert [item.transaction_hash for item in found] == [wanted]
        assert len(chain_harness.chain.scan([USDC, OTHER_TOKEN], None, 0, high)) == 3
        assert not chain_harness.chain.scan([USDC], [], 0, high)
        assert not chain_harness.chain.scan([USDC], None, high + 1, high + 9)

    def test_a_long_scan_finds_everything(self, memory_chain_harness: ChainHarness) -> None:
        for number in range(2_050):
            memory_chain_harness.give(ANN, 1, f"t-{number}")
        found = memory_chain_harness.chain.scan([USDC], [ANN], 1, 5_000)
        assert len({item.transaction_hash for item in found}) == 2_050
        numbers = [item.block.number for item in found]
        assert numbers == sorted(numbers)


class TestStrangers:
    def test_new_tokens_are_there_at_once_and_final_three_blocks_later(
        self, chain_harness: ChainHarness
    ) -> None:
        hash = chain_harness.give(ANN, 5, "gift")
        view = chain_harness.chain.transaction(hash)
        assert view is not None
        assert view.succeeded
        assert view.block == chain_harness.chain.heads().latest
        assert chain_harness.chain.balances(USDC, [ANN]).amounts[ANN] == 0
        chain_harness.chain.mine(3)
        assert chain_harness.chain.balances(USDC, [ANN]).amounts[ANN] == 5

    def test_a_name_makes_one_transfer(self, chain_harness: ChainHarness) -> None:
        assert chain_harness.give(ANN, 5, "gift") == chain_harness.give(ANN, 5, "gift")
        assert chain_harness.newest(ANN) == 5

    def test_a_wallet_gives_what_it_has_and_no_more(self, chain_harness: ChainHarness) -> None:
        chain_harness.give(ANN, 5, "gift")
        gone = chain_harness.chain.transaction(
            chain_harness.chain.transfer(USDC, ANN, BOB, 3, "first")
        )
        short = chain_harness.chain.transaction(
            chain_harness.chain.transfer(USDC, ANN, BOB, 3, "second")
        )
        assert gone is not None
        assert gone.succeeded
        assert gone.logs[0].sender == ANN
        assert short is not None
        assert (short.succeeded, short.logs) == (False, ())
        assert (chain_harness.newest(ANN), chain_harness.newest(BOB)) == (2, 3)

    def test_a_transfer_can_be_made_to_revert(self, chain_harness: ChainHarness) -> None:
        hash = chain_harness.chain.transfer(USDC, None, ANN, 5, "gift", reverts=True)
        view = chain_harness.chain.transaction(hash)
        assert view is not None
        assert view.block is not None
        assert (view.succeeded, view.logs) == (False, ())
        assert chain_harness.newest(ANN) == 0

    def test_nothing_at_all_can_be_transferred_too(self, chain_harness: ChainHarness) -> None:
        view = chain_harness.chain.transaction(
            chain_harness.chain.transfer(USDC, EVE, ANN, 0, "nothing")
        )
        assert view is not None
        assert view.logs[0].amount_atomic == 0
        assert chain_harness.newest(ANN) == 0

    def test_a_transfer_to_oneself_changes_nothing(self, chain_harness: ChainHarness) -> None:
        chain_harness.give(ANN, 5, "gift")
        view = chain_harness.chain.transaction(
            chain_harness.chain.transfer(USDC, ANN, ANN, 4, "round")
        )
        assert view is not None
        assert view.succeeded
        assert chain_harness.newest(ANN) == 5


def test_the_faucet_gives_what_a_token_can_carry_and_a_reorg_takes_it_back(
    chain_harness: ChainHarness,
) -> None:
    chain_harness.give(ANN, MAX_ATOMIC - 1, "nearly all")
    chain_harness.chain.transfer(USDC, ANN, BOB, MAX_ATOMIC - 1, "moved on")
    for holder in (ANN, BOB):  # it is the sum that counts, whatever the holder
        with pytest.raises(AmountOutOfRange):
            chain_harness.give(holder, 2, f"too much for {holder}")
    chain_harness.give(ANN, 1, "all")
    assert (chain_harness.newest(ANN), chain_harness.newest(BOB)) == (1, MAX_ATOMIC - 1)
    chain_harness.another(1).transfer(OTHER_TOKEN, None, ANN, MAX_ATOMIC, "of another token")
    chain_harness.chain.reorg(50, reinclude=True)
    with pytest.raises(AmountOutOfRange):
        chain_harness.give(ANN, 1, "one more")
    chain_harness.chain.reorg(50)
    chain_harness.give(EVE, MAX_ATOMIC, "all anew")
    assert chain_harness.newest(EVE) == MAX_ATOMIC
