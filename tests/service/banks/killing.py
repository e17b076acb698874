"""A bank that is a process of its own and kills the workers that call it.

At each call that it is told to it may kill (-9) the worker that calls: before it does as asked, or
after it, when no answer has left. Its books are in a file of its own; the stablecoins that it
delivers go over the sandbox's chains, which are in the service's file.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

from payments_core.banks.incoming import (
    Delivery,
    DeliveryOrder,
    IncomingTransfer,
    NoticePage,
    VirtualAccount,
)
from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import (
    BankNotice,
    BankRefused,
    BankUnavailable,
    KeyReused,
    PayoutOrder,
)
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import SECOND, FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.ports import Ports
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.storage.port import Storage, StorageUnavailable
from payments_core.storage_loader import open_storage
from tests.service.world import RING, NoTransport, World

PAYOUT_CALLS = ("submit", "find_payout")
FUNDING_CALLS = (
    "find_incoming",
    "return_incoming",
    "deliver",
    "list_incoming_notices",
    "acknowledge",
)

SECRET = b"between these processes alone"
LEASE_S = 61
STUCK_S = 3.0
"""After so long without a killed worker the clock passes the leases of those that were."""

CALL_TAKES_S = 60
"""How far the bank's own clock goes at each call: its late notices come soon."""


class RemoteBank:
    """The bank's process, as a worker reaches it."""

    max_notice_pause_ms = 2 * SECOND

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / "bank.sock")

    def submit(self, order: PayoutOrder) -> BankPayout:
        made: BankPayout = self._call("submit", order)
        return made

    def find_payout(self, key: str) -> BankPayout | None:
        found: BankPayout | None = self._call("find_payout", key)
        return found

    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        found: IncomingTransfer | None = self._call("find_incoming", incoming_id)
        return found

    def return_incoming(self, incoming_id: str, reason: str) -> IncomingTransfer:
        returned: IncomingTransfer = self._call("return_incoming", incoming_id, reason)
        return returned

    def deliver(self, order: DeliveryOrder) -> Delivery:
        delivery: Delivery = self._call("deliver", order)
        return delivery

    def list_incoming_notices(self, limit: int = 100, after: str | None = None) -> NoticePage:
        page: NoticePage = self._call("list_incoming_notices", limit, after)
        return page

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self._call("acknowledge", tuple(notice_ids))

    def list_notices(self, limit: int = 100) -> Sequence[BankNotice]:
        return ()

    def request_capability(self, request: Any) -> Any:
        raise BankUnavailable("it reviews nothing")

    def find_capability(self, key: str) -> Any:
        raise BankUnavailable("it reviews nothing")

    def register_account(self, registration: Any) -> Any:
        raise BankUnavailable("it reviews nothing")

    def find_account(self, key: str) -> Any:
        raise BankUnavailable("it reviews nothing")

    def open_virtual_account(self, request: Any) -> VirtualAccount:
        raise BankUnavailable("it opens nothing")

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            with Client(self._address, authkey=SECRET) as line:
                line.send((os.getpid(), name, arguments))
                kind, answer = line.recv()
        except (OSError, EOFError) as error:
            raise BankUnavailable("the line is dead") from error
        if kind == "refused":
            raise BankRefused(*answer)
        if kind == "reused":
            raise KeyReused(answer)
        if kind == "unavailable":
            raise BankUnavailable(answer)
        return answer


class BankFiles:
    """What the processes of a run share: the service's file, the bank's, and a key ring."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.clock = FixedClock()
        """The bank's own, in this process."""

    def make(self) -> Storage:
        """The service's new storage, with a key ring."""
        (self._folder / "ring").write_text(RING)
        storage = self._open("service.db")
        storage.migrate()
        return storage

    @property
    def key_ring(self) -> KeyRing:
        return KeyRing.parse((self._folder / "ring").read_text())

    def bank_ports(self) -> Ports:
        """The ports of the bank's books."""
        storage = self._open("bank.db")
        storage.migrate()
        return Ports.over(storage, self.key_ring, self.clock)

    def payout_bank(self) -> SimulatedBank:
        """The bank's side of payouts."""
        return SimulatedBank(self.bank_ports())

    def funding_bank(self) -> SimulatedFundingBank:
        """The bank's side of on-ramps, which delivers over the service's chains."""
        storage = self._open("service.db")
        clock = SandboxClock(storage)
        ports = Ports.over(storage, self.key_ring, clock)

        def send_tokens(order: DeliveryOrder) -> str:
            clock.refresh()
            name = f"bank/{order.key}"
            chain = SimulatedChain(order.chain_id, ports)
            to, amount = order.address, order.amount_atomic
            return chain.transfer(order.token_address, None, to, amount, name)

        return SimulatedFundingBank(self.bank_ports(), send_tokens)

    def service(self) -> PaymentsService:
        """A worker's service."""
        return PaymentsService(
            self._open("service.db"),
            self.key_ring,
            transport=NoTransport(),
            bank=RemoteBank(self._folder),  # type: ignore[arg-type]
        )

    def _open(self, name: str) -> Storage:
        return open_storage(f"sqlite:///{self._folder / name}")


def supervise(
    module: str,
    world: World,
    folder: Path,
    seed: int,
    chance: float,
    is_over: Callable[[], bool],
    within_s: float,
) -> int:
    """Start the bank and one worker after another until it is over; how many were killed."""
    bank = _start(module, folder, "bank", str(seed), str(chance))
    worker: subprocess.Popen[str] | None = None
    try:
        assert bank.stdout is not None
        assert bank.stdout.readline().strip() == "ready"
        deadline = time.monotonic() + within_s
        looked_at = time.monotonic()
        while not is_over():
            assert time.monotonic() < deadline, "it takes too long"
            is_dead = worker is None or worker.poll() is not None
            if is_dead or time.monotonic() - looked_at > STUCK_S:
                looked_at = time.monotonic()
                with suppress(StorageUnavailable):  # a worker that a busy machine keeps writing
                    world.clock.refresh()
                    world.clock.advance_to(world.clock.now() + LEASE_S * SECOND)
            if is_dead:
                worker = _start(module, folder, "work", stdout=subprocess.DEVNULL)
            time.sleep(0.1)
    finally:
        for process in (worker, bank):
            if process is not None:
                process.kill()
                process.wait()
        if bank.stdout is not None:
            bank.stdout.close()
    return int((folder / "kills").read_text())


def main(
    document: str | None,
    run: Callable[[int, int, float], tuple[int, int]],
    what: str,
    deadly: Collection[str],
) -> int:
    """The command line of a run, which is also that of its processes."""
    parser = argparse.ArgumentParser(description=document)
    parser.add_argument("--payments", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chance", type=float, default=0.2)
    parser.add_argument("--in", dest="folder", type=Path)
    parser.add_argument("role", nargs="*")
    given = parser.parse_args()
    if given.role[:1] == ["bank"]:
        _serve_bank(given.folder, int(given.role[1]), float(given.role[2]), deadly)
    elif given.role[:1] == ["work"]:
        _work(given.folder)
    else:
        found, kills = run(given.payments, given.seed, given.chance)
        print(f"seed {given.seed}: {found} {what} of {given.payments}, {kills} kills")
        return 0 if found == given.payments else 1
    return 0


def _serve_bank(folder: Path, seed: int, chance: float, deadly: Collection[str]) -> None:
    """The bank's process: answers calls, and kills callers."""
    chosen = random.Random(seed)
    files = BankFiles(folder)
    sides = (files.payout_bank(), files.funding_bank())
    kills = 0
    with Listener(str(folder / "bank.sock"), authkey=SECRET) as api:
        print("ready", flush=True)
        while True:
            try:
                line = api.accept()
            except (OSError, EOFError):
                continue
            with line:
                try:
                    pid, name, arguments = line.recv()
                    files.clock.advance(CALL_TAKES_S)
                    fate = chosen.random() if name in deadly else 1.0
                    if fate < chance / 2:
                        os.kill(pid, signal.SIGKILL)
                        kills += 1
                        continue
                    answer = _answer(sides, name, arguments)
                    if fate < chance:
                        os.kill(pid, signal.SIGKILL)
                        kills += 1
                        continue
                    line.send(answer)
                except (OSError, EOFError):
                    continue
                finally:
                    (folder / "kills").write_text(str(kills))


def _answer(sides: Sequence[Any], name: str, arguments: Sequence[Any]) -> tuple[str, Any]:
    """What a side of the bank answers; what both can do, both do."""
    answer = None
    try:
        for side in sides:
            if hasattr(side, name):
                answer = getattr(side, name)(*arguments)
    except BankRefused as refusal:
        return "refused", (refusal.reason, str(refusal))
    except KeyReused as error:
        return "reused", str(error)
    except BankUnavailable as error:
        return "unavailable", str(error)
    return "done", answer


def _work(folder: Path) -> None:
    """A worker's process: does what is due, until it is killed."""
    service = BankFiles(folder).service()
    worker = service.worker("sandbox")
    while True:
        service.refresh()
        worker.run_until_idle()
        time.sleep(0.05)


def _start(
    module: str, folder: Path, *arguments: str, stdout: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", module, "--in", str(folder), *arguments]
    return subprocess.Popen(command, stdout=stdout, text=True)
