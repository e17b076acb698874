"""Over how many blocks a scan goes: fewer where a chain is busy or does not answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains import scanner
from payments_core.chains.port import ChainUnavailable, ScannedTransfer
from payments_core.chains.scanner import ScanCursor
from payments_core.storage.port import DIRECTORY
from tests.service.faults import FaultyChain
from tests.service.till import Till
from tests.service.world import BASE, STRANGER, USDC


class Measured(FaultyChain):
    """A chain that counts the blocks of each scan, and answers none over more than `most`."""

    def __init__(self, till: Till) -> None:
        super().__init__(till.world.chain, at=0, fault=lambda call: call(), until=-1)
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
def chain(till: Till) -> Measured:
    chain = Measured(till)
    till.world.service = till.world.restarted(chains={BASE: chain})
    till.world.service.parts.scanner("sandbox").ensure_scheduled()
    till.world.run()
    return chain


def cursor(till: Till) -> ScanCursor:
    found = till.world.storage.read(
        DIRECTORY, lambda snapshot: snapshot.get(ScanCursor, f"sandbox:{BASE}")
    )
    assert found is not None
    return found


def wake(till: Till) -> None:
    till.world.service.parts.scanner("sandbox").wake(BASE)
    till.world.advance(120)


def test_a_busy_chain_is_scanned_in_smaller_pieces_and_a_quiet_one_in_larger(
    till: Till, chain: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "TARGET_TRANSFERS", 20)
    for n in range(60):
        till.world.chain.transfer(USDC.address, None, STRANGER, 1, f"stranger {n}")
    till.send("5.00")
    till.world.service.parts.scanner("sandbox").wake(BASE)
    till.world.run()
    narrow = cursor(till).span
    assert narrow is not None
    assert narrow < 60
    till.world.chain.mine(5_000)
    wake(till)
    assert (cursor(till).span or chain.max_scan_blocks) > narrow
    till.finish()
    assert till.all()[0].status == "settled"


def test_strangers_transfers_do_not_hold_up_ours(
    till: Till, chain: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "MAX_OWN_TRANSFERS", 3)
    for n in range(40):
        till.world.chain.transfer(USDC.address, None, STRANGER, 1, f"stranger {n}")
    till.send("5.00")
    before = len(chain.spans)
    till.world.service.parts.scanner("sandbox").wake(BASE)
    till.world.run()
    assert len(chain.spans) == before + 2  # the second is of the blocks that became final
    assert [deposit.amount for deposit in till.all()] == [5_000_000]


def test_what_is_too_much_for_one_question_is_asked_in_parts(till: Till, chain: Measured) -> None:
    till.world.chain.mine(3_000)
    till.send("5.00")
    till.world.chain.mine(3_000)
    chain.most = 100
    wake(till)
    till.world.advance(600)
    till.finish()
    assert [deposit.amount for deposit in till.all()] == [5_000_000]
