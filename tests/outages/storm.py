"""What is done to the deployment: kills without end, and outages of its database at their times."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence

import attrs

from tests.outages.databases import Database, Outage
from tests.outages.processes import Process

KILL_EVERY_S = 2.0


@attrs.frozen
class Happening:
    """Something that was done to the database (monotonic, in s): from `down` on it answered
    nobody."""

    outage: Outage
    began: float
    down: float
    ended: float


class Storm:
    """A storm of so many seconds, after a calm that begins when it is made.

    The seed decides who is killed when. Without databases, theirs stay up.
    """

    def __init__(
        self, processes: Sequence[Process], databases: Database | None, seed: int, seconds: float
    ) -> None:
        self._processes = processes
        self._databases = databases
        self._chance = random.Random(f"storm/{seed}")
        self._seconds = seconds
        self._faults: list[BaseException] = []
        self.calm_from = time.monotonic()
        self.began = self.ended = 0.0
        self.happenings: list[Happening] = []

    def rage(self) -> None:
        """Do it all. Raises what went wrong with the database's own programs."""
        self.began = time.monotonic()
        until = self.began + self._seconds
        outages = threading.Thread(target=self._outages, args=(self._databases,), daemon=True)
        if self._databases is not None:
            outages.start()
        while time.monotonic() + KILL_EVERY_S <= until:
            time.sleep(KILL_EVERY_S)
            self._kill_one()
        if self._databases is not None:
            outages.join()
        self.ended = time.monotonic()
        if self._faults:
            raise self._faults[0]

    def _kill_one(self) -> None:
        """One of those that live, whichever it is and whatever it does."""
        order = self._chance.sample(self._processes, len(self._processes))
        for process in order:
            if process.kill():
                return

    def _outages(self, databases: Database) -> None:
        try:
            for share, outage in databases.plan:
                time.sleep(max(0.0, self.began + share * self._seconds - time.monotonic()))
                began = time.monotonic()
                down = databases.do(outage)
                self.happenings.append(Happening(outage, began, down, time.monotonic()))
        except Exception as error:
            self._faults.append(error)
