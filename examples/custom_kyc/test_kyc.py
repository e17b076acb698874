"""The adapter, held to the suite of the port, against the provider in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from payments_core.accounts.verification.port import KycFinding, KycProvider
from payments_core.conformance.kyc import KycConformance

from .adapter import open_url

STATES: Mapping[KycFinding, str] = {"approved": "passed", "rejected": "failed"}
DAY_S = 86_400


class TestExampleKyc(KycConformance):
    can_decide = can_count_cases = can_report = can_report_late = True
    can_fail = can_lose_answers = True

    def setup_method(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("service.py"))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]

    def teardown_method(self) -> None:
        with self.process:
            self.process.kill()

    def open(self) -> KycProvider:
        return open_url("example+" + self.url.replace("://", "://example-key:example-secret@"))

    def decide(self, reference: str, finding: KycFinding) -> None:
        self.order("decide", case=reference, state=STATES[finding])

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

    def restore(self) -> None:
        self.order("faults", is_down=False)

    def order(self, name: str, **said: Any) -> Any:
        """Have the provider do something; yours has a sandbox."""
        request = Request(f"{self.url}/orders/{name}", json.dumps(said).encode())
        with urlopen(request) as answer:
            return json.load(answer)
