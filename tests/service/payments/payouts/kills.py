"""Kill -9 of workers between any two calls to a bank that is a process of its own.

    python -m tests.service.payments.payouts.kills [--payments 25] [--seed 1] [--chance 0.2]

The bank keeps books of its own. At each call it may kill the worker that calls: before it does as
asked, or after it, when no answer has left. In the end there are as many payouts as Payments.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import (
    BankNotice,
    BankRefused,
    BankUnavailable,
    KeyReused,
    PayoutOrder,
)
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.banks.simulated.records import SimulatedPayout
from payments_core.clock import SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.ports import Ports
from payments_core.payments.payouts.record import payout_key
from payments_core.service import PaymentsService
from payments_core.storage.port import SIMULATED
from payments_core.storage_loader import open_storage
from tests.service.payments.payouts.desk import Desk
from tests.service.world import RING, NoTransport, World

SECRET = b"between these processes alone"
LEASE_S = 61
STUCK_S = 3.0
"""After so long without a killed worker the clock passes the leases of those that were."""


class RemoteBank:
    """The bank's process, as a worker reaches it."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / "bank.sock")

    def submit(self, order: PayoutOrder) -> BankPayout:
        made: BankPayout = self._call("submit", order)
        return made

    def find_payout(self, key: str) -> BankPayout | None:
        found: BankPayout | None = self._call("find_payout", key)
        return found

    def request_capability(self, request: Any) -> Any:
        raise BankUnavailable("it reviews nothing")

    def find_capability(self, key: str) -> Any:
        raise BankUnavailable("it reviews nothing")

    def register_account(self, registration: Any) -> Any:
        raise BankUnavailable("it reviews nothing")

    def find_account(self, key: str) -> Any:
        raise BankUnavailable("it reviews nothing")

    def list_notices(self, limit: int = 100) -> Sequence[BankNotice]:
        return ()

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """There are none."""

    def _call(self, name: str, argument: Any) -> Any:
        try:
            with Client(self._address, authkey=SECRET) as line:
                line.send((os.getpid(), name, argument))
                kind, answer = line.recv()
        except (OSError, EOFError) as error:
            raise BankUnavailable("the line is dead") from error
        if kind == "refused":
            raise BankRefused(*answer)
        if kind == "reused":
            raise KeyReused(answer)
        return answer


def serve_bank(folder: Path, seed: int, chance: float) -> None:
    """The bank's process: answers calls, and kills callers."""
    chosen = random.Random(seed)
    bank = SimulatedBank(_bank_ports(folder))
    kills = 0
    with Listener(str(folder / "bank.sock"), authkey=SECRET) as door:
        print("ready", flush=True)
        while True:
            try:
                line = door.accept()
            except (OSError, EOFError):
                continue
            with line:
                try:
                    pid, name, argument = line.recv()
                    fate = chosen.random()
                    if fate < chance / 2:
                        os.kill(pid, signal.SIGKILL)
                        kills += 1
                        continue
                    answer = _answer(bank, name, argument)
                    if fate < chance:
                        os.kill(pid, signal.SIGKILL)
                        kills += 1
                        continue
                    line.send(answer)
                except (OSError, EOFError):
                    continue
                finally:
                    (folder / "kills").write_text(str(kills))


def _answer(bank: SimulatedBank, name: str, argument: Any) -> tuple[str, Any]:
    try:
        return "done", getattr(bank, name)(argument)
    except BankRefused as refusal:
        return "refused", (refusal.reason, str(refusal))
    except KeyReused as error:
        return "reused", str(error)


def work(folder: Path) -> None:
    """A worker's process: does what is due, until it is killed."""
    service = PaymentsService(
        open_storage(f"sqlite:///{folder / 'service.db'}"),
        _key_ring(folder),
        transport=NoTransport(),
        bank=RemoteBank(folder),  # type: ignore[arg-type]
    )
    worker = service.worker("sandbox")
    while True:
        service.refresh()
        worker.run_until_idle()
        time.sleep(0.05)


def _key_ring(folder: Path) -> KeyRing:
    """The key ring of a run, which its processes share."""
    return KeyRing.parse((folder / "ring").read_text())


def _bank_ports(folder: Path) -> Ports:
    storage = open_storage(f"sqlite:///{folder / 'bank.db'}")
    storage.migrate()
    return Ports.over(storage, _key_ring(folder), SystemClock())


def run(payments: int, seed: int, chance: float, within_s: float = 600.0) -> tuple[int, int]:
    """How many payouts the bank has for so many Payments, and how many workers were killed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ring").write_text(RING)
        storage = open_storage(f"sqlite:///{folder / 'service.db'}")
        storage.migrate()
        world = World(storage).open()
        world.fund("100.00")
        desk = Desk(world)
        made = [desk.send("0.50") for _ in range(payments)]
        bank = _start(folder, "bank", str(seed), str(chance))
        worker: subprocess.Popen[str] | None = None
        try:
            assert bank.stdout is not None and bank.stdout.readline().strip() == "ready"
            deadline = time.monotonic() + within_s
            looked_at = time.monotonic()
            while any(desk.payout(created).status == "created" for created in made):
                assert time.monotonic() < deadline, "it takes too long"
                is_dead = worker is None or worker.poll() is not None
                if is_dead or time.monotonic() - looked_at > STUCK_S:
                    looked_at = time.monotonic()
                    world.clock.refresh()
                    world.clock.advance_to(world.clock.now() + LEASE_S * 1_000)
                if is_dead:
                    worker = _start(folder, "work", stdout=subprocess.DEVNULL)
                time.sleep(0.1)
        finally:
            for process in (worker, bank):
                if process is not None:
                    process.kill()
                    process.wait()
            if bank.stdout is not None:
                bank.stdout.close()
        books = _bank_ports(folder).storage
        keys = [
            payout_key(world.environment_id, created.payment.id, attempt)
            for created in made
            for attempt in (1, 2)
        ]
        found = books.read(
            SIMULATED,
            lambda snapshot: sum(bool(snapshot.get(SimulatedPayout, key)) for key in keys),
        )
        assert desk.offramp == 50 * payments, "the vault paid another amount"
        assert all(desk.books(created) == {"payer": -50, "bank": 50} for created in made)
        return found, int((folder / "kills").read_text())


def _start(folder: Path, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.service.payments.payouts.kills", "--in", str(folder)]
    return subprocess.Popen([*command, *arguments], stdout=stdout, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payments", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chance", type=float, default=0.2)
    parser.add_argument("--in", dest="folder", type=Path)
    parser.add_argument("role", nargs="*")
    given = parser.parse_args()
    if given.role[:1] == ["bank"]:
        serve_bank(given.folder, int(given.role[1]), float(given.role[2]))
    elif given.role[:1] == ["work"]:
        work(given.folder)
    else:
        payouts, kills = run(given.payments, given.seed, given.chance)
        print(f"seed {given.seed}: {payouts} payouts of {given.payments} Payments, {kills} kills")
        return 0 if payouts == given.payments else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
