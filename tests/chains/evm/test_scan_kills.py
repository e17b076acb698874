"""kill -9 of a process that scans a real node: no transfer is missed, and none counts twice.

`PAYMENTS_KILL_SEED` repeats the points at which a run was killed.
"""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path

import pytest

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.artifacts import load_contract
from payments_core_http.cli.child_processes import ChildProcess
from tests.chains.evm.deployed import batched
from tests.chains.evm.nodes import OWNER, PAYER, STRANGER, Node
from tests.chains.evm.watched import (
    Watched,
    assert_each_is_looked_at_by_one_job,
    has_been_found,
    to_be_found,
    watch,
)
from tests.service.world import USDC

ADDRESSES = 20
BLOCKS = 400
KILLS = 8
FOUND = BLOCKS // 5
"""So many transfers there are at least to be found, each by a commit of its own."""

LIFE_S = 60.0
"""A life takes about a second."""


@pytest.mark.slow
def test_kill_9_of_a_scan_misses_no_transfer_and_counts_none_twice(
    own_node: Node, tmp_path: Path
) -> None:
    seed = int(os.environ.get("PAYMENTS_KILL_SEED") or random.randrange(2**32))
    print(f"PAYMENTS_KILL_SEED={seed}")
    chance = random.Random(seed)
    watched = watch(tmp_path, own_node, ADDRESSES)
    live(tmp_path, own_node, chance, 0)  # begins where the chain is now
    make_blocks(own_node, watched, chance)
    points = sorted(chance.sample(range(1, FOUND), KILLS))
    for before, point in pairwise([0, *points]):
        live(tmp_path, own_node, chance, point - before)
    live(tmp_path, own_node, chance, 0)
    expected = to_be_found(own_node, watched)
    assert len(expected) >= FOUND
    assert has_been_found(tmp_path) == expected
    assert_each_is_looked_at_by_one_job(tmp_path)


def make_blocks(node: Node, watched: Watched, chance: random.Random) -> None:
    """Blocks with a transfer here and there, to some of the addresses or to a stranger."""
    batch = node.create(load_contract("Batch").creation)
    node.do(PAYER, USDC.address, calls.transfer(batch, 10**9))
    for _ in range(BLOCKS // 3):  # one transfer in each on average, so more than FOUND
        first, second = chance.sample(watched.addresses, 2)
        what = chance.choice(("one", "one", "nothing", "two", "a stranger's"))
        if what == "two":
            both = [(USDC.address, calls.transfer(to, 7)) for to in (first, second)]
            node.do(STRANGER, batch, batched(*both))
        else:
            to = OWNER if what == "a stranger's" else first
            amount = 0 if what == "nothing" else 1_000_000
            node.do(PAYER, USDC.address, calls.transfer(to, amount))
        node.ask("anvil_mine", hex(chance.randrange(1, 6)))


def live(folder: Path, node: Node, chance: random.Random, point: int) -> None:
    """One life, killed at that point, or with none to its end."""
    seed = chance.randrange(2**32)
    arguments = ["short_scan", str(folder), node.url, str(seed), str(point), "any"]
    victim = ChildProcess("victim", "tests.chains.evm.kill_victim", arguments)
    last = "killed_at" if point else "lived"
    try:
        victim.wait_until_ready()
        assert victim.wait_for(lambda reported: last in reported[-1], LIFE_S), victim.read_errors()
        victim.wait_for(lambda reported: False, LIFE_S)  # a signal on its way out would end it
    finally:
        code = victim.end()
    assert code == (-9 if point else 0)
