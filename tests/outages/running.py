"""A run, from an empty database to the judgement."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage_loader import open_storage
from payments_core_http.cli.api_client import ApiResponse, basic_authorization
from payments_core_http.cli.child_processes import ChildProcess
from tests.outages import logs
from tests.outages.books import summed
from tests.outages.databases import CitusDatabases, Database, Databases
from tests.outages.figures import figures
from tests.outages.found import Found, under_way
from tests.outages.laws import Evidence, broken
from tests.outages.partner import AnsweredRequest, Memory, NeverAnswered, Partner, Refused
from tests.outages.processes import ROOT, Process, admin, settings, started
from tests.outages.shopper import EXPIRES_S, SYMBOL, Shopper, wait_until_open
from tests.outages.storm import Storm

LEASES_END_S = 61
AFTER_CLOCK_S = 90.0
"""The longest that what fell due when the clock was moved may take."""
OPEN_S = 60.0
REPLAYERS = 4


@attrs.frozen(kw_only=True)
class Plan:
    """How long, how many of each, and the seed of all chance but time's.

    When the storm is over, what is under way is left to itself for `settle_s`, in real time: what
    the killed have leased is theirs for some seconds. Then the sandbox's clock is moved. With
    `careless` the database loses what was answered, and that must be found. With `only_workers`
    nothing else is killed, and the database stays up.
    """

    seed: int
    storm_s: float
    calm_s: float
    settle_s: float
    serves: int = 2
    workers: int = 3
    shoppers: int = 6
    pause_s: float = 0.2
    replicated: bool = True
    careless: bool = False
    citus: bool = False
    only_workers: bool = False


@attrs.frozen(kw_only=True)
class Outcome:
    """What a run has shown."""

    figures: Mapping[str, str]
    faults: Sequence[str]
    log: Counter[str]
    evidence: Evidence


def run(plan: Plan, folder: Path, say: Callable[[str], None] = print) -> Outcome:
    """Play a plan; its files stay in the folder."""
    databases: Database = (
        CitusDatabases()
        if plan.citus
        else Databases(replicated=plan.replicated, careless=plan.careless)
    )
    try:
        return _Run(plan, folder, databases, say).play()
    finally:
        databases.remove()


class _Run:
    def __init__(
        self, plan: Plan, folder: Path, databases: Database, say: Callable[[str], None]
    ) -> None:
        self.plan, self.folder, self.databases, self.say = plan, folder, databases, say
        ring = KeyRing.generate()
        self.environ = settings(databases.url, ring)
        storage = open_storage(databases.url)
        storage.migrate()
        self.service = PaymentsService(
            storage, KeyRing.parse(ring), settings=Settings(public_url=LOCAL_URL)
        )
        self.memory = Memory(folder / "answered.jsonl")
        self.received = folder / "received.jsonl"
        self.credentials: dict[str, str] = {}

    def play(self) -> Outcome:
        plan = self.plan
        with contextlib.chdir(ROOT):  # where the child finds itself as a module
            receiver = ChildProcess(
                "receiver", "tests.outages.receiver", [str(self.received), str(plan.seed)]
            )
        processes: Sequence[Process] = ()
        try:
            port = receiver.wait_until_ready()["port"]
            self._make_app()
            processes = started(self.environ, self.folder, serves=plan.serves, workers=plan.workers)
            self.urls = [f"http://127.0.0.1:{p.port}" for p in processes if p.port]
            self._register_webhook(receiver, port)
            storm = self._under_load(processes)
            replays = self._settled()
            for process in processes:
                process.end()
        finally:
            for process in processes:
                process.end()
            receiver.end()
            self.memory.close()
        return self._judged(processes, storm, replays)

    def _make_app(self) -> None:
        app = admin(
            self.environ, "apps", "create", "Acme", "--partner-id", "acme", "--mode", "sandbox"
        )
        key = admin(self.environ, "keys", "create", "acme", "--name", "main")
        self.app_id, self.environment_id = app["appId"], app["sandboxEnvironmentId"]
        self.credentials["backend"] = basic_authorization(self.app_id, key["secret"])

    def _partner(self, name: str) -> Partner:
        chance = random.Random(f"{name}/{self.plan.seed}")
        return Partner(self.urls, self.memory, self.credentials, chance)

    def _register_webhook(self, receiver: ChildProcess, port: int) -> None:
        path = f"/v2/console/apps/{self.app_id}/environments/{self.environment_id}/webhooks"
        made = self._partner("console").ask(
            "webhook", "POST", path, {"url": f"http://127.0.0.1:{port}/hook"}, key="webhook"
        )
        receiver.send(secret=made["signingSecret"])
        assert receiver.wait_for(lambda answered: {"has": "secret"} in answered)

    def _under_load(self, processes: Sequence[Process]) -> Storm:
        plan, stopping = self.plan, threading.Event()
        shoppers = [
            Shopper(
                f"shopper{n}",
                self._partner(f"partner{n}"),
                random.Random(f"shopper{n}/{plan.seed}"),
                stopping,
                plan.pause_s,
            )
            for n in range(plan.shoppers)
        ]
        for shopper in shoppers:
            shopper.start()
        wait_until_open(shoppers, OPEN_S)
        self.say(f"{plan.calm_s:.0f} s of calm, then {plan.storm_s:.0f} s of storm")
        storm = (
            Storm([p for p in processes if p.role == "worker"], None, plan.seed, plan.storm_s)
            if plan.only_workers
            else Storm(processes, self.databases, plan.seed, plan.storm_s)
        )
        time.sleep(plan.calm_s)
        storm.rage()
        stopping.set()
        for shopper in shoppers:
            shopper.join()
        self.say("the storm is over; every request is sent again, and all comes to its end")
        return storm

    # Afterwards.

    def _settled(self) -> Mapping[str, ApiResponse]:
        """The answers to the repeats, once all has come to its end."""
        until = time.monotonic() + self.plan.settle_s
        answered = [one for one in self.memory.read() if one.key is not None]
        with ThreadPoolExecutor(REPLAYERS) as pool:
            shares = [answered[n::REPLAYERS] for n in range(REPLAYERS)]
            parts = pool.map(self._replayed, range(REPLAYERS), shares)
            replays = {key: answer for part in parts for key, answer in part.items()}
        left = self._wait(until)
        for round, seconds in enumerate((LEASES_END_S, EXPIRES_S, LEASES_END_S)):
            self._advance(seconds, f"clock-{round}")
            left = self._wait(time.monotonic() + AFTER_CLOCK_S)
        if left:
            self.memory.complain(f"still under way: {dict(left)}")
        self.balances = dict(self._balances(self.memory.read()))
        return replays

    def _replayed(self, number: int, answered: Sequence[AnsweredRequest]) -> dict[str, ApiResponse]:
        partner = self._partner(f"replayer{number}")
        answers = {}
        for one in answered:
            try:
                answers[str(one.key)] = partner.again(one)
            except NeverAnswered as error:
                self.memory.complain(str(error))
        return answers

    def _balances(
        self, answered: Iterable[AnsweredRequest]
    ) -> Iterator[tuple[tuple[str, int], tuple[int, int]]]:
        """What each account has on each chain, and what of it is reserved."""
        partner = self._partner("auditor")
        for id in [one.document["id"] for one in answered if one.what == "account"]:
            try:
                seen = partner.ask("balances", "GET", f"/v2/accounts/{id}/balances")
            except Refused as refusal:
                self.memory.complain(str(refusal))
                continue
            for row in seen["balances"]:
                if row["assetSymbol"] == SYMBOL:
                    yield (
                        (id, row["chainId"]),
                        (int(row["totalAtomic"]), int(row["reservedAtomic"])),
                    )

    def _wait(self, until: float) -> Counter[str]:
        """Wait until nothing is under way, and return what still is."""
        left = under_way(self.service)
        while left and time.monotonic() < until:
            time.sleep(0.5)
            left = under_way(self.service)
        self.say(f"under way: {dict(left) or 'nothing'}")
        return left

    def _advance(self, seconds: int, key: str) -> None:
        body = {"advanceSeconds": seconds}
        self._partner("clock").ask("clock", "POST", "/v2/sandbox/clock", body, key=key)

    def _judged(
        self, processes: Sequence[Process], storm: Storm, replays: Mapping[str, ApiResponse]
    ) -> Outcome:
        answered = self.memory.read()
        evidence = Evidence(
            answered=answered,
            books=summed(answered),
            replays=replays,
            found=Found(self.service, self.environment_id),
            received=[json.loads(line) for line in self.received.read_text().splitlines()],
            balances=self.balances,
        )
        self.service.close()
        shown = {
            "PostgreSQL": self.databases.version,
            "seed": str(self.plan.seed),
            **figures(evidence, self.memory, processes, storm),
        }
        written = [process.log for process in processes]
        faults = [
            *_odd_ends(processes),
            *self.memory.complaints,
            *logs.alarming(written),
            *broken(evidence),
        ]
        return Outcome(figures=shown, faults=faults, log=logs.tally(written), evidence=evidence)


def _odd_ends(processes: Sequence[Process]) -> Iterator[str]:
    """Ends that neither we nor the want of a database caused; who says that and is then killed
    counts as killed."""
    for process in processes:
        refused = logs.refused_starts(process.log)
        if process.odd_exits or process.exits[-1] or process.exits.count(1) > refused:
            yield f"{process.name} ended with {process.exits}, and was refused {refused} times"


def in_words(outcome: Outcome) -> str:
    """The outcome, for a person."""
    width = max(map(len, outcome.figures))
    lines = [f"{name:{width}}  {figure}" for name, figure in outcome.figures.items()]
    lines += ["", "In the logs, from WARNING on:"]
    lines += [f"{number:6}  {text[:200]}" for text, number in outcome.log.most_common()]
    lines += ["", f"{len(outcome.faults)} faults"]
    lines += [f"FAULT  {fault}" for fault in outcome.faults]
    return "\n".join(lines)
