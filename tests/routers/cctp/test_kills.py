"""The router is killed (SIGKILL) between any two calls of its ports; every order has one mint.

`make cctp-kills KILLS=200 SEED=` also kills at random, two processes at a time.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_core.clock import FixedClock
from payments_core.routers.cctp.forwarders import OFFER_PAYMENT
from payments_core.routers.port import RouteOrder
from payments_core.storage.port import Storage
from tests.chains.evm.nodes import OWNER
from tests.routers.cctp.shop import AMOUNT, order
from tests.routers.cctp.world import DESTINATION, ROOT, SOURCE, USDC, Cctp

KILLS = int(os.environ.get("PAYMENTS_KILLS", "0"))
SEED = int(os.environ.get("PAYMENTS_KILL_SEED", "1"))


class Victims:
    """Processes of the router, one after the other."""

    def __init__(self, cctp: Cctp) -> None:
        urls = [cctp.nodes[SOURCE].url, cctp.nodes[DESTINATION].url, cctp.attesting.url]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.routers.cctp.kill_victim", *urls],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def live(self, point: int, one: Order) -> str:
        """Let one look at an order; how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{point} {one.key} {one.payment} {one.folder}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        """End the process that forks."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


@pytest.fixture(scope="session")
def victim(all_cctp: Cctp) -> Iterator[Victims]:
    made = Victims(all_cctp)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def another_victim(all_cctp: Cctp) -> Iterator[Victims]:
    made = Victims(all_cctp)
    yield made
    made.stop()


class Order:
    """An order that is paid, to a recipient of its own; its books are in the folder."""

    def __init__(self, cctp: Cctp, books: Storage, folder: Path, kind: str, number: int) -> None:
        self.cctp, self.folder = cctp, folder
        self.key = f"{kind}_{number}"
        self.recipient = f"0x{number + 1:040x}"
        router = cctp.open_router(books, FixedClock())
        if kind == "offer":
            address = router.offer(order(self.key, recipient=self.recipient)).address
            self.payment = OFFER_PAYMENT
            cctp.pay(address, AMOUNT)
            return
        terms = RouteOrder(
            key=self.key,
            source=USDC[SOURCE],
            destination=USDC[DESTINATION],
            amount_atomic=AMOUNT,
            expected_atomic=AMOUNT,
            minimum_atomic=AMOUNT,
            recipient=self.recipient,
            return_to=OWNER,
        )
        self.payment = cctp.pay(router.open(terms), AMOUNT)

    def require_one_mint(self) -> None:
        """Exactly one transfer to the recipient, and nothing given back."""
        found = self.cctp.count_mints(self.recipient)
        assert found == 1, f"{self.key} has {found} mints"
        assert self.cctp.balance(DESTINATION, self.recipient) == AMOUNT
        assert self.cctp.balance(SOURCE, OWNER) == 0


@pytest.mark.parametrize("kind", ["offer", "send"])
def test_a_kill_at_any_step_ends_with_one_mint(
    cctp: Cctp, books: Storage, tmp_path: Path, victim: Victims, kind: str
) -> None:
    killed: set[str] = set()
    # Both kinds take the same steps, and offers are killed at each of them in every run.
    for point in range(1, 100, 1 if kind == "offer" or KILLS else 3):
        one = Order(cctp, books, tmp_path, kind, point)
        ended = victim.live(point, one)
        if not ended.startswith("killed"):
            assert ended.startswith("lived")
            one.require_one_mint()
            break
        killed.add(ended.removeprefix("killed "))
        assert victim.live(0, one).startswith("lived")
        one.require_one_mint()
    assert point > 12
    calls = {"transact", "prepare_call", "broadcast", "find_messages", "find_logs"}
    assert killed == calls if kind == "offer" else killed <= calls


@pytest.mark.skipif(not KILLS, reason="only `make cctp-kills`")
@pytest.mark.timeout(0)
def test_kills_at_random_end_with_one_mint(
    cctp: Cctp, books: Storage, tmp_path: Path, victim: Victims, another_victim: Victims
) -> None:
    """Two processes look at one order at once, and each is killed again and again."""
    chance, kills, number = random.Random(SEED), 0, 0
    while kills < KILLS:
        number += 1
        one = Order(cctp, books, tmp_path, chance.choice(("offer", "send")), number)
        deaths: list[str] = []

        def haunt(haunted: Victims, points: list[int], one: Order, deaths: list[str]) -> None:
            for point in points:
                deaths.append(haunted.live(point, one))

        threads = [
            threading.Thread(
                target=haunt,
                args=(haunted, [chance.randint(1, 12) for _ in range(3)], one, deaths),
            )
            for haunted in (victim, another_victim)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kills += sum(death.startswith("killed") for death in deaths)
        assert victim.live(0, one).startswith("lived")
        one.require_one_mint()
    print(f"{kills} kills, {number} orders, each with one mint; seed {SEED}")
