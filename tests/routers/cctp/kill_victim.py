"""Processes of the router for test_kills, which kill themselves between any two calls of its ports.

Usage: python -m tests.routers.cctp.kill_victim SOURCE_URL DESTINATION_URL SERVICE_URL

Each line of the standard input is a life: `POINT KEY PAYMENT FOLDER`. The process forks, and the
child looks at the order, while blocks come, until it is delivered; before its POINT-th call of a
port it kills itself (SIGKILL), and 0 is never. The answer is a line: `killed NAME`, the call before
which it was, or `lived CALLS`. This process has no threads, so that a fork of it is whole.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from payments_core.clock import FixedClock
from payments_core.record_types import RECORD_TYPES
from payments_core.routers.cctp.attestations import AttestationService
from payments_core.routers.cctp.forwarders import IS_SPENT, OFFER_PAYMENT, forwarders
from payments_core.routers.cctp.line import KEY_NAME
from payments_core.routers.cctp.router import CctpRouter
from payments_core.routers.port import RouterUnavailable
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.chains.evm.nodes import Node
from tests.routers.cctp.world import DESTINATION, SIGNER, SOURCE, open_chain

FATAL = ("transact", "prepare_call", "broadcast", "find_messages", "find_logs")
"""Between two of these calls nothing changes that the next process could see."""

LOOKS = 60
BLOCKS = 12


class Fate:
    """Counts the calls of ports, and ends the process before one of them."""

    def __init__(self, point: int, report: Callable[[str], None]) -> None:
        self._point = point
        self._report = report
        self.count = 0

    def meet(self, name: str) -> None:
        """One more call; none comes back from the last."""
        self.count += 1
        if self.count == self._point:
            self._report(f"killed {name}")
            os.kill(os.getpid(), signal.SIGKILL)


class Counted:
    """Any port, with its calls counted; so are those of a caller that it opens."""

    def __init__(self, inner: Any, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "open_caller":
            return lambda key_name: Counted(found(key_name), self._fate)
        if name not in FATAL:
            return found

        def counted(*arguments: Any, **more: Any) -> Any:
            self._fate.meet(name)
            return found(*arguments, **more)

        return counted


def live(urls: dict[int, str], service: str, line: str, out: int) -> None:
    """One life of the router, which looks at one order."""

    def report(text: str) -> None:
        os.write(out, f"{text}\n".encode())

    point, key, payment, folder = line.split(maxsplit=3)
    fate = Fate(int(point), report)
    chains = {number: Counted(open_chain(number, url), fate) for number, url in urls.items()}
    router = CctpRouter(
        Counted(AttestationService(service), fate),
        chains,
        Counted(SqliteStorage(Path(folder.strip()) / "data.db", RECORD_TYPES), fate),
        clock=FixedClock(),
    )
    nodes = [Node(url) for url in urls.values()]
    for _ in range(LOOKS):
        try:
            progress = (
                router.follow_offer(key)
                if payment == OFFER_PAYMENT
                else router.deliver(key, payment)
            )
        except RouterUnavailable:
            continue
        finally:
            for node in nodes:
                node.ask("anvil_mine", hex(BLOCKS))
        if progress.state == "delivered":
            report(f"lived {fate.count}")
            return
    report("lost")


def main() -> None:
    """Live as often as is asked."""
    source, destination, service = sys.argv[1:]
    urls = {SOURCE: source, DESTINATION: destination}
    SIGNER.sign(KEY_NAME, bytes(32))  # what is only loaded at its first use, before the forks
    for contracts in (forwarders().address, forwarders().implementation):
        IS_SPENT.call(contracts, bytes(32))
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                live(urls, service, line, sys.stdout.fileno())
            finally:
                os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
