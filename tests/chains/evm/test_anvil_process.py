"""Anvil is found, fetched and started; and however its starter ends, it ends too."""

from __future__ import annotations

import http.client
import json
import os
import platform
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from payments_core_http.cli.anvil import npm_cache
from payments_core_http.cli.anvil.npm_cache import PackageNotCached, ensure_npm_package
from payments_core_http.cli.anvil.process import (
    PROGRAM_VARIABLE,
    AnvilProcess,
    AnvilUnavailable,
    find_anvil_program,
)
from tests.chains.evm.nodes import Node

GOES_S = 20

pytestmark = pytest.mark.usefixtures("anvil")  # which skips if there is none


def wait_until_gone(pid: int) -> None:
    """Wait for the end of a process that is not our child."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([watched], [], [], GOES_S)[0], f"{pid} is still there"
    finally:
        os.close(watched)


def test_it_serves_the_chain_that_was_asked_for_while_the_block_runs() -> None:
    with AnvilProcess(chain_id=10) as anvil:
        node = Node(anvil.url)
        assert node.ask("eth_chainId") == "0xa"
        node.close()
        pid = anvil.pid
    assert pid is not None
    assert anvil.pid is None
    wait_until_gone(pid)
    anvil.stop()  # once more is harmless


def test_a_second_start_comes_back_at_the_same_address_with_its_state(tmp_path: Path) -> None:
    anvil = AnvilProcess(state=tmp_path / "state.json", mining=False)
    with anvil:
        node = Node(anvil.url)
        node.ask("anvil_mine", "0x7")
        node.close()
    url = anvil.url
    with anvil:
        assert anvil.url == url
        node = Node(anvil.url)
        assert node.ask("eth_blockNumber") == "0x7"
        node.close()


SLOW_TO_HANDLE = """#!{python}
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path("{state}").write_text("whole")
    sys.exit()
print("Listening on 127.0.0.1:8545", flush=True)
time.sleep(0.2)
signal.signal(signal.SIGTERM, end)
signal.pause()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells handlers")
def test_one_that_is_stopped_at_once_writes_its_state(tmp_path: Path) -> None:
    program, state = tmp_path / "anvil", tmp_path / "state.json"
    program.write_text(SLOW_TO_HANDLE.format(python=sys.executable, state=state))
    program.chmod(0o700)
    with AnvilProcess(program=program):
        assert not state.exists()
    assert state.read_text() == "whole"


def test_it_answers_for_ever_though_nobody_reads_what_it_says() -> None:
    # It writes a line for each: more than a pipe holds (64 KiB).
    requests = [{"jsonrpc": "2.0", "id": id, "method": "eth_chainId"} for id in range(1_000)]
    with AnvilProcess() as anvil:
        for _ in range(8):
            connection = http.client.HTTPConnection("127.0.0.1", anvil.port, timeout=GOES_S)
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/", json.dumps(requests), headers)
            assert len(json.loads(connection.getresponse().read())) == len(requests)
            connection.close()


STARTER = """
import sys
from payments_core_http.cli.anvil.process import AnvilProcess
with AnvilProcess() as anvil:
    print(anvil.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_anvil_is_left_behind_however_its_starter_ends(number: signal.Signals) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        os.kill(pid, 0)
        starter.send_signal(number)
    wait_until_gone(pid)


def test_one_that_cannot_start_says_why() -> None:
    with pytest.raises(AnvilUnavailable, match="unexpected argument '--nonsense'"):
        AnvilProcess(options=("--nonsense",)).start()


def test_a_program_that_is_not_anvil_says_so() -> None:
    with pytest.raises(AnvilUnavailable, match="no output"):
        AnvilProcess(program=Path("/bin/true")).start()


def test_the_named_program_comes_before_every_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROGRAM_VARIABLE, "/bin/true")
    assert find_anvil_program() == Path("/bin/true")
    monkeypatch.setenv(PROGRAM_VARIABLE, "/nowhere/anvil")
    with pytest.raises(
        AnvilUnavailable, match=f"{PROGRAM_VARIABLE} is not a program: /nowhere/anvil"
    ):
        find_anvil_program()


# --- Fetching -------------------------------------------------------------------------------------

NPM = """#!/bin/sh
[ -z "$FAILS" ] || { echo "https://user:secret@registry.example" >&2; exit 1; }
/bin/mkdir -p "$3/node_modules/thing" && echo whole > "$3/node_modules/thing/file"
"""


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No anvil anywhere, and an npm that fetches from nowhere."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npm").write_text(NPM)
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv(PROGRAM_VARIABLE, raising=False)
    return npm_cache.cache_folder()


def test_many_who_fetch_at_once_all_get_the_whole_package(empty_cache: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: ensure_npm_package("@scope/thing", "1.0.0"), range(16)))
    assert set(found) == {empty_cache / "thing-1.0.0" / "node_modules"}
    assert (found[0] / "thing" / "file").read_text() == "whole\n"
    assert [path.name for path in empty_cache.iterdir()] == ["thing-1.0.0"]


def test_a_failed_fetch_leaves_nothing_and_shows_no_secret(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(PackageNotCached, match=r"npm could not install thing@1\.0\.0") as caught:
        ensure_npm_package("thing", "1.0.0")
    assert "secret" not in str(caught.value)
    assert list(empty_cache.iterdir()) == []


@pytest.mark.usefixtures("empty_cache")
def test_without_npm_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        AnvilUnavailable, match=r"npm is not installed to fetch @foundry-rs/anvil@1\.7\.1"
    ):
        find_anvil_program()


@pytest.mark.usefixtures("empty_cache")
def test_a_platform_without_an_anvil_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "m68k")
    with pytest.raises(AnvilUnavailable, match="on m68k; install anvil and set PAYMENTS_ANVIL"):
        find_anvil_program()


def test_a_package_without_the_program_is_named(empty_cache: Path) -> None:
    with pytest.raises(
        AnvilUnavailable, match="does not contain anvil; remove the folder to install it again"
    ):
        find_anvil_program()
    assert (empty_cache / "anvil-1.7.1").is_dir()
