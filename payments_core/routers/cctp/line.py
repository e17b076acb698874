"""Sends the router's calls on one chain, in a line of nonces that all processes share.

The outbox is not used: it sends an environment's transfers exactly once. A call here may be made
twice, since the contracts let its effect happen once: the second reverts, and costs gas alone. So
a line only sees to it that no nonce blocks those after it: what is signed is stored before it is
sent, what no node knows is sent again, and what waits for long gets higher fees.
"""

from __future__ import annotations

from typing import Protocol

from payments_core.chains.gas import ReportsGas
from payments_core.chains.port import (
    CallsContracts,
    Chain,
    ChainUnavailable,
    ContractCaller,
    SignedTransaction,
)
from payments_core.clock import Clock
from payments_core.evolve import evolve
from payments_core.routers.cctp.books import Books
from payments_core.routers.cctp.records import CctpLine, LiveCall
from payments_core.storage.port import Conflict

KEY_NAME = "cctp_router"
"""The router's key at the signer. It is no environment's: it can move nothing of them."""

MAX_LIVE = 16
"""The number of calls that wait for a block at once; nodes keep at least so many of one sender."""

_ATTEMPTS = 3


class RoutedChain(Chain, CallsContracts, Protocol):
    """A chain that the router can use: strangers' contracts can be called on it."""


class CallLine:
    """The calls of one chain. Threads may share it."""

    def __init__(self, chain: RoutedChain, books: Books, clock: Clock) -> None:
        self.chain = chain
        self.caller: ContractCaller = chain.open_caller(KEY_NAME)
        self._books = books
        self._clock = clock

    def send(self, subject: str, to: str, data: bytes, *, sender: str | None = None) -> bool:
        """See to it that a call is under way; False if it would fail now.

        Repeat it until the chain shows the effect. At most one call of a subject is under way.
        Raises ChainUnavailable, SignerRefused and StorageError.
        """
        sender = sender or self.caller.find_address()
        if isinstance(self.chain, ReportsGas):
            self.chain.follow_senders([sender])
        id = f"{self.chain.chain_id}:{sender}"
        for _ in range(_ATTEMPTS):
            line = self._books.find(CctpLine, id) or CctpLine(id=id)
            mined = self.caller.count_mined(sender)
            live = tuple(call for call in line.calls if call.nonce >= mined)
            try:
                if any(call.subject == subject for call in live) or len(live) >= MAX_LIVE:
                    self._push(evolve(line, calls=live), subject)
                    return True
                nonce = _next_nonce(live, mined)
                signed = self.caller.prepare_call(sender, nonce, to, data)
                if signed is None:
                    return False
                made = self._live_call(nonce, subject, signed)
                self._store(evolve(line, calls=(*live, made)))
            except Conflict:
                continue  # another process changed the line: look at it again
            self.chain.broadcast(signed)
            return True
        raise ChainUnavailable(f"chain {self.chain.chain_id}: others use the router's line")

    def _push(self, line: CctpLine, subject: str) -> None:
        """Bring the subject's call forward, and the first of the line, which may block it."""
        first = min(line.calls, key=lambda call: call.nonce)
        for call in dict.fromkeys(
            (first, *(call for call in line.calls if call.subject == subject))
        ):
            view = self.chain.transaction(call.hash)
            if view is None:
                self.chain.broadcast(SignedTransaction(call.hash, bytes.fromhex(call.raw)))
            elif view.block is None and self._is_stuck(call):
                line = self._bump(line, call)

    def _is_stuck(self, call: LiveCall) -> bool:
        after_ms = self.chain.bump_after_ms
        return after_ms is not None and self._clock.now() - call.signed_at_ms >= after_ms

    def _bump(self, line: CctpLine, call: LiveCall) -> CctpLine:
        before = SignedTransaction(call.hash, bytes.fromhex(call.raw))
        signed = self.chain.bump(KEY_NAME, before)
        if signed is None:
            return line
        raised = self._live_call(call.nonce, call.subject, signed)
        calls = tuple(raised if one == call else one for one in line.calls)
        line = self._store(evolve(line, calls=calls))
        self.chain.broadcast(signed)
        return line

    def _store(self, line: CctpLine) -> CctpLine:
        if line.version:
            return self._books.save(line)
        stored = self._books.add(line)
        if stored.calls != line.calls:
            raise Conflict("another process began the line")
        return stored

    def _live_call(self, nonce: int, subject: str, signed: SignedTransaction) -> LiveCall:
        return LiveCall(
            nonce=nonce,
            subject=subject,
            hash=signed.hash,
            raw=signed.raw.hex(),
            signed_at_ms=self._clock.now(),
        )


def _next_nonce(live: tuple[LiveCall, ...], mined: int) -> int:
    """The lowest nonce that no call has: a reorg may leave a gap, which blocks all after it."""
    taken = {call.nonce for call in live}
    nonce = mined
    while nonce in taken:
        nonce += 1
    return nonce
