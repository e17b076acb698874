"""The books of the simulated chains, as rows of the `simulated` partition (contract §11).

They are in the same storage as everything else, so that a restart, or a second process, sees the
same chain. To the rest of the service they are the outside world: no transaction spans both.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen(kw_only=True, slots=False)
class SimulatedTime(Record):
    """How far the sandbox's clock runs ahead of the real one; it only grows."""

    collection: ClassVar[Collection] = Collection("simulated_time")

    ahead_ms: int = 0


@attrs.frozen(kw_only=True)
class AddedBlocks:
    """Blocks that came at once, beside those of each second: `first` to `last`, at `at`.

    `extra_before` is the chain's `extra_blocks` before them.
    """

    first: int
    last: int
    at: Instant
    extra_before: int


@attrs.frozen(kw_only=True, slots=False)
class SimulatedChainState(Record):
    """A chain's beginning, and the blocks added to one for every second.

    `added` are the newest of these, by which the blocks have their times. `forks` lists (first
    block, nonce), ascending: from its first block on, a fork's nonce is in the hashes, up to the
    first block of the next one.
    """

    collection: ClassVar[Collection] = Collection("simulated_chains", schema=3)

    began_at_ms: Instant
    extra_blocks: int = 0
    highest: int = 0
    added: tuple[AddedBlocks, ...] = ()
    forks: tuple[tuple[int, str], ...] = ()

    began_at: ClassVar[FieldView[datetime]] = instant_view("began_at_ms")


@attrs.frozen(kw_only=True)
class SimulatedLog:
    """A transfer of a simulated transaction."""

    token_address: str
    sender: str
    recipient: str
    amount_atomic: Atomic = attrs.field(converter=atomic)


@attrs.frozen(kw_only=True, slots=False)
class SimulatedTransaction(Record):
    """A transaction in its block; the id is `chainId:hash`.

    `log_index` is the place in the block of its first log, `included_at` the block's time; a row of
    an earlier release has none. `sender` and `slot` are given if
    it was signed: what a reorg drops may then be sent again, in its slot.
    """

    collection: ClassVar[Collection] = Collection(
        "simulated_transactions",
        columns={"chain_id": int, "block_number": int, "log_index": int},
        indexes=(Index("by_block", key=("chain_id",), order=("block_number", "log_index")),),
        schema=3,
    )

    chain_id: int
    hash: str
    block_number: int
    included_at_ms: Instant | None = None
    log_index: int = 0
    succeeded: bool
    logs: tuple[SimulatedLog, ...]
    sender: str | None = None
    slot: int | None = None

    included_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("included_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class SimulatedSender(Record):
    """The next slot (nonce) of a sender; the id is `chainId:address`.

    `coins` are for how many more transactions it has coins of the chain; None: for any number.
    """

    collection: ClassVar[Collection] = Collection("simulated_senders", schema=2)

    next_slot: int = 0
    coins: int | None = None


@attrs.frozen(kw_only=True, slots=False)
class SimulatedBalance(Record):
    """A holder's tokens at the newest block; the id is `chainId:token:holder`.

    `recent` lists (block, change) for the blocks that may not be final, so that the balance at
    the final block is known.
    """

    collection: ClassVar[Collection] = Collection("simulated_balances", schema=2)

    total_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    recent: tuple[tuple[int, Atomic], ...] = ()


@attrs.frozen(kw_only=True, slots=False)
class SimulatedModule(Record):
    """The transactions that put a role module in place; the id is `chainId:vault:module`."""

    collection: ClassVar[Collection] = Collection("simulated_modules")

    deployed_by: str | None = None
    enabled_by: str | None = None


@attrs.frozen(kw_only=True, slots=False)
class SimulatedReorg(Record):
    """A reorganisation that took place; the id is `chainId:name`, and a name takes place once.

    `included_in` is the block that took the dropped transactions back, if one did.
    """

    collection: ClassVar[Collection] = Collection("simulated_reorgs")

    chain_id: int
    first_block: int
    last_block: int
    dropped: int
    included_in: int | None = None
