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
from tests.routers.cctp.test_offers import AMOUNT, order
from tests.routers.cctp.world import DESTINATION, ROOT, SOURCE, USDC, Cctp

KILLS = int(os.environ.get("PAYMENTS_KILLS", "0"))
SEED = int(os.environ.get("PAYMENTS_KILL_SEED", "1"))


class Victims:
    """Processes of the router over one storage."""

    def __init__(self, cctp: Cctp, folder: Path) -> None:
        urls = [cctp.nodes[SOURCE].url, cctp.nodes[DESTINATION].url, cctp.attesting.url]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.routers.cctp.kill_victim", str(folder), *urls],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def live(self, point: int, key: str, payment: str) -> str:
        """Let one live; how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{point} {key} {payment}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        """End the process that forks."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


@pytest.fixture
def victims(cctp: Cctp, books: Storage, tmp_path: Path) -> Iterator[list[Victims]]:
    del books  # its tables are there
    made = [Victims(cctp, tmp_path) for _ in range(2)]
    yield made
    for one in made:
        one.stop()


class Order:
    """An order that is paid, to a recipient of its own."""

    def __init__(self, cctp: Cctp, books: Storage, kind: str, number: int) -> None:
        self.cctp = cctp
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
    cctp: Cctp, books: Storage, victims: list[Victims], kind: str
) -> None:
    killed: set[str] = set()
    # Both kinds take the same steps, and offers are killed at each of them in every run.
    for point in range(1, 100, 1 if kind == "offer" or KILLS else 3):
        one = Order(cctp, books, kind, point)
        ended = victims[0].live(point, one.key, one.payment)
        if not ended.startswith("killed"):
            assert ended.startswith("lived")
            one.require_one_mint()
            break
        killed.add(ended.removeprefix("killed "))
        assert victims[0].live(0, one.key, one.payment).startswith("lived")
        one.require_one_mint()
    assert point > 12
    calls = {"transact", "prepare_call", "broadcast", "find_messages", "find_logs"}
    assert killed == calls if kind == "offer" else killed <= calls


@pytest.mark.skipif(not KILLS, reason="only `make cctp-kills`")
@pytest.mark.timeout(0)
def test_kills_at_random_end_with_one_mint(
    cctp: Cctp, books: Storage, victims: list[Victims]
) -> None:
    """Two processes look at one order at once, and each is killed again and again."""
    chance, kills, number = random.Random(SEED), 0, 0
    while kills < KILLS:
        number += 1
        one = Order(cctp, books, chance.choice(("offer", "send")), number)
        deaths: list[str] = []

        def haunt(victim: Victims, points: list[int], one: Order, deaths: list[str]) -> None:
            for point in points:
                deaths.append(victim.live(point, one.key, one.payment))

        threads = [
            threading.Thread(
                target=haunt,
                args=(victim, [chance.randint(1, 12) for _ in range(3)], one, deaths),
            )
            for victim in victims
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kills += sum(death.startswith("killed") for death in deaths)
        assert victims[0].live(0, one.key, one.payment).startswith("lived")
        one.require_one_mint()
    print(f"{kills} kills, {number} orders, each with one mint; seed {SEED}")
