"""The checks of `payments doctor` on one chain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from payments_core.chains.loader import BeginsOnSight, Checkable, ReportsGas
from payments_core.chains.port import Chain, ChainError, ChainMismatch, Heads
from payments_core.clock import HOUR, MINUTE, Instant, SystemClock
from payments_core.networks import Asset
from payments_core_http.deployment.findings import Finding, Level

FEW_TRANSFERS = 50
"""A sender with coins for fewer is reported: somebody must send more before they are used up."""


STALE_MS = 10 * MINUTE
"""Every chain of the registry adds a block within seconds."""

NOT_FINAL_MS = 2 * HOUR
"""Blocks are final within 30 minutes on every chain of the registry."""

_SYSTEM_TIME = SystemClock().now


def check_chain(
    number: int,
    chain: Chain,
    senders: Collection[str] = (),
    *,
    tokens: Sequence[Asset] = (),
    now: Callable[[], Instant] = _SYSTEM_TIME,
) -> Iterator[Finding]:
    """Whether nodes answer, follow the chain, can read the state of final blocks, and senders can
    pay for gas.

    `senders` are the addresses that send on this chain, and `tokens` its tokens.
    """
    name = f"chain {number}"
    try:
        if isinstance(chain, Checkable):
            chain.check()
        # A diagnosis changes nothing: no start is stored, no requested failure is used up.
        heads = chain.find_heads() if isinstance(chain, BeginsOnSight) else chain.heads()
    except ChainMismatch as error:
        remedy = f"correct chains.{number}: docs/how-to/serve-an-evm-chain.md"
        yield Finding(name, "fault", str(error), remedy)
        return
    except ChainError as error:
        remedy = (
            "its Payments wait, and no funds are lost; are the nodes reachable from this machine?"
        )
        yield Finding(name, "fault", f"does not answer: {error}", remedy)
        return
    if heads is None:
        yield Finding(name, "ok", "not scanned yet: no worker has read it")
        return
    behind = heads.latest.number - heads.final.number
    yield Finding(name, "ok", f"latest block {heads.latest.number}, final block {behind} behind it")
    if not isinstance(chain, BeginsOnSight):
        yield from _check_ages(name, heads, now())
    if isinstance(chain, Checkable):
        yield from _check_final_state(number, chain, tokens)
    if isinstance(chain, ReportsGas):
        yield from _check_gas(name, chain, senders)


def _check_ages(name: str, heads: Heads, now: Instant) -> Iterator[Finding]:
    """A node that has stopped to follow its chain still answers, and says that it is in sync."""
    for which, block, limit_ms in (
        ("latest", heads.latest, STALE_MS),
        ("final", heads.final, NOT_FINAL_MS),
    ):
        age_ms = 0 if block.time is None else now - block.time
        if age_ms > limit_ms:
            says = f"its {which} block {block.number} is {age_ms // MINUTE} minutes old"
            remedy = "compare it with another node or an explorer: this node or the chain stands"
            yield Finding(name, "fault", says, remedy)


def _check_final_state(number: int, chain: Chain, tokens: Sequence[Asset]) -> Iterator[Finding]:
    """Balances and authorizations are read at the newest final block: nodes must keep its state."""
    for token in tokens[:1]:
        try:
            chain.balances(token.address, [token.address])
        except ChainError as error:
            says = f"the state of the final block cannot be read: {error}"
            remedy = "use nodes that keep the state of final blocks: docs/reference/finality.md"
            yield Finding(f"chain {number}", "fault", says, remedy)


def _check_gas(name: str, chain: ReportsGas, senders: Collection[str]) -> Iterator[Finding]:
    try:
        affordable = chain.count_affordable_transfers(senders)
    except ChainError as error:
        says = f"the coins of the senders cannot be read: {error}"
        yield Finding(name, "warning", says, "are the nodes reachable from this machine?")
        return
    for sender, transfers in affordable.items():
        says = f"the sender {sender} has coins for the fees of about {transfers} transfers"
        if transfers >= FEW_TRANSFERS:
            yield Finding(name, "ok", says)
            continue
        level: Level = "warning" if transfers else "fault"
        yield Finding(name, level, says, "send coins of the chain to it: transfers wait until then")
