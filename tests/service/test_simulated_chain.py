"""The simulated chain on every storage: blocks, reorgs, strangers' transfers, ordered failures."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.assets import asset_of
from payments_core.chains.port import (
    AddressSpec,
    ChainUnavailable,
    Contract,
    Signed,
    TransferIntent,
)
from payments_core.chains.simulated import SimulatedChain
from payments_core.chains.simulated_addresses import is_contract
from payments_core.clock import HOUR, FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.entropy import system_entropy
from payments_core.errors import AmountOutOfRange
from payments_core.identifiers import Identifiers
from payments_core.ledger import Ledger
from payments_core.money import MAX_ATOMIC
from payments_core.sandbox.failures import Failures
from payments_core.storage.memory import MemoryStorage
from payments_core.storage.port import Storage

BASE = 8453
USDC = asset_of(BASE, "USDC").address
OTHER_TOKEN = asset_of(1, "USDC").address
ANN = "0x00000000000000000000000000000000000A11cE"
BOB = "0x0000000000000000000000000000000000000B0b"
EVE = "0x000000000000000000000000000000000000E0E0"
RING = KeyRing.parse(KeyRing.generate())


class Stage:
    """One chain on a storage, with a clock that stands."""

    def __init__(self, storage: Storage) -> None:
        self.clock = FixedClock()
        self.ledger = Ledger(storage, self.clock, Identifiers(self.clock, system_entropy), RING)
        self.storage = storage
        self.chain = self.another()
        self.failures = Failures(storage, self.ledger)
        self.vault = self.chain.derive(AddressSpec("env_a", "vault", "acct_a"))

    def another(self, chain_id: int = BASE) -> SimulatedChain:
        """What another process on the same storage sees."""
        return SimulatedChain(chain_id, self.storage, self.ledger, self.clock)

    def signed(self, slot: int, recipient: str = BOB, amount: int = 10) -> Signed:
        source = Contract("vault", "acct_a", self.vault)
        intent = TransferIntent(f"out-{slot}", "env_a", USDC, source, recipient, amount)
        return self.chain.prepare(intent, slot)

    def newest(self, holder: str) -> int:
        """What somebody holds when everything so far is final."""
        self.chain.mine(3)
        return self.chain.balances(USDC, [holder]).amounts[holder]

    def give(self, holder: str, amount: int, name: str) -> str:
        return self.chain.transfer(USDC, None, holder, amount, name)


@pytest.fixture
def stage(storage: Storage) -> Stage:
    return Stage(storage)


@pytest.fixture
def memory_stage() -> Stage:
    return Stage(MemoryStorage())


class TestBlocks:
    def test_a_block_is_asked_for_by_its_height_and_there_is_none_above_the_newest(
        self, stage: Stage
    ) -> None:
        latest = stage.chain.mine(5).latest
        assert stage.chain.block(latest.number) == latest == stage.chain.heads().latest
        assert stage.chain.block(latest.number + 1) is None
        assert stage.chain.block(-1) is None
        assert stage.another().block(2) == stage.chain.block(2)
        assert stage.another(1).block(0) != stage.chain.block(0)

    def test_blocks_come_with_the_seconds_of_the_clock(self, stage: Stage) -> None:
        before = stage.chain.mine(1).latest.number
        stage.clock.advance(7)
        assert stage.chain.heads().latest.number == before + 7
        stage.clock.advance(-100)  # a clock that steps back takes away what nobody used
        assert stage.chain.mine(1).latest.number > before

    def test_no_transaction_gets_into_a_block_that_was_seen_while_it_was_committed(
        self, stage: Stage
    ) -> None:
        stage.chain.mine(1)
        for _ in range(12):
            stage.clock.advance(0.9)
            seen = stage.chain.heads().latest  # by a reader, moments later
            stage.clock.advance(-0.9)
            view = stage.chain.transaction(stage.give(ANN, 1, f"after {seen.number}"))
            assert view is not None
            assert view.block is not None
            assert view.block.number > seen.number
            assert view.block == stage.chain.heads().latest
            stage.clock.advance(0.1)

    def test_the_chain_may_rest_for_an_hour(self, stage: Stage) -> None:
        assert stage.chain.longest_pause_ms == 6 * HOUR

    def test_the_addresses_of_contracts_can_be_told_from_all_others(self) -> None:
        derive = Stage(MemoryStorage()).chain.derive
        kinds = ("vault", "escrow", "deposit", "operator")
        ours = {derive(AddressSpec(env, kind, "x")) for env in "ab" for kind in kinds}
        assert len(ours) == 8
        assert all(is_contract(address) for address in ours)
        assert not any(is_contract(address) for address in (ANN, BOB, EVE, USDC))


class TestScan:
    def test_a_scan_gives_the_transfers_of_its_blocks_in_the_order_of_the_chain(
        self, stage: Stage
    ) -> None:
        hashes = [stage.give(ANN, amount, f"t-{amount}") for amount in (1, 2, 3, 4)]
        first, last = (stage.chain.transaction(hashes[n]) for n in (1, 2))
        assert first is not None
        assert first.block is not None
        assert last is not None
        assert last.block is not None
        found = stage.chain.scan([USDC], None, first.block.number, last.block.number)
        assert [item.transaction_hash for item in found] == hashes[1:3]
        assert [item.log for item in found] == [*first.logs, *last.logs]
        assert [item.block for item in found] == [first.block, last.block]

    def test_a_scan_leaves_out_other_tokens_other_recipients_and_what_failed(
        self, stage: Stage
    ) -> None:
        wanted = stage.give(ANN, 1, "wanted")
        stage.give(BOB, 1, "to another")
        stage.chain.transfer(OTHER_TOKEN, None, ANN, 1, "another token")
        stage.chain.transfer(USDC, None, ANN, 1, "failed", reverts=True)
        stage.chain.transfer(USDC, EVE, ANN, 1, "without the funds")
        stage.another(10).transfer(USDC, None, ANN, 1, "on another chain")
        high = stage.chain.heads().latest.number
        found = stage.chain.scan([USDC], [ANN, EVE], 0, high)
        assert [item.transaction_hash for item in found] == [wanted]
        assert len(stage.chain.scan([USDC, OTHER_TOKEN], None, 0, high)) == 3
        assert not stage.chain.scan([USDC], [], 0, high)
        assert not stage.chain.scan([USDC], None, high + 1, high + 9)

    def test_a_long_scan_finds_everything(self, memory_stage: Stage) -> None:
        for number in range(2_050):
            memory_stage.give(ANN, 1, f"t-{number}")
        found = memory_stage.chain.scan([USDC], [ANN], 1, 5_000)
        assert len({item.transaction_hash for item in found}) == 2_050
        numbers = [item.block.number for item in found]
        assert numbers == sorted(numbers)


class TestStrangers:
    def test_new_tokens_are_there_at_once_and_final_three_blocks_later(self, stage: Stage) -> None:
        hash = stage.give(ANN, 5, "gift")
        view = stage.chain.transaction(hash)
        assert view is not None
        assert view.succeeded
        assert view.block == stage.chain.heads().latest
        assert stage.chain.balances(USDC, [ANN]).amounts[ANN] == 0
        stage.chain.mine(3)
        assert stage.chain.balances(USDC, [ANN]).amounts[ANN] == 5

    def test_a_name_makes_one_transfer(self, stage: Stage) -> None:
        assert stage.give(ANN, 5, "gift") == stage.give(ANN, 5, "gift")
        assert stage.newest(ANN) == 5

    def test_a_wallet_gives_what_it_has_and_no_more(self, stage: Stage) -> None:
        stage.give(ANN, 5, "gift")
        gone = stage.chain.transaction(stage.chain.transfer(USDC, ANN, BOB, 3, "first"))
        short = stage.chain.transaction(stage.chain.transfer(USDC, ANN, BOB, 3, "second"))
        assert gone is not None
        assert gone.succeeded
        assert gone.logs[0].sender == ANN
        assert short is not None
        assert (short.succeeded, short.logs) == (False, ())
        assert (stage.newest(ANN), stage.newest(BOB)) == (2, 3)

    def test_a_transfer_can_be_made_to_revert(self, stage: Stage) -> None:
        hash = stage.chain.transfer(USDC, None, ANN, 5, "gift", reverts=True)
        view = stage.chain.transaction(hash)
        assert view is not None
        assert view.block is not None
        assert (view.succeeded, view.logs) == (False, ())
        assert stage.newest(ANN) == 0

    def test_nothing_at_all_can_be_transferred_too(self, stage: Stage) -> None:
        view = stage.chain.transaction(stage.chain.transfer(USDC, EVE, ANN, 0, "nothing"))
        assert view is not None
        assert view.logs[0].amount_atomic == 0
        assert stage.newest(ANN) == 0

    def test_a_transfer_to_oneself_changes_nothing(self, stage: Stage) -> None:
        stage.give(ANN, 5, "gift")
        view = stage.chain.transaction(stage.chain.transfer(USDC, ANN, ANN, 4, "round"))
        assert view is not None
        assert view.succeeded
        assert stage.newest(ANN) == 5


class TestReorgs:
    def test_the_last_blocks_get_other_hashes_and_the_chain_no_lower(self, stage: Stage) -> None:
        latest = stage.chain.mine(10).latest.number
        before = {number: stage.chain.block(number) for number in range(latest + 1)}
        heads = stage.chain.reorg(4)
        assert heads.latest.number == latest
        assert heads == stage.chain.heads() == stage.another().heads()
        changed = {number for number in before if stage.chain.block(number) != before[number]}
        assert changed == set(range(latest - 3, latest + 1))

    def test_every_reorg_makes_blocks_that_were_never_there(self, stage: Stage) -> None:
        stage.chain.mine(10)
        seen = Counter({stage.chain.heads().latest.hash: 1})
        for depth in (2, 5, 1, 3, 3):
            seen[stage.chain.reorg(depth).latest.hash] += 1
        assert set(seen.values()) == {1}
        assert len(seen) == 6

    def test_blocks_below_many_forks_keep_their_hashes(self, memory_stage: Stage) -> None:
        chain = memory_stage.chain
        chain.mine(10)
        for _ in range(40):
            chain.mine(3)
            chain.reorg(1)
        low = [chain.block(number) for number in range(20, 100)]
        chain.reorg(5)
        assert [chain.block(number) for number in range(20, 100)] == low

    def test_what_was_in_dropped_blocks_is_gone(self, stage: Stage) -> None:
        stage.give(ANN, 5, "stays")
        stage.chain.mine(3)
        hash = stage.give(ANN, 7, "goes")
        moved = stage.chain.transfer(USDC, ANN, BOB, 4, "goes too")
        stage.chain.reorg(2)
        assert stage.chain.transaction(hash) is None
        assert stage.chain.transaction(moved) is None
        assert (stage.newest(ANN), stage.newest(BOB)) == (5, 0)
        assert len(stage.chain.scan([USDC], None, 0, 1_000)) == 1

    def test_even_what_was_final_can_go(self, stage: Stage) -> None:
        stage.chain.mint(USDC, ANN, 5, "funds")
        assert stage.chain.balances(USDC, [ANN]).amounts[ANN] == 5
        stage.chain.reorg(4)
        assert stage.chain.balances(USDC, [ANN]).amounts[ANN] == 0

    def test_a_dropped_transfer_may_be_made_again(self, stage: Stage) -> None:
        hash = stage.give(ANN, 5, "gift")
        stage.chain.reorg(1)
        assert stage.give(ANN, 5, "gift") == hash
        assert stage.newest(ANN) == 5

    def test_what_comes_back_is_in_another_block_at_another_place(self, stage: Stage) -> None:
        hashes = [
            stage.give(ANN, 5, "first"),
            stage.chain.transfer(USDC, None, ANN, 1, "failed", reverts=True),
            stage.chain.transfer(USDC, ANN, BOB, 5, "second"),
        ]
        before = [stage.chain.transaction(hash) for hash in hashes]
        heads = stage.chain.reorg(3, reinclude=True)
        for _ in range(2):
            after = [stage.chain.transaction(hash) for hash in hashes]
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
            found = stage.chain.scan([USDC], None, 0, 1_000)
            assert [item.transaction_hash for item in found] == [hashes[0], hashes[2]]
            before, heads = after, stage.chain.reorg(1, reinclude=True)
        assert stage.chain.balances(USDC, [BOB]).amounts[BOB] == 0  # not final yet
        assert (stage.newest(ANN), stage.newest(BOB)) == (0, 5)

    def test_a_transaction_of_ours_that_was_dropped_is_sent_again_in_its_slot(
        self, stage: Stage
    ) -> None:
        stage.chain.mint(USDC, stage.vault, 100, "funds")
        first, second = stage.signed(0), stage.signed(1)
        stage.chain.broadcast(first)
        stage.chain.broadcast(second)
        stage.chain.reorg(2)
        assert stage.chain.transaction(first.hash) is None
        with pytest.raises(ChainUnavailable):
            stage.chain.broadcast(second)
        stage.chain.broadcast(first)
        stage.chain.broadcast(second)
        stage.chain.broadcast(first)  # it is there; that is harmless
        assert (stage.newest(stage.vault), stage.newest(BOB)) == (80, 20)

    def test_only_the_slots_that_were_dropped_are_free_again(self, stage: Stage) -> None:
        stage.chain.mint(USDC, stage.vault, 100, "funds")
        for slot in range(3):
            stage.chain.broadcast(stage.signed(slot))
        stage.chain.reorg(1)
        with pytest.raises(ChainUnavailable):
            stage.chain.broadcast(stage.signed(3))
        stage.chain.broadcast(stage.signed(2))
        stage.chain.reorg(1, reinclude=True)
        stage.chain.broadcast(stage.signed(3))
        assert stage.newest(BOB) == 40

    def test_a_name_takes_place_once(self, stage: Stage) -> None:
        stage.give(ANN, 5, "first")
        stage.chain.mine(1)
        stage.chain.reorg(1, name="r")
        stage.chain.reorg(1, name="r")
        stage.chain.reorg(1, name="s")
        assert stage.newest(ANN) == 5

    @pytest.mark.parametrize("depth", [0, -1, 51])
    def test_no_reorg_is_deeper_than_the_books_reach(self, memory_stage: Stage, depth: int) -> None:
        with pytest.raises(ValueError, match="1 to 50"):
            memory_stage.chain.reorg(depth)

    def test_the_first_block_stays(self, stage: Stage) -> None:
        genesis = stage.chain.block(0)
        heads = stage.chain.reorg(50)
        assert heads.latest == stage.chain.block(0) == genesis
        stage.give(ANN, 5, "gift")
        assert stage.chain.reorg(50).latest.number == 1
        assert stage.chain.block(0) == genesis
        assert stage.newest(ANN) == 0

    @pytest.mark.parametrize("seed", range(12))
    def test_balances_are_those_of_the_transfers_that_are_in_the_chain(
        self, memory_stage: Stage, seed: int
    ) -> None:
        chance, stage = random.Random(seed), memory_stage
        holders = [ANN, BOB, EVE]
        for step in range(150):
            what = chance.random()
            if what < 0.55:
                source = chance.choice([None, *holders])
                amount = chance.randrange(1, 9)
                name = f"t-{step}"
                stage.chain.transfer(USDC, source, chance.choice(holders), amount, name)
            elif what < 0.7:
                stage.clock.advance(chance.randrange(1, 3))
            elif what < 0.85:
                depth = chance.choice([1, 2, 3, 4, 50])
                stage.chain.reorg(depth, reinclude=chance.random() < 0.5)
            heads = stage.chain.heads()
            logs = stage.chain.scan([USDC], None, 0, heads.final.number)
            expected: Counter[str] = Counter()
            for item in logs:
                expected[item.log.recipient] += item.log.amount_atomic
                expected[item.log.sender] -= item.log.amount_atomic
            at = stage.chain.balances(USDC, holders)
            assert at.height == heads.final.number
            assert at.amounts == {holder: expected[holder] for holder in holders}
            assert min(at.amounts.values()) >= 0

    def test_reorgs_beside_many_senders_lose_and_double_nothing(self, opener: object) -> None:
        stage = Stage(opener())  # type: ignore[operator]
        stage.chain.mint(USDC, stage.vault, 1_000, "funds")
        stage.chain.mine(20)

        def send(number: int) -> None:
            stage.another().transfer(USDC, None, ANN, 1, f"t-{number}")

        def reorg(number: int) -> None:
            stage.another().reorg(2, reinclude=number % 2 == 0)

        with ThreadPoolExecutor(4) as pool:
            done = [pool.submit(send, number) for number in range(24)]
            done += [pool.submit(reorg, number) for number in range(6)]
            for one in done:
                one.result(60)
        left = stage.chain.scan([USDC], [ANN], 0, 1_000)
        assert stage.newest(ANN) == len(left) == len({item.transaction_hash for item in left})


class TestFailures:
    @pytest.mark.parametrize("operation", ["any", "heads", "transaction", "balances", "scan"])
    def test_the_next_calls_fail_and_those_after_do_not(self, stage: Stage, operation: str) -> None:
        calls = {
            "heads": stage.chain.heads,
            "transaction": lambda: stage.chain.transaction("0x"),
            "balances": lambda: stage.chain.balances(USDC, [ANN]),
            "scan": lambda: stage.chain.scan([USDC], None, 0, 9),
        }
        stage.failures.arm("chain", operation, 2)
        failing = calls if operation == "any" else {operation: calls[operation]}
        for name, call in calls.items():
            if name not in failing:
                call()
        for call in [*failing.values()][:2] * (1 if operation == "any" else 2):
            with pytest.raises(ChainUnavailable):
                call()
        for call in calls.values():
            call()
        assert stage.failures.armed() == ()

    def test_the_sandboxs_own_doors_do_not_fail(self, stage: Stage) -> None:
        stage.failures.arm("chain", "any", 1)
        stage.chain.tip()
        hash = stage.give(ANN, 1, "gift")
        assert stage.chain.seen(hash) is not None
        stage.chain.reorg(1)
        assert [item.times for item in stage.failures.armed()] == [1]
        with pytest.raises(ChainUnavailable):
            stage.chain.block(0)

    def test_a_broadcast_that_fails_has_done_nothing(self, stage: Stage) -> None:
        stage.chain.mint(USDC, stage.vault, 100, "funds")
        stage.failures.arm("chain", "broadcast", 1)
        with pytest.raises(ChainUnavailable):
            stage.chain.broadcast(stage.signed(0))
        assert stage.chain.transaction(stage.signed(0).hash) is None
        stage.chain.broadcast(stage.signed(0))
        assert stage.newest(BOB) == 10

    def test_after_a_lost_answer_the_transaction_is_in_the_chain(self, stage: Stage) -> None:
        stage.chain.mint(USDC, stage.vault, 100, "funds")
        stage.failures.arm("chain", "lost_answer", 2)
        for _ in range(2):
            with pytest.raises(ChainUnavailable):
                stage.chain.broadcast(stage.signed(0))
            assert stage.chain.transaction(stage.signed(0).hash) is not None
        stage.chain.broadcast(stage.signed(0))
        assert stage.newest(BOB) == 10

    def test_a_transfer_of_the_services_can_revert(self, stage: Stage) -> None:
        stage.chain.mint(USDC, stage.vault, 100, "funds")
        stage.failures.arm("chain", "transfer", 1)
        stage.give(ANN, 1, "a stranger's does not")
        stage.chain.broadcast(stage.signed(0))
        stage.chain.broadcast(stage.signed(0))
        stage.chain.broadcast(stage.signed(1))
        views = [stage.chain.transaction(stage.signed(slot).hash) for slot in (0, 1)]
        assert [view.succeeded for view in views if view] == [False, True]
        assert stage.newest(stage.vault) == 90

    def test_a_failure_may_be_meant_for_one_chain(self, stage: Stage) -> None:
        other = stage.another(10)
        stage.failures.arm("chain", "heads", 1, chain_id=10)
        stage.chain.heads()
        with pytest.raises(ChainUnavailable):
            other.heads()
        other.heads()

    def test_arming_again_replaces_the_count(self, stage: Stage) -> None:
        stage.failures.arm("chain", "heads", 5)
        stage.failures.arm("chain", "scan", 1)
        stage.failures.arm("chain", "heads", 2)
        shown = [(item.operation, item.times) for item in stage.failures.armed()]
        assert shown == [("scan", 1), ("heads", 2)]

    def test_another_dependency_asks_for_its_own(self, stage: Stage) -> None:
        stage.failures.arm("kyc", "start", 1)
        stage.chain.heads()
        assert not stage.failures.consume("chain", "heads", BASE)
        assert stage.failures.consume("kyc", "start")
        assert not stage.failures.consume("kyc", "start")

    def test_callers_at_once_share_the_failures_and_get_none_more(self, opener: object) -> None:
        stage = Stage(opener())  # type: ignore[operator]
        stage.chain.mine(1)
        stage.failures.arm("chain", "heads", 5)

        def ask(_: int) -> bool:
            try:
                stage.another().heads()
            except ChainUnavailable:
                return True
            return False

        with ThreadPoolExecutor(4) as pool:
            failed = sum(pool.map(ask, range(30)))
        assert failed == 5
        assert stage.failures.armed() == ()


def test_the_faucet_gives_what_a_token_can_carry_and_a_reorg_takes_it_back(stage: Stage) -> None:
    stage.give(ANN, MAX_ATOMIC - 1, "nearly all")
    stage.chain.transfer(USDC, ANN, BOB, MAX_ATOMIC - 1, "moved on")
    for holder in (ANN, BOB):  # it is the sum that counts, whoever holds it
        with pytest.raises(AmountOutOfRange):
            stage.give(holder, 2, f"too much for {holder}")
    stage.give(ANN, 1, "all")
    assert (stage.newest(ANN), stage.newest(BOB)) == (1, MAX_ATOMIC - 1)
    stage.another(1).transfer(OTHER_TOKEN, None, ANN, MAX_ATOMIC, "of another token")
    stage.chain.reorg(50, reinclude=True)
    with pytest.raises(AmountOutOfRange):
        stage.give(ANN, 1, "one more")
    stage.chain.reorg(50)
    stage.give(EVE, MAX_ATOMIC, "all anew")
    assert stage.newest(EVE) == MAX_ATOMIC
