"""A small provider of KYC: cases, a hosted page, signed webhooks, and faults on call.

It stands for a provider on the Internet, and runs as a process of its own::

    .venv/bin/python examples/custom_kyc/service.py --port 8700

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
from html import escape
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

FAULTS: Mapping[str, Any] = {
    "is_down": False,  # no call is answered
    "lost_answers": 0,  # the next calls take effect, and are not answered
    "late_s": {},  # how late the calls `start` and `look` are answered, or
    "is_late_before": False,  # begun
    "webhooks": "once",  # or "twice", "late", "reversed", "none"
}
LATE_S = 2.0
RETRIES_S = (0.2, 0.5, 1, 2, 4, 8, 15, 30)


class Provider(ThreadingHTTPServer):
    """All that the provider knows, in memory."""

    daemon_threads = True

    def __init__(self, port: int, api_key: str, secret: str) -> None:
        self.api_key, self.secret = api_key, secret.encode()
        self.cases: dict[str, dict[str, Any]] = {}
        self.webhook_url = ""
        self.faults = dict(FAULTS)
        self.calls = 0
        self.held: list[dict[str, str]] = []
        self.lock = threading.RLock()
        super().__init__(("127.0.0.1", port), Answer)

    def start(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The case of a key: opened once, and the newest return URL counts."""
        with self.lock:
            known = next((one for one in self.cases.values() if one["key"] == body["key"]), None)
            if known is None:
                number = f"case-{secrets.token_hex(8)}"
                known = {"id": number, "state": "created", "token": secrets.token_urlsafe(16)}
                self.cases[number] = known
                self.report(number)
            known |= {"key": body["key"], "returnUrl": body.get("returnUrl")}
            return known

    def decide(self, number: str, state: str) -> None:
        """The user, or a person at the provider, has ended a case; it stays ended."""
        with self.lock:
            case = self.cases[number]
            if case["state"] in ("created", "in_review"):
                case["state"] = state
                self.report(number)

    def report(self, number: str) -> None:
        """Send a webhook about a case, as the faults say."""
        notice = {"id": f"event-{secrets.token_hex(8)}", "case": number}
        kind = self.faults["webhooks"]
        if kind == "reversed" and not self.held:
            self.held.append(notice)
        elif kind != "none":
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
    """The API at `/cases`, the hosted page at `/verify`, and what tests order at `/orders`."""

    server: Provider

    def do_GET(self) -> None:
        kind, _, name = self.path.strip("/").partition("/")
        if kind == "cases":
            self.serve_call("look", lambda: self.server.cases.get(unquote(name)))
        elif kind == "verify" and (case := self.find_by_token(name)):
            buttons = "".join(
                f'<button name="state" value="{state}">{state}</button>'
                for state in ("passed", "failed")
            )
            self.reply(200, f'<form method="post"><p>{escape(case["id"])}</p>{buttons}</form>')
        elif kind == "orders":
            self.reply(200, {"cases": list(self.server.cases.values()), "calls": self.server.calls})
        else:
            self.reply(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        kind, _, name = self.path.strip("/").partition("/")
        if kind == "cases":
            self.serve_call("start", lambda: self.server.start(json.loads(body)))
        elif kind == "verify" and (case := self.find_by_token(name)):
            self.server.decide(case["id"], parse_qs(body.decode())["state"][0])
            to = case["returnUrl"]
            self.reply(303 if to else 200, "<p>Thank you.</p>", **({"Location": to} if to else {}))
        elif kind == "orders":
            self.reply(200, self.obey(name, json.loads(body)))
        else:
            self.reply(404, {})

    def serve_call(self, call: str, run: Any) -> None:
        """A call of the API, with its faults."""
        server, faults = self.server, dict(self.server.faults)
        if self.headers["authorization"] != f"Bearer {server.api_key}":
            return self.reply(401, {})
        server.calls += 1
        late_s = faults["late_s"].get(call, 0.0)
        tell(call=call, moment="received")
        if faults["is_down"]:
            return None  # the connection ends
        time.sleep(late_s if faults["is_late_before"] else 0.0)
        found = run()
        tell(call=call, moment="done")
        time.sleep(0.0 if faults["is_late_before"] else late_s)
        if self.loses_answer():
            return None
        if found is None:
            return self.reply(404, {})
        url = f"http://{self.headers['host']}/verify/{found['token']}"
        return self.reply(200, {"id": found["id"], "state": found["state"], "url": url})

    def loses_answer(self) -> bool:
        """Whether this answer is lost: as many are as were ordered, also of calls at once."""
        with self.server.lock:
            left = self.server.faults["lost_answers"]
            self.server.faults["lost_answers"] = max(0, left - 1)
            return bool(left)

    def obey(self, order: str, said: Any) -> Any:
        """An order of a test: where webhooks go, faults, a decision, or a signed webhook."""
        server = self.server
        if order == "webhooks":
            server.webhook_url = said["url"]
        elif order == "faults":
            server.faults |= said
        elif order == "decide":
            server.decide(said["case"], said["state"])
        elif order == "sign":
            notice = {"id": f"event-{secrets.token_hex(8)}", "case": said["case"]}
            headers, body = server.sign(notice, time.time() - said.get("age_s", 0))
            return {"headers": headers, "body": body.decode()}
        return {}

    def find_by_token(self, token: str) -> dict[str, Any] | None:
        found = [one for one in self.server.cases.values() if one["token"] == token]
        return found[0] if found else None

    def reply(self, status: int, content: Any, **headers: str) -> None:
        is_page = isinstance(content, str)
        body = content.encode() if is_page else json.dumps(content).encode()
        self.send_response(status)
        headers |= {"Content-Type": "text/html" if is_page else "application/json"}
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing: paths have tokens."""


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
