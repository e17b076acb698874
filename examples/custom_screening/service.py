"""A small provider of screening: a list, cases for people there, signed webhooks, faults on call.

It stands for a provider on the Internet, and runs as a process of its own::

    .venv/bin/python examples/custom_screening/service.py --port 8701

It prints JSON lines: its URL, then each call before and after it took effect, and each webhook.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import secrets
import sys
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

FAULTS: Mapping[str, Any] = {
    "is_down": False,  # no call is answered
    "hangs": False,  # the connection stays open without an answer
    "nonsense": False,  # the answer has a result that is in no reference
    "lost_answers": 0,  # the next calls take effect, and are not answered
    "late_s": 0.0,  # how late a call is answered, or
    "is_late_before": False,  # begun
    "webhooks": "once",  # or "twice", "late", "reversed", "none"
}
LATE_S = 2.0
RETRIES_S = (0.2, 0.5, 1, 2, 4, 8, 15, 30)
VALID_S = 3_600
REASONS: Mapping[str, str | None] = {
    "no_match": None,
    "possible_match": "similar to an entry of a list",
    "match": "an entry of a list",
}


class Provider(ThreadingHTTPServer):
    """All that the provider knows, in memory."""

    daemon_threads = True

    def __init__(self, port: int, api_key: str, secret: str) -> None:
        self.api_key, self.secret = api_key, secret.encode()
        self.listed: dict[tuple[Any, ...], str] = {}
        self.cases: dict[str, dict[str, Any]] = {}
        self.webhook_url = ""
        self.faults = dict(FAULTS)
        self.calls = 0
        self.held: list[dict[str, str]] = []
        self.lock = threading.RLock()
        super().__init__(("127.0.0.1", port), Answer)

    def screen(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The result for a subject. A possible match opens a case, once for a key."""
        with self.lock:
            known = next((one for one in self.cases.values() if one["key"] == body["key"]), None)
            if known is not None:
                result, case = known["state"], known["id"]
                reason = REASONS.get(result)
                return {"case": case, "result": result, "validS": VALID_S, "reason": reason}
            result = self.listed.get(name_subject(body), "no_match")
            answer = {"result": result, "validS": VALID_S, "reason": REASONS[result]}
            if result == "possible_match":
                number = answer["case"] = f"case-{secrets.token_hex(8)}"
                self.cases[number] = {**body, "id": number, "state": result}
                self.report(number)
            return answer

    def decide(self, number: str, state: str) -> None:
        """A person at the provider has ended a case; it stays ended, and so does its subject."""
        with self.lock:
            case = self.cases[number]
            if case["state"] == "possible_match":
                case["state"] = state
                result = {"released": "no_match", "confirmed": "match"}[state]
                self.listed[name_subject(case)] = result
                self.report(number)

    def report(self, number: str) -> None:
        """Send a webhook about a case, as the faults say."""
        notice = {"id": f"event-{secrets.token_hex(8)}", "case": number}
        kind = self.faults["webhooks"]
        if kind == "reversed" and not self.held:
            self.held.append(notice)
        elif kind != "none" and self.webhook_url:
            sent = [notice, *self.held] + ([notice] if kind == "twice" else [])
            self.held = []
            late_s = LATE_S if kind == "late" else 0.0
            threading.Thread(target=self.send_all, args=(sent, late_s), daemon=True).start()

    def send_all(self, notices: list[dict[str, str]], late_s: float) -> None:
        """Send webhooks in this order, each until it is accepted."""
        time.sleep(late_s)
        for notice in notices:
            for pause_s in (*RETRIES_S, 0):
                tell(webhook=notice["id"], status=(status := self.send(notice)))
                if 200 <= status < 300:
                    break
                time.sleep(pause_s)

    def send(self, notice: Mapping[str, str]) -> int:
        """The status of one attempt; 0 without an answer."""
        headers, body = self.sign(notice, time.time())
        to = urlsplit(self.webhook_url)
        connection = HTTPConnection(str(to.hostname), to.port, timeout=10)
        try:
            connection.request("POST", to.path, body, headers)
            return connection.getresponse().status
        except (OSError, HTTPException):
            return 0
        finally:
            connection.close()

    def sign(self, notice: Mapping[str, str], at_s: float) -> tuple[dict[str, str], bytes]:
        """The headers and the body of a webhook. The signature is over its time and its bytes."""
        stamp, body = str(int(at_s)), json.dumps(notice).encode()
        signed = hmac.digest(self.secret, stamp.encode() + b"." + body, hashlib.sha256)
        return {"example-time": stamp, "example-signature": signed.hex()}, body


class Answer(BaseHTTPRequestHandler):
    """The API at `/screenings`, and what tests order at `/orders`."""

    server: Provider

    def do_GET(self) -> None:
        if self.path == "/orders":
            self.reply(200, {"cases": list(self.server.cases.values()), "calls": self.server.calls})
        else:
            self.reply(404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)))
        kind, _, name = self.path.strip("/").partition("/")
        if kind == "screenings":
            self.serve_screening(body)
        elif kind == "orders":
            self.reply(200, self.obey(name, body))
        else:
            self.reply(404, {})

    def serve_screening(self, body: Mapping[str, Any]) -> None:
        """A call of the API, with its faults."""
        server, faults = self.server, dict(self.server.faults)
        if self.headers["authorization"] != f"Bearer {server.api_key}":
            return self.reply(401, {})
        server.calls += 1
        tell(call="screen", moment="received")
        if faults["is_down"]:
            return None  # the connection ends
        while server.faults["hangs"]:
            time.sleep(0.05)
        time.sleep(faults["late_s"] if faults["is_late_before"] else 0.0)
        found = server.screen(body)
        tell(call="screen", moment="done", result=found["result"])
        time.sleep(0.0 if faults["is_late_before"] else faults["late_s"])
        if self.loses_answer():
            return None
        return self.reply(200, {"result": "perhaps"} if faults["nonsense"] else found)

    def loses_answer(self) -> bool:
        """Whether this answer is lost: as many are as were ordered, also of calls at once."""
        with self.server.lock:
            left = self.server.faults["lost_answers"]
            self.server.faults["lost_answers"] = max(0, left - 1)
            return bool(left)

    def obey(self, order: str, said: Any) -> Any:
        """An order of a test: where webhooks go, faults, the list, a decision, a signed webhook."""
        server = self.server
        if order == "webhooks":
            server.webhook_url = said["url"]
        elif order == "faults":
            server.faults |= said
        elif order == "list":
            server.listed[name_subject(said)] = said["result"]
        elif order == "decide":
            server.decide(said["case"], said["state"])
        elif order == "sign":
            notice = {"id": f"event-{secrets.token_hex(8)}", "case": said["case"]}
            headers, body = server.sign(notice, time.time() - said.get("age_s", 0))
            return {"headers": headers, "body": body.decode()}
        return {}

    def reply(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing: what it does is told as JSON."""


def name_subject(body: Mapping[str, Any]) -> tuple[Any, ...]:
    """What is listed: an address on a chain, in any letters, or an account by its name."""
    return body["type"], str(body["reference"]).lower(), body.get("chain")


def tell(**facts: object) -> None:
    """Print what happened."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--api-key", default="example-key")
    options.add_argument("--secret", default="example-secret")
    given = options.parse_args()
    provider = Provider(given.port, given.api_key, given.secret)
    tell(url=f"http://127.0.0.1:{provider.server_port}")
    provider.serve_forever()


if __name__ == "__main__":
    main()
