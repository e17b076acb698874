"""`payments rehearse` on a real node that looks like a rollup's testnet."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from payments_core_http.cli.rehearse.steps import STEPS
from tests.chains.evm.nodes import ADMIN
from tests.cli.local_testnet import KEY, MILLION, LocalTestnet, local_testnet

NAMES = [step.name for step in STEPS]
KILLED_AT = ("contracts", "gas", "create", "pay", "accept", "refund", "deposit", "sweep", "send")
WALLET_SENDS = ("contracts", "operator", "gas", "pay", "deposit")


def read_places(testnet: LocalTestnet) -> dict[str, str]:
    """The addresses of the rehearsal, by their names in its file."""
    saved = json.loads((testnet.folder / "rehearsal-84532.json").read_text())
    return {name: saved[name] for name in ("wallet", "escrow", "vault", "depositAddress")}


def run_until(testnet: LocalTestnet, step: str, delay_s: float) -> str:
    """Run it until it announces a step, and a moment longer; then kill it. What it has told."""
    process = testnet.popen("--amount", "2.00")
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.startswith(f"{step}:"):
            break
    time.sleep(delay_s)  # so that the kills are at other places of a step
    process.kill()
    out, rest = process.communicate()
    return "".join(told) + rest + out


def finish(testnet: LocalTestnet) -> tuple[list[dict[str, Any]], str]:
    """Run it to its end: the rows, and all that it has printed."""
    done = subprocess.run(
        testnet.command("--json", "--amount", "2.00"),
        cwd=testnet.folder,
        env=testnet.environ,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_rehearsal_that_is_killed_at_each_step_goes_on_and_moves_nothing_twice(
    tmp_path: Path,
) -> None:
    with local_testnet(tmp_path, block_time_s=1, epoch_blocks=1) as testnet:
        told = [
            run_until(testnet, step, delay_s=0.3 * (place % 4))
            for place, step in enumerate(KILLED_AT)
        ]
        rows, last = finish(testnet)
        told.append(last)
        for text in told[1:]:
            assert "did not end. Its tokens are now:" in text, text
            assert f"USDC at the wallet {ADMIN}" in text
            assert "it goes on from rehearsal-84532.json" in text
        assert [row["step"] for row in rows] == [*NAMES, "total"]
        assert all(row["wei"] is not None for row in rows)
        # The wallet has sent each of its transactions once, and has its tokens again.
        assert testnet.node.ask("eth_getTransactionCount", ADMIN, "latest") == hex(
            1 + len(WALLET_SENDS)  # the first one has minted
        )
        places = read_places(testnet)
        assert [testnet.count_tokens(address) for address in places.values()] == [
            100 * MILLION, 0, 0, 0,
        ]  # fmt: skip
        saved = (tmp_path / "rehearsal-84532.json").read_text()
        assert KEY not in "".join([*told, saved])
        assert KEY.upper() not in "".join([*told, saved]).upper()

        again, _ = finish(testnet)  # and it may be played again, as a new one
        assert [row["step"] for row in again] == [*NAMES, "total"]
        assert not any(row.get("wasPaused") for row in again)
        assert read_places(testnet)["escrow"] != places["escrow"]
        assert testnet.count_tokens(ADMIN) == 100 * MILLION
