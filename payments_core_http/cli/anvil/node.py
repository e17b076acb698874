"""The real node of `payments sandbox --anvil`: its start, its blocks, its file, and its end.

Anvil holds its chain in memory. The folder has a copy of it, which is written when the chain has
changed and a few seconds have passed, and at the end; the keeper of the process writes it at the
end, also if the sandbox was killed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.port import Block, ChainUnavailable, SignerRefused
from payments_core.chains.scanner import ScanCursor
from payments_core.clock import Instant
from payments_core.networks import DEFAULT_CHAIN_ID
from payments_core.storage.port import DIRECTORY, Storage
from payments_core_http.cli.anvil.chain import FINALITY_BLOCKS, MAX_BLOCKS_PER_ADVANCE, AnvilChain
from payments_core_http.cli.anvil.process import AnvilProcess
from payments_core_http.cli.data_folder import MODE, DataFolder, FolderRefused

CHAIN_ID = DEFAULT_CHAIN_ID
TICK_INTERVAL_S = 1.0
SAVE_INTERVAL_S = 5.0

_log = logging.getLogger(__name__)


@attrs.frozen
class AnvilNode:
    """A running node, with its chain."""

    url: str
    chain: AnvilChain
    _process: AnvilProcess
    _folder: DataFolder

    def require_same_chain(self, storage: Storage) -> None:
        """Raise FolderRefused if the chain is not the one that the database refers to.

        A few blocks may be missing: what was not final is then undone, as by a reorg.
        """
        cursor = storage.read(
            DIRECTORY, lambda snapshot: snapshot.get(ScanCursor, f"{MODE}:{CHAIN_ID}")
        )
        if cursor is None:
            return
        latest = self.chain.peek_heads().latest.number
        # Not the first block: anvil makes a new one at each start, and confuses it with the old.
        known = [Block(*seen) for seen in cursor.ring if 0 < seen[0] <= latest]
        if latest < cursor.tip - FINALITY_BLOCKS + 1:
            why = f"ends at block {latest}, but the database knows block {cursor.tip}"
        elif known and not any(block.is_same(self.chain.block(block.number)) for block in known):
            why = "does not have the blocks that the database refers to"
        else:
            return
        raise FolderRefused(
            f"The chain in {self._folder.chain_state} {why}, so final payments are missing "
            "from it. Start over in another folder with --data, or restore a copy of the whole "
            "folder."
        )

    def prepare(self, environment_id: str, now: Instant) -> None:
        """Prepare all that the environment needs, below so many blocks that no reorg undoes it.

        Of these blocks the node also knows the balances; a chain that was read from its file has
        lost those of earlier blocks. They are stamped by the sandbox's clock, which is at `now`.
        Raises ChainUnavailable.
        """
        self.chain.set_time(now)
        self.chain.prepare_node()
        self.chain.open_environment(environment_id)
        self.chain.mine(MAX_BLOCKS_PER_ADVANCE)

    @contextmanager
    def keep_ticking(self) -> Iterator[None]:
        """Add blocks to the chain, and update its file, during the block."""
        ending = threading.Event()
        thread = threading.Thread(target=self._run_ticks, args=(ending,), name="anvil", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def _run_ticks(self, ending: threading.Event) -> None:
        copied, copied_at = "", 0.0
        while not ending.wait(TICK_INTERVAL_S):
            try:
                newest = self.chain.mine_if_needed().latest.hash
                if newest != copied and time.monotonic() >= copied_at + SAVE_INTERVAL_S:
                    self._folder.save_chain(self.chain.dump_state())
                    copied, copied_at = newest, time.monotonic()
            except ChainUnavailable:
                if self._process.has_ended:
                    _log.error(
                        "anvil has stopped; operations on the chain wait or fail: "
                        "stop this sandbox and start it again"
                    )
                    return
            except OSError as error:  # the disk is full, for example; the next second tries again
                _log.error("cannot write %s: %s", self._folder.chain_state, error.strerror)


@contextmanager
def run_anvil(folder: DataFolder) -> Iterator[AnvilNode]:
    """A node on the folder's chain, which ends with the block. Raises FolderRefused,
    AnvilUnavailable."""
    try:
        signer = LocalSigner.open(folder.operator_key)
    except SignerRefused as refusal:
        raise FolderRefused(f"{refusal}.") from refusal
    if folder.chain_state.exists() and not folder.chain_state.read_bytes().endswith(b"}"):
        raise FolderRefused(
            f"{folder.chain_state} is incomplete: anvil was stopped while writing it. "
            "Start over in another folder with --data, or restore a copy of the whole folder."
        )
    with AnvilProcess(chain_id=CHAIN_ID, state=folder.chain_state) as process:
        chain = AnvilChain(process.url, CHAIN_ID, signer)
        yield AnvilNode(process.url, chain, process, folder)
