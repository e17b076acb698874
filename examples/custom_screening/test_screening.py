"""The adapter, held to the suite of the port, against the provider in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from payments_core.conformance.screening import ScreeningConformance
from payments_core.screening.port import Outcome, Screening, Subject

from .adapter import open_url

RESULTS: Mapping[Outcome, str] = {
    "clear": "no_match",
    "review": "possible_match",
    "blocked": "match",
}
STATES: Mapping[Outcome, str] = {"clear": "released", "blocked": "confirmed"}
DAY_S = 86_400


class TestExampleScreening(ScreeningConformance):
    can_judge = can_judge_by_chain = can_decide = can_count_cases = True
    can_report = can_report_late = can_fail = can_lose_answers = True
    can_hang = can_answer_nonsense = True

    def setup_method(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("service.py"))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]

    def teardown_method(self) -> None:
        with self.process:
            self.process.kill()

    def open(self) -> Screening:
        return open_url("example+" + self.url.replace("://", "://example-key:example-secret@"))

    def judge(self, subject: Subject, outcome: Outcome) -> None:
        self.order(
            "list",
            type=subject.kind,
            reference=subject.reference,
            chain=subject.chain_id,
            result=RESULTS[outcome],
        )

    def decide(self, case: str, outcome: Outcome) -> None:
        self.order("decide", case=case, state=STATES[outcome])

    def report(self, reference: str) -> tuple[Mapping[str, str], bytes]:
        signed = self.order("sign", case=reference)
        return signed["headers"], signed["body"].encode()

    def late_report(self, reference: str) -> tuple[Mapping[str, str], bytes]:
        signed = self.order("sign", case=reference, age_s=DAY_S)
        return signed["headers"], signed["body"].encode()

    def count_cases(self) -> int:
        with urlopen(f"{self.url}/orders") as answer:
            return len(json.load(answer)["cases"])

    def lose_next_answer(self) -> None:
        self.order("faults", lost_answers=1)

    def fail(self) -> None:
        self.order("faults", is_down=True)

    def hang(self) -> None:
        self.order("faults", hangs=True)

    def answer_nonsense(self) -> None:
        self.order("faults", nonsense=True)

    def restore(self) -> None:
        self.order("faults", is_down=False, hangs=False, nonsense=False)

    def order(self, name: str, **said: Any) -> Any:
        """Have the provider do something; yours has a sandbox."""
        request = Request(f"{self.url}/orders/{name}", json.dumps(said).encode())
        with urlopen(request) as answer:
            return json.load(answer)
