"""Failures of the simulated chain that a test ordered, on every storage."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.chains.port import ChainUnavailable
from tests.service.chain_harness import ANN, BASE, BOB, USDC, ChainHarness


class TestFailures:
    @pytest.mark.parametrize("operation", ["any", "heads", "transaction", "balances", "scan"])
    def test_the_next_calls_fail_and_those_after_do_not(
        self, chain_harness: ChainHarness, operation: str
    ) -> None:
        calls = {
            "heads": chain_harness.chain.heads,
            "transaction": lambda: chain_harness.chain.transaction("0x"),
            "balances": lambda: chain_harness.chain.balances(USDC, [ANN]),
            "scan": lambda: chain_harness.chain.scan([USDC], None, 0, 9),
        }
        chain_harness.failures.arm("chain", operation, 2)
        failing = calls if operation == "any" else {operation: calls[operation]}
        for name, call in calls.items():
            if name not in failing:
                call()
        for call in [*failing.values()][:2] * (1 if operation == "any" else 2):
            with pytest.raises(ChainUnavailable):
                call()
        for call in calls.values():
            call()
        assert chain_harness.failures.list_armed() == ()

    def test_the_operations_of_the_sandbox_do_not_fail(self, chain_harness: ChainHarness) -> None:
        chain_harness.failures.arm("chain", "any", 1)
        chain_harness.chain.peek_heads()
        hash = chain_harness.give(ANN, 1, "gift")
        assert chain_harness.chain.peek_transaction(hash) is not None
        chain_harness.chain.reorg(1)
        assert [item.times for item in chain_harness.failures.list_armed()] == [1]
        with pytest.raises(ChainUnavailable):
            chain_harness.chain.block(0)

    def test_a_broadcast_that_fails_has_done_nothing(self, chain_harness: ChainHarness) -> None:
        chain_harness.chain.mint(USDC, chain_harness.vault, 100, "funds")
        chain_harness.failures.arm("chain", "broadcast", 1)
        with pytest.raises(ChainUnavailable):
            chain_harness.chain.broadcast(chain_harness.signed(0))
        assert chain_harness.chain.transaction(chain_harness.signed(0).hash) is None
        chain_harness.chain.broadcast(chain_harness.signed(0))
        assert chain_harness.newest(BOB) == 10

    def test_after_a_lost_answer_the_transaction_is_in_the_chain(
        self, chain_harness: ChainHarness
    ) -> None:
        chain_harness.chain.mint(USDC, chain_harness.vault, 100, "funds")
        chain_harness.failures.arm("chain", "lost_answer", 2)
        for _ in range(2):
            with pytest.raises(ChainUnavailable):
                chain_harness.chain.broadcast(chain_harness.signed(0))
            assert chain_harness.chain.transaction(chain_harness.signed(0).hash) is not None
        chain_harness.chain.broadcast(chain_harness.signed(0))
        assert chain_harness.newest(BOB) == 10

    def test_a_transfer_of_the_services_can_revert(self, chain_harness: ChainHarness) -> None:
        chain_harness.chain.mint(USDC, chain_harness.vault, 100, "funds")
        chain_harness.failures.arm("chain", "transfer", 1)
        chain_harness.give(ANN, 1, "a stranger's does not")
        chain_harness.chain.broadcast(chain_harness.signed(0))
        chain_harness.chain.broadcast(chain_harness.signed(0))
        chain_harness.chain.broadcast(chain_harness.signed(1))
        views = [
            chain_harness.chain.transaction(chain_harness.signed(slot).hash) for slot in (0, 1)
        ]
        assert [view.succeeded for view in views if view] == [False, True]
        assert chain_harness.newest(chain_harness.vault) == 90

    def test_a_failure_may_be_meant_for_one_chain(self, chain_harness: ChainHarness) -> None:
        other = chain_harness.another(10)
        chain_harness.failures.arm("chain", "heads", 1, chain_id=10)
        chain_harness.chain.heads()
        with pytest.raises(ChainUnavailable):
            other.heads()
        other.heads()

    def test_arming_again_replaces_the_count(self, chain_harness: ChainHarness) -> None:
        chain_harness.failures.arm("chain", "heads", 5)
        chain_harness.failures.arm("chain", "scan", 1)
        chain_harness.failures.arm("chain", "heads", 2)
        shown = [(item.operation, item.times) for item in chain_harness.failures.list_armed()]
        assert shown == [("scan", 1), ("heads", 2)]

    def test_another_dependency_asks_for_its_own(self, chain_harness: ChainHarness) -> None:
        chain_harness.failures.arm("kyc", "start", 1)
        chain_harness.chain.heads()
        assert not chain_harness.failures.consume("chain", "heads", BASE)
        assert chain_harness.failures.consume("kyc", "start")
        assert not chain_harness.failures.consume("kyc", "start")

    def test_callers_at_once_share_the_failures_and_get_none_more(self, opener: object) -> None:
        chain_harness = ChainHarness(opener())  # type: ignore[operator]
        chain_harness.chain.mine(1)
        chain_harness.failures.arm("chain", "heads", 5)

        def ask(_: int) -> bool:
            try:
                chain_harness.another().heads()
            except ChainUnavailable:
                return True
            return False

        with ThreadPoolExecutor(4) as pool:
            failed = sum(pool.map(ask, range(30)))
        assert failed == 5
        assert chain_harness.failures.list_armed() == ()
