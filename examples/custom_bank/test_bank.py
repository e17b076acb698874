"""The adapter, held to the suites of the ports, against the bank in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from payments_core.conformance.bank import BankConformance, FundingConformance

from .adapter import ExampleBank, open_url

DAY_S = 86_400


class Sandbox:
    """The bank, and what happens there; yours has a sandbox."""

    can_lose_answers = can_fail = True

    process: subprocess.Popen[bytes]
    url: str

    @classmethod
    def setup_class(cls) -> None:
        command = [sys.executable, str(Path(__file__).with_name("service.py"))]
        cls.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert cls.process.stdout is not None
        cls.url = json.loads(cls.process.stdout.readline())["url"]

    @classmethod
    def teardown_class(cls) -> None:
        with cls.process:
            cls.process.kill()

    def open(self) -> ExampleBank:
        return open_url("example+" + self.url.replace("://", "://example-key:example-secret@"))

    def lose_next_answer(self) -> None:
        self.order("faults", lost_answers=1)

    def fail(self) -> None:
        self.order("faults", is_down=True)

    def restore(self) -> None:
        self.order("faults", is_down=False)

    def rows(self, kind: str) -> Mapping[str, Any]:
        with urlopen(f"{self.url}/orders") as answer:
            return dict(json.load(answer)[kind])

    def order(self, name: str, **said: Any) -> Any:
        request = Request(f"{self.url}/orders/{name}", json.dumps(said).encode())
        with urlopen(request) as answer:
            return json.load(answer)


class TestExampleBank(Sandbox, BankConformance):
    can_return = can_report = can_report_late = True

    def approve_capability(self, key: str) -> None:
        self.order("approve", kind="capabilities", key=key)

    def approve_account(self, key: str) -> None:
        self.order("approve", kind="recipients", key=key)

    def settle(self, key: str) -> None:
        self.order("settle", key=key)

    def return_payout(self, key: str, code: str) -> None:
        self.order("return", key=key, code=code)

    def count_payouts(self, keys: Sequence[str]) -> int:
        return sum(key in keys for key in self.rows("payouts"))

    def report(self, reference: str) -> tuple[Mapping[str, str], bytes]:
        signed = self.order("sign", about=reference)
        return signed["headers"], signed["body"].encode()

    def late_report(self, reference: str) -> tuple[Mapping[str, str], bytes]:
        signed = self.order("sign", about=reference, age_s=DAY_S)
        return signed["headers"], signed["body"].encode()


class TestExampleFunding(Sandbox, FundingConformance):
    def send_transfer(self, account_key: str, amount_cents: int) -> str:
        return str(self.order("transfer", account=account_key, cents=amount_cents)["id"])

    def receive(self, incoming_id: str) -> None:
        self.order("receive", id=incoming_id)

    def count_deliveries(self, incoming_ids: Sequence[str]) -> int:
        made = self.rows("deliveries").values()
        return sum(delivery["transfer"] in incoming_ids for delivery in made)
