"""An EVM chain, against anvil on the same machine: scanning, judging, verifying receipts.

    python -m benchmarks.evm

The scanner goes through 100,000 blocks with 1,000 watched addresses among strangers, on SQLite. Its
process is killed (SIGKILL) at random moments on the way and goes on in another; what was found in
the end must be what the node's logs say, each once. All is measured several times, and the best is
told: a machine that is busy with something else measures that too.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from benchmarks import evm_chain
from payments_core.chains.judge import ExpectedTransfer, Verdict, judge
from payments_core.chains.port import Block, Heads, TransactionView, TransferLog
from payments_core.deposits.discovery import DepositDiscovery
from payments_core.payments.receipts.discovery import ReceiptDiscovery
from payments_core.storage.port import MAX_LOCATE_KEYS
from payments_core_http.cli.anvil.chain import AnvilChain
from payments_core_http.cli.anvil.process import AnvilProcess
from payments_core_http.cli.child_processes import ChildProcess
from tests.chains.evm.kill_victim import chain_at, service_over, storage_in
from tests.chains.evm.nodes import Node
from tests.chains.evm.watched import (
    Watched,
    assert_each_is_looked_at_by_one_job,
    has_been_found,
    to_be_found,
    watch,
)
from tests.service.world import BASE, USDC

BLOCKS = 100_000
EVERY = 10
"""In every so-many-th block there is a transfer,"""

HITS = 0.2
"""and so many of them go to a watched address."""

ADDRESSES = 1_000
KILLS = 3
A_SCAN_S = 0.05
"""About so long one scan takes, within which a kill comes at any moment."""

RUNS = 3
ROUNDS = 20
RECEIPTS = 50
JUDGED = 100_000
LIFE_S = 120.0
SEED = 1


@attrs.define
class Scanned:
    """What one scan of the whole chain took, without the starts of its processes."""

    scanning_s: float = 0.0


def main() -> None:
    """Print the figures."""
    print(f"judge: {_judged():,.0f} a second")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "begun").mkdir()
        state = folder / "chain.json"
        began = time.perf_counter()
        watched = _chain(folder / "begun", state)
        print(f"{BLOCKS:,} blocks, mined in {time.perf_counter() - began:.0f} s")
        with AnvilProcess(options=("--load-state", str(state))) as process:
            node = Node(process.url)
            _report_scans(folder, node, watched)
            _report_filters(chain_at(node.url), watched)
            _report_receipts(chain_at(node.url))
            node.close()


def _judged() -> float:
    """Verdicts a second on a transaction with one transfer, which is final and fits."""
    log = TransferLog(0, 3, USDC.address, "0x" + 40 * "1", "0x" + 40 * "2", 1)
    view = TransactionView("0x" + 64 * "3", Block(90, "0x90"), True, (log,))
    heads = Heads(Block(100, "0x100"), Block(92, "0x92"))
    expected = ExpectedTransfer(BASE, USDC.address, log.recipient)
    nothing: frozenset[int] = frozenset()
    assert judge(expected, BASE, view, heads, nothing) == (Verdict(log, None),)

    def work() -> None:
        for _ in range(JUDGED):
            judge(expected, BASE, view, heads, nothing)

    return JUDGED / _best(work, RUNS)


def _chain(folder: Path, state: Path) -> Watched:
    """A service that has scanned a chain's beginning, and the rest of the chain."""
    chance = random.Random(SEED)
    with AnvilProcess(state=state, history=64, options=evm_chain.OPTIONS) as process:
        node = Node(process.url)
        watched = watch(folder, node, ADDRESSES)
        node.close()
        _live(folder, process.url, Scanned())
    addresses = watched.addresses

    def recipient() -> str:
        if chance.random() < HITS:
            return chance.choice(addresses)
        return "0x" + chance.randbytes(20).hex()

    evm_chain.grow(state, USDC.address, recipient, BLOCKS, EVERY)
    return watched


def _report_scans(folder: Path, node: Node, watched: Watched) -> None:
    expected = to_be_found(node, watched)
    chance = random.Random(SEED)
    rates = []
    for run in range(RUNS):
        shutil.copytree(folder / "begun", folder / str(run))
        scanned = Scanned()
        for place in sorted(chance.randrange(BLOCKS * 9 // 10) for _ in range(KILLS)):
            _live(folder / str(run), node.url, scanned, place, chance.uniform(0, A_SCAN_S))
        _live(folder / str(run), node.url, scanned)
        assert has_been_found(folder / str(run)) == expected, "missed, or found twice"
        assert_each_is_looked_at_by_one_job(folder / str(run))
        rates.append(BLOCKS / scanned.scanning_s)
    best = max(rates)
    print(f"{len(expected):,} of {BLOCKS // EVERY:,} transfers to {ADDRESSES:,} watched addresses")
    print(f"killed {KILLS} times in each of {RUNS} runs: none missed, none twice")
    print(f"  blocks a second            {best:12,.0f}  ({', '.join(f'{r:,.0f}' for r in rates)})")
    print(f"  transfers a second         {best / EVERY:12,.0f}")
    print(f"  strangers' alone, matched  {_strangers(folder / 'begun', node.url):12,.0f}")


def _live(
    folder: Path, url: str, scanned: Scanned, place: int | None = None, later_s: float = 0.0
) -> None:
    """One process that scans, killed when it has passed a place, or with none to its end."""
    victim = ChildProcess(
        "scan", "tests.chains.evm.kill_victim", ["scan", str(folder), url, "1", "0", ""]
    )
    try:
        victim.wait_until_ready()
        began = time.perf_counter()
        if place is None:
            assert victim.wait_for(lambda reported: "lived" in reported[-1], LIFE_S), (
                victim.read_errors()
            )
        else:
            assert victim.wait_for(lambda reported: reported[-1].get("tip", 0) >= place, LIFE_S)
            time.sleep(later_s)
            victim.kill()
        scanned.scanning_s += time.perf_counter() - began
    finally:
        code = victim.end()
    assert code == (0 if place is None else -9), victim.read_errors()


def _strangers(folder: Path, url: str) -> float:
    """Transfers a second that concern nobody: what a token's own traffic costs."""
    chain, storage = chain_at(url), storage_in(folder)
    service, _ = service_over(folder, storage, chain, random.Random(SEED).randbytes)
    receipts = ReceiptDiscovery(service.parts.ports, "sandbox")
    deposits = DepositDiscovery(service.parts.ports, service.chains, "sandbox")
    first = chain.heads().latest.number - 5_000 * EVERY
    nobody = [
        attrs.evolve(transfer, recipient=f"0x{number:040x}")
        for number, transfer in enumerate(
            transfer
            for start in range(first, first + 5_000 * EVERY, chain.max_scan_blocks)
            for transfer in chain.scan(
                [USDC.address], None, start, start + chain.max_scan_blocks - 1
            )
        )
    ]

    assert len(nobody) > 4_000, len(nobody)

    def work() -> None:
        for start in range(0, len(nobody), MAX_LOCATE_KEYS):
            receipts.on_transfers(BASE, nobody[start : start + MAX_LOCATE_KEYS])
            deposits.on_transfers(BASE, nobody[start : start + MAX_LOCATE_KEYS])

    rate = len(nobody) / _best(work, RUNS)
    service.close()
    return rate


def _report_filters(chain: AnvilChain, watched: Watched) -> None:
    """The same blocks asked for by recipient and by token, as the chain's adapter can do."""
    first = chain.heads().latest.number - chain.max_scan_blocks
    last = first + chain.max_scan_blocks - 1
    print(f"{chain.max_scan_blocks:,} blocks from the node")
    for name, recipients in (("by token", None), ("by recipient", watched.addresses)):
        found = len(chain.scan([USDC.address], recipients, first, last))
        took_s = _best(_scan(chain, recipients, first, last), ROUNDS)
        print(f"  {name:<26} {took_s * 1_000:10.1f} ms for {found} transfers")


def _scan(
    chain: AnvilChain, recipients: Sequence[str] | None, first: int, last: int
) -> Callable[[], object]:
    return lambda: chain.scan([USDC.address], recipients, first, last)


def _report_receipts(chain: AnvilChain) -> None:
    """A batch of receipts, each of another block."""
    last = chain.heads().latest.number
    found = chain.scan([USDC.address], None, last - 2 * RECEIPTS * EVERY, last)
    hashes = [transfer.transaction_hash for transfer in found[:RECEIPTS]]
    assert len(set(hashes)) == RECEIPTS

    def work() -> None:
        views = chain.transactions(hashes)
        assert all(view is not None and len(view.logs) == 1 for view in views.values())

    took_s = _best(work, ROUNDS)
    print(f"{RECEIPTS} receipts in a batch: {took_s * 1_000 / RECEIPTS:.2f} ms each")


def _best(work: Callable[[], object], rounds: int) -> float:
    """The shortest of so many times, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
