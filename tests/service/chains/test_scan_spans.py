"""Over how many blocks a scan goes: fewer where a chain is busy or does not answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains import scanner
from payments_core.chains.port import ChainUnavailable, ScannedTransfer
from payments_core.chains.scanner import ScanCursor
from payments_core.storage.port import DIRECTORY
from tests.service.deposit_harness import DepositHarness
from tests.service.faults import FaultyChain
from tests.service.world import BASE, STRANGER, USDC


class Measured(FaultyChain):
    """A chain that counts the blocks of each scan, and answers none over more than `most`."""

    def __init__(self, harness: DepositHarness) -> None:
        super().__init__(harness.world.chain, at=0, fault=lambda call: call(), until=-1)
        self.spans: list[int] = []
        self.most = 1_000_000

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        self.spans.append(last - first + 1)
        if self.spans[-1] > self.most:
            raise ChainUnavailable("too much for one question")
        return super().scan(tokens, recipients, first, last)


@pytest.fixture
def chain(harness: DepositHarness) -> Measured:
    chain = Measured(harness)
    harness.world.service = harness.world.restarted(chains={BASE: chain})
    harness.world.service.parts.scanner("sandbox").ensure_scheduled()
    harness.world.run()
    return chain


def cursor(harness: DepositHarness) -> ScanCursor:
    found = harness.world.storage.read(
        DIRECTORY, lambda snapshot: snapshot.get(ScanCursor, f"sandbox:{BASE}")
    )
    assert found is not None
    return found


def wake(harness: DepositHarness) -> None:
    harness.world.service.parts.scanner("sandbox").wake(BASE)
    harness.world.advance(120)


def test_a_busy_chain_is_scanned_in_smaller_pieces_and_a_quiet_one_in_larger(
    harness: DepositHarness, chain: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "TARGET_TRANSFERS", 20)
    for n in range(60):
        harness.world.chain.transfer(USDC.address, None, STRANGER, 1, f"stranger {n}")
    harness.send("5.00")
    harness.world.service.parts.scanner("sandbox").wake(BASE)
    harness.world.run()
    narrow = cursor(harness).span
    assert narrow is not None
    assert narrow < 60
    harness.world.chain.mine(5_000)
    wake(harness)
    assert (cursor(harness).span or chain.max_scan_blocks) > narrow
    harness.finish()
    assert harness.all()[0].status == "settled"


def test_strangers_transfers_do_not_hold_up_ours(
    harness: DepositHarness, chain: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "MAX_OWN_TRANSFERS", 3)
    for n in range(40):
        harness.world.chain.transfer(USDC.address, None, STRANGER, 1, f"stranger {n}")
    harness.send("5.00")
    before = len(chain.spans)
    harness.world.service.parts.scanner("sandbox").wake(BASE)
    harness.world.run()
    assert len(chain.spans) == before + 2  # the second is of the blocks that became final
    assert [deposit.amount_atomic for deposit in harness.all()] == [5_000_000]


def test_what_is_too_much_for_one_question_is_asked_in_parts(
    harness: DepositHarness, chain: Measured
) -> None:
    harness.world.chain.mine(3_000)
    harness.send("5.00")
    harness.world.chain.mine(3_000)
    chain.most = 100
    wake(harness)
    harness.world.advance(600)
    harness.finish()
    assert [deposit.amount_atomic for deposit in harness.all()] == [5_000_000]
