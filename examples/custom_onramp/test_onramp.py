"""The adapter, held to the suite of the port, against the provider in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from payments_core.conformance.onramp import OnrampConformance
from payments_core.hosted_onramps.port import HostedOnramp
from payments_core.networks import shipped_networks

from .adapter import open_url

DAY_S = 86_400


class TestExampleOnramp(OnrampConformance):
    unsold_asset = shipped_networks().find_asset(1, "USDT")
    can_pay = can_deliver = can_reject = can_return = can_count_orders = True
    can_report = can_report_late = can_fail = can_lose_answers = can_answer_nonsense = True
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

    def setup_method(self) -> None:
        self.order("faults", deliveries="by hand")

    def open(self) -> HostedOnramp:
        return open_url("example+" + self.url.replace("://", "://example-key:example-secret@"))

    def pay(self, reference: str) -> None:
        self.order("pay", purchase=reference)

    def deliver(self, reference: str) -> None:
        self.order("deliver", purchase=reference)

    def reject(self, reference: str) -> None:
        self.order("cancel", purchase=reference)

    def give_back(self, reference: str) -> None:
        self.order("give_back", purchase=reference)

    def report(self, reference: str) -> tuple[Mapping[str, str], bytes]:
        signed = self.order("sign", purchase=reference)
        return signed["headers"], signed["body"].encode()

    def late_report(self, reference: str) -> tuple[Mapping[str, str], bytes]:
        signed = self.order("sign", purchase=reference, age_s=DAY_S)
        return signed["headers"], signed["body"].encode()

    def count_orders(self) -> int:
        with urlopen(f"{self.url}/orders") as answer:
            return len(json.load(answer))

    def lose_next_answer(self) -> None:
        self.order("faults", lost_answers=1)

    def answer_nonsense(self) -> None:
        self.order("faults", is_confused=True)

    def fail(self) -> None:
        self.order("faults", is_down=True)

    def restore(self) -> None:
        self.order("faults", is_down=False, is_confused=False)

    def order(self, name: str, **said: Any) -> Any:
        """Have the provider do something; yours has a sandbox."""
        request = Request(f"{self.url}/orders/{name}", json.dumps(said).encode())
        with urlopen(request) as answer:
            return json.load(answer)
