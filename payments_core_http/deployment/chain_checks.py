"""The checks of `payments doctor` on one chain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from payments_core.chains.gas import FEW_TRANSFERS, ReportsGas
from payments_core.chains.loader import (
    BeginsOnSight,
    Checkable,
    ChecksNodes,
    NodeCheck,
)
from payments_core.chains.port import Chain, ChainError, ChainMismatch, Heads
from payments_core.clock import HOUR, MINUTE, Instant, SystemClock
from payments_core.networks import Asset
from payments_core_http.deployment.findings import Finding, Level

STALE_MS = 10 * MINUTE
"""Every chain of the registry adds a block within seconds."""

NOT_FINAL_MS = 2 * HOUR
"""Blocks are final within 30 minutes on every chain of the registry."""

SYSTEM_TIME = SystemClock().now


def list_node_checks(
    number: int, chain: Chain, now: Callable[[], Instant] = SYSTEM_TIME
) -> Iterator[Finding]:
    """What each node of a chain can do: a line for each requirement, as it is checked."""
    if isinstance(chain, ChecksNodes):
        for check in chain.check_nodes(now()):
            yield _report_node(number, check, "fault" if check.is_fault else "warning")


def check_nodes(number: int, chain: Chain, now: Callable[[], Instant]) -> Iterator[Finding]:
    """Whether each node of a chain is fit: a line for each, or for all that is wrong with it.

    While more than half of the nodes are fit the others are warnings: Payments work.
    """
    if not isinstance(chain, ChecksNodes):
        return
    by_node: dict[str, list[NodeCheck]] = {}
    for check in chain.check_nodes(now()):
        by_node.setdefault(check.node, []).append(check)
    fit = [node for node, checks in by_node.items() if not any(map(_is_fault, checks))]
    level: Level = "warning" if 2 * len(fit) > len(by_node) else "fault"
    for node, checks in by_node.items():
        wrong = [check for check in checks if not check.is_right]
        for check in wrong:
            yield _report_node(number, check, level if check.is_fault else "warning")
        if not wrong:
            says = f"{checks[0].says}; {len(checks)} checks passed"
            yield Finding(f"chain {number}, node {node}", "ok", says)


def _is_fault(check: NodeCheck) -> bool:
    return check.is_fault and not check.is_right


def _report_node(number: int, check: NodeCheck, level: Level) -> Finding:
    shown: Level = "ok" if check.is_right else level
    return Finding(f"chain {number}, node {check.node}", shown, check.says, check.remedy)


def check_chain(
    number: int,
    chain: Chain,
    senders: Collection[str] = (),
    *,
    tokens: Sequence[Asset] = (),
    now: Callable[[], Instant] = SYSTEM_TIME,
) -> Iterator[Finding]:
    """Whether nodes answer, follow the chain, can read the state of final blocks, and senders can
    pay for gas.

    `senders` are the addresses that send on this chain, and `tokens` its tokens.
    """
    name = f"chain {number}"
    try:
        if isinstance(chain, Checkable):
            chain.check()
        if isinstance(chain, ReportsGas):
            chain.follow_senders(senders)  # it is read with the heads
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
    if isinstance(chain, ReportsGas) and not isinstance(chain, BeginsOnSight):
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
    affordable = chain.list_affordable()
    for sender in senders:
        transfers = affordable.get(sender)
        if transfers is None:
            says = f"the nodes do not agree on what the sender {sender} has"
            remedy = "compare it with an explorer: without coins its transfers wait"
            yield Finding(name, "warning", says, remedy)
            continue
        says = f"the sender {sender} has coins for the fees of about {transfers} transfers"
        if transfers >= FEW_TRANSFERS:
            yield Finding(name, "ok", says)
            continue
        level: Level = "warning" if transfers else "fault"
        remedy = "send coins of the chain to it: with none, its transfers wait"
        yield Finding(name, level, says, remedy)
