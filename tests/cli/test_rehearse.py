"""`payments rehearse` on a real node that looks like a rollup's testnet."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from payments_core.chains.evm import abi
from payments_core_http.cli.rehearse.steps import STEPS
from tests.chains.evm.nodes import ADMIN, MNEMONIC_KEYS, PAYER
from tests.cli.local_testnet import KEY, MILLION, USDC, LocalTestnet, local_testnet, write_key
from tests.cli.nodes import require_anvil

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "rehearse-on-a-testnet.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
BLOCK_S, BLOCKS_OF_AN_EPOCH = 2, 4
"""Of the page's local node: a block is final with two epochs on top of it."""

NAMES = [step.name for step in STEPS]
KILLED_AT = ("contracts", "gas", "create", "pay", "accept", "refund", "deposit", "sweep", "send")
WALLET_SENDS = ("contracts", "operator", "gas", "pay", "deposit")


def read_places(testnet: LocalTestnet) -> dict[str, str]:
    """The addresses of the rehearsal, by their names in its file."""
    saved = json.loads((testnet.folder / "rehearsal-84532.json").read_text())
    return {name: saved[name] for name in ("wallet", "escrow", "vault", "depositAddress")}


def run(testnet: LocalTestnet) -> str:
    """Run it, where it must fail: what it has printed."""
    process = testnet.popen("--amount", "2.00")
    out, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    return out + told


def run_until(
    testnet: LocalTestnet, step: str, delay_s: float, number: signal.Signals = signal.SIGKILL
) -> str:
    """Run it until it announces a step, and a moment longer; then end it. What it has printed."""
    process = testnet.popen("--amount", "2.00")
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.startswith(f"{step}:"):
            break
    time.sleep(delay_s)  # so that the kills are at other places of a step
    process.send_signal(number)
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
def test_a_wallet_that_is_not_the_admin_says_what_the_admin_must_send(tmp_path: Path) -> None:
    with local_testnet(tmp_path, block_time_s=1, epoch_blocks=1) as testnet:
        write_key(tmp_path / "wallet.key", MNEMONIC_KEYS[4])
        poor = run(testnet)
        assert f"{PAYER} has 0.00 USDC: send it 2.00 on Base Sepolia" in poor
        testnet.send_as_admin(USDC, abi.MINT.call(PAYER, 2 * MILLION))
        asked = re.search(
            rf"the admin {ADMIN} must allow the operator 0x\w{{40}}: "
            r"have it send to (0x\w{40}) the data 0x(\w+)\.",
            run(testnet),
        )
        assert asked is not None
        testnet.send_as_admin(asked[1], bytes.fromhex(asked[2]))
        assert "did not end. Its tokens are now:" in run_until(testnet, "pay", 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_where_the_tokens_are(tmp_path: Path, number: signal.Signals) -> None:
    with local_testnet(tmp_path, block_time_s=1, epoch_blocks=1) as testnet:
        told = run_until(testnet, "accept", 0.5, number)
        assert "The step `accept` did not end: it was interrupted." in told
        escrow = read_places(testnet)["escrow"]
        assert f"  2.00 USDC at the escrow {escrow}" in told
        assert testnet.count_tokens(escrow) == 2 * MILLION


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


@pytest.mark.slow
@pytest.mark.timeout(560)
def test_the_page_leads_from_an_empty_folder_to_three_rehearsals(tmp_path: Path) -> None:
    """A partner's walk on the page alone, on nodes with the testnet's id, pace and late finality.

    It proves that a testnet, a token and a chain need no code; that a small Payment is accepted
    within 15 s of its transfer under a depth; and that a larger one waits for a final block.
    """
    require_anvil()
    script = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    for port in ("8545", "8546"):
        script = script.replace(f"127.0.0.1:{port}", f"127.0.0.1:{(free := find_free_port())}")
        script = re.sub(
            rf"^(python3 local_testnet\.py \d+) {port}", rf"\1 {free}", script, flags=re.M
        )
    output = tmp_path / "said"  # a pipe would be held by the nodes, also if the walk has failed
    with output.open("w") as said_to:
        walk = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=said_to,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        walk.wait(timeout=520)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(walk.pid, signal.SIGTERM)  # the nodes
    said = output.read_text()
    assert walk.returncode == 0, said
    small, large, own = (
        json.loads((tmp_path / name).read_text())
        for name in ("rehearsal-84532.json", "eurc.json", "rehearsal-77.json")
    )
    assert small["isDone"] and large["isDone"] and own["isDone"]
    assert (large["asset"], own["asset"]) == ("84532/EURC", "77/USDC")
    assert measure_acceptance_s(small) < 15
    assert measure_acceptance_s(large) > 2 * BLOCKS_OF_AN_EPOCH * BLOCK_S
    assert "FAULT" not in said


def measure_acceptance_s(rehearsal: dict[str, Any]) -> float:
    """The seconds from when the wallet began to pay until the Payment was accepted."""
    steps = rehearsal["steps"]
    return (steps["accept"]["endedAtMs"] - steps["pay"]["beganAtMs"]) / 1_000


def find_free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
