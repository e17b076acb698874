"""Role modules on a simulated chain: which steps are in place, and which revert.

There are no contracts. A step is in place while its transaction is in the chain, so that a reorg
undoes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from payments_core.addresses import encode_checksum_address
from payments_core.chains.port import ModuleIntent
from payments_core.chains.role_modules import ModuleState
from payments_core.chains.simulated.records import SimulatedModule, SimulatedTransaction
from payments_core.chains.simulated.transfers import insert_or_replace
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Transaction


def module_address(environment_id: str, avatar: str, tokens: tuple[str, ...]) -> str:
    """The address of a vault's role module for those tokens, in any order."""
    seed = "/".join((environment_id, avatar, *sorted(tokens)))
    return encode_checksum_address(hashlib.sha256(f"module/{seed}".encode()).digest()[:20])


def load_module(snapshot: Snapshot, chain_id: int, avatar: str, module: str) -> ModuleState:
    """The state of a module."""
    row = snapshot.get(SimulatedModule, _module_id(chain_id, avatar, module))
    return _state_of(row, lambda hash: snapshot.get(SimulatedTransaction, f"{chain_id}:{hash}"))


def decide_step(tx: Transaction, chain_id: int, step: ModuleIntent, hash: str) -> Decision[bool]:
    """Whether a step succeeds, with its mark: a module is deployed once, and a nonce used once.

    The chain must be locked.
    """
    id = _module_id(chain_id, step.avatar, step.module)
    row = tx.get(SimulatedModule, id, for_update=True)
    state = _state_of(
        row, lambda hash: tx.get(SimulatedTransaction, f"{chain_id}:{hash}", for_update=True)
    )
    known = row or SimulatedModule(id=id)
    if step.signature is None:
        refused, done = state.is_deployed, evolve(known, deployed_by=hash)
    else:
        refused, done = step.nonce != state.nonce, evolve(known, enabled_by=hash)
    return Decision(False) if refused else Decision(True).merge(insert_or_replace(done))


def _state_of(
    row: SimulatedModule | None, load: Callable[[str], SimulatedTransaction | None]
) -> ModuleState:
    """The state by the marks: a reorg may have dropped a transaction, and it may have reverted
    since.

    If the module is enabled, the owner has signed once.
    """
    marks = (row.deployed_by, row.enabled_by) if row else (None, None)
    found = [load(hash) if hash is not None else None for hash in marks]
    deployed, enabled = (it is not None and it.succeeded for it in found)
    return ModuleState(int(enabled), None, deployed, enabled, is_simulated=True)


def _module_id(chain_id: int, avatar: str, module: str) -> str:
    return f"{chain_id}:{avatar}:{module}"
