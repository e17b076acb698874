"""A backup of a storage in memory, restored while the chain continues as it was."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import Any

from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.port import ChainUnavailable, SignedTransaction, TransferIntent
from payments_core.storage.maintenance import scan_all
from payments_core.storage.port import SIMULATED
from tests.chains.scenes import Scene
from tests.service.faults import Crashed, FaultyChain
from tests.service.world import BASE


class Backup:
    """Everything that is stored, except the chain."""

    def __init__(self, world: Scene) -> None:
        storage: Any = world.storage
        self._tables = copy.deepcopy(_without_chain(storage._tables))
        self._uniques = copy.deepcopy(_without_chain(storage._uniques))

    def restore(self, world: Scene) -> None:
        """Put it back; other processes go on with it."""
        storage: Any = world.storage
        tables = defaultdict(dict, {k: v for k, v in storage._tables.items() if k[0] == SIMULATED})
        uniques = {k: v for k, v in storage._uniques.items() if k[0] == SIMULATED}
        storage._tables = defaultdict(dict, {**copy.deepcopy(self._tables), **tables})
        storage._uniques = {**copy.deepcopy(self._uniques), **uniques}
        world.service = world.restarted()


class Unsigned(FaultyChain):
    """A chain whose signer does not answer."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, 0, lambda call: call())

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        raise ChainUnavailable("the signer is away")


class Unsent(FaultyChain):
    """A chain on which the process dies before it sends."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, 0, lambda call: call())

    def broadcast(self, signed: SignedTransaction) -> None:
        raise Crashed


def look_through(world: Scene, chain: FaultyChain) -> None:
    """Have another process in place of the one before, which sees the chain in this way."""
    world.service = world.restarted(chains={BASE: chain})


def transfers(world: Scene) -> list[OutboundTransfer]:
    """All transfers of ours, the oldest first."""
    rows = (one.record for one in scan_all(world.storage, OutboundTransfer))
    return sorted(rows, key=lambda row: (row.created_at_ms, row.id))


def _without_chain(rows: Any) -> dict[Any, Any]:
    return {key: value for key, value in rows.items() if key[0] != SIMULATED}
