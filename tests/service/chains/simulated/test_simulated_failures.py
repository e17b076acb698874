"""Failures of the simulated chain that a test ordered, on every storage."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.chains.port import ChainUnavailable
from tests.service.stage import ANN, BASE, BOB, USDC, Stage


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
        assert stage.failures.list_armed() == ()

    def test_the_sandboxs_own_doors_do_not_fail(self, stage: Stage) -> None:
        stage.failures.arm("chain", "any", 1)
        stage.chain.peek_heads()
        hash = stage.give(ANN, 1, "gift")
        assert stage.chain.peek_transaction(hash) is not None
        stage.chain.reorg(1)
        assert [item.times for item in stage.failures.list_armed()] == [1]
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
        shown = [(item.operation, item.times) for item in stage.failures.list_armed()]
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
        assert stage.failures.list_armed() == ()
