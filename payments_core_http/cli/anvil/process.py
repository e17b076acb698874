"""A real EVM node on this machine: finds or installs anvil, starts it and ends it.

For `payments sandbox --anvil` and for tests; no deployment with real money uses it. Anvil is
installed from npm into a cache folder of the user.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from payments_core_http.cli.anvil.npm_cache import PackageNotCached, ensure_npm_package

VERSION = "1.7.1"
PROGRAM_VARIABLE = "PAYMENTS_ANVIL"
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 15

_PLATFORMS = {
    ("Linux", "x86_64"): "anvil-linux-amd64",
    ("Linux", "aarch64"): "anvil-linux-arm64",
    ("Darwin", "x86_64"): "anvil-darwin-amd64",
    ("Darwin", "arm64"): "anvil-darwin-arm64",
}
_LISTENS = re.compile(rb"Listening on 127\.0\.0\.1:([0-9]+)\s")
_KEEPER = Path(__file__).with_name("keeper.py")


class AnvilUnavailable(Exception):
    """Why there is no anvil to start, or why it did not start."""


class AnvilProcess:
    """Anvil in its own process while the `with` block runs, or from `start` to `stop`.

    `mining=False` makes blocks only on request; `block_time_s` is the time between blocks;
    otherwise each transaction is a block. A block is safe with `epoch_blocks` on top of it, and
    finalized with twice as many. `state` is a file from which the chain is read, if it
    exists, and to which it is written at the end. The states of the last `history` blocks are kept,
    only in memory: all of them would be gigabytes in the user's home. `port=0` picks a free port;
    after a start it is the chosen port, so that a second start has the same address. However our
    process ends, anvil ends with it, and another start on the same state waits until it has ended.
    """

    def __init__(
        self,
        *,
        chain_id: int = 8453,
        block_time_s: int | None = None,
        epoch_blocks: int = 4,
        mining: bool = True,
        state: Path | None = None,
        history: int = 256,
        port: int = 0,
        options: Sequence[str] = (),
        program: Path | None = None,
    ) -> None:
        self.chain_id = chain_id
        self.port: int = port
        self.pid: int | None = None
        self._program = program
        self._state = state
        self._options = [
            *("--host", "127.0.0.1", "--chain-id", str(chain_id)),
            *("--slots-in-an-epoch", str(epoch_blocks)),
            *(() if block_time_s is None else ("--block-time", str(block_time_s))),
            *(() if mining else ("--no-mining",)),
            *(() if state is None else ("--state", str(state))),
            *("--prune-history", str(history)),
            *options,
        ]
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The node's URL for JSON-RPC."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens. Raises AnvilUnavailable."""
        program = self._program or find_anvil_program()
        with _lock_state_file(self._state) as lock:
            self._keeper = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(_KEEPER)),
                    *(str(program), "--port", str(self.port), *self._options),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us; anvil ends when we have finished
                pass_fds=lock,
                umask=0o077,  # only its owner may read what it writes
            )
        try:
            said = _read_output(self._keeper)
        except BaseException:  # Ctrl-C; a `with` whose start failed has no exit
            self.stop()
            raise
        listens = _LISTENS.search(said)
        if listens is None:
            self.stop()
            words = said.partition(b"\n")[2].decode(errors="replace").strip().splitlines()
            raise AnvilUnavailable(f"anvil did not start: {words[0] if words else 'no output'}")
        self.port = int(listens[1])
        self.pid = int(said.partition(b"\n")[0])

    def stop(self) -> None:
        """End it, and wait until it has ended; may be called again."""
        keeper, self._keeper, self.pid = self._keeper, None, None
        if keeper is None:
            return
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.close()
        keeper.stdout.close()
        try:
            keeper.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(keeper.pid, signal.SIGKILL)  # its session holds the keeper and its anvil
            keeper.wait()

    @property
    def has_ended(self) -> bool:
        """Whether it has ended without being stopped."""
        return self._keeper is not None and self._keeper.poll() is not None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@contextmanager
def _lock_state_file(state: Path | None) -> Iterator[tuple[int, ...]]:
    """The lock of a state file, for the keeper to inherit. Raises AnvilUnavailable.

    A keeper holds it until its anvil has ended: if its parent was killed, it may still be writing.
    """
    if state is None:
        yield ()
        return
    lock = os.open(state.with_name(state.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(STOP_TIMEOUT_S * 10):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                select.select([], [], [], 0.1)
        else:
            raise AnvilUnavailable(f"another anvil uses {state}")
        yield (lock,)
    finally:
        os.close(lock)


def _read_output(keeper: subprocess.Popen[bytes]) -> bytes:
    """The output until it listens or ends; less if it is silent for too long."""
    assert keeper.stdout is not None
    said = b""
    poll = select.poll()  # `select` refuses a descriptor above 1023
    poll.register(keeper.stdout, select.POLLIN)
    while poll.poll(START_TIMEOUT_S * 1_000):
        chunk = os.read(keeper.stdout.fileno(), 65_536)
        if not chunk:
            break
        said += chunk
    return said


def find_anvil_program() -> Path:
    """The path of anvil: from $PAYMENTS_ANVIL, on the PATH, or in the cache.

    If it is in none of them, it is fetched into the cache. Raises AnvilUnavailable, which names
    what is missing.
    """
    named = os.environ.get(PROGRAM_VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise AnvilUnavailable(f"{PROGRAM_VARIABLE} is not a program: {named}")
        return Path(named)
    found = shutil.which("anvil")
    if found:
        return Path(found)
    name = _PLATFORMS.get((platform.system(), platform.machine()))
    if name is None:
        raise AnvilUnavailable(
            f"npm has no anvil for {platform.system()} on {platform.machine()}; "
            f"install anvil and set {PROGRAM_VARIABLE}"
        )
    try:
        modules = ensure_npm_package("@foundry-rs/anvil", VERSION)
    except PackageNotCached as error:
        raise AnvilUnavailable(
            f"anvil was not found: {error}; set {PROGRAM_VARIABLE} to its path"
        ) from error
    program = modules / "@foundry-rs" / name / "bin" / "anvil"
    if not os.access(program, os.X_OK):
        raise AnvilUnavailable(
            f"{modules.parent} does not contain anvil; remove the folder to install it again"
        )
    return program
