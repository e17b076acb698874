"""A small bank: reviews, payouts, numbers that others pay to, signed webhooks, and faults on call.

It stands for a bank on the Internet, and runs as a process of its own::

    .venv/bin/python examples/custom_bank/service.py --port 8701

It prints JSON lines: its URL, then each call before and after it took effect, and each webhook.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from payments_core.banks.rails import SERVICES, Rail, choose_service
from payments_core.banks.routing_numbers import find_routing_number_fault
from payments_core.banks.settlement import plan_settlement
from payments_core.banks.texts import find_holder_fault, find_statement_fault

FAULTS: Mapping[str, Any] = {
    "is_down": False,  # no call is answered
    "lost_answers": 0,  # the next calls take effect, and are not answered
    "late_s": {},  # how late calls such as `PUT payouts` are answered, or
    "is_late_before": False,  # begun
    "webhooks": "once",  # or "twice", "late", "reversed", "none"
}
LATE_S = 2.0
RETRIES_S = (0.2, 0.5, 1, 2, 4, 8, 15, 30)


class Refused(Exception):
    """The bank does not do this. The arguments are a word and a sentence."""


class KeyTaken(Exception):
    """The key came with another request before."""


class Bank(ThreadingHTTPServer):
    """All that the bank knows, in memory. Each kind of request has its own keys."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, api_key: str, secret: str) -> None:
        self.api_key, self.secret = api_key, secret.encode()
        self.rows: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in MAKERS}
        self.rows["transfers"] = {}
        self.events: dict[str, dict[str, Any]] = {}
        self.webhook_url = ""
        self.faults = dict(FAULTS)
        self.held: list[dict[str, str]] = []
        self.lock = threading.RLock()
        super().__init__(("127.0.0.1", port), Answer)

    def put(self, kind: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        """The row of a key: made once, and only for the same request."""
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        with self.lock:
            known = self.rows[kind].get(key)
            if known is None:
                made = MAKERS[kind](self, body)
                known = {"key": key, "id": f"{kind}-{secrets.token_hex(8)}", **made}
                self.rows[kind][key] = known | {"digest": digest}
            elif known["digest"] != digest:
                raise KeyTaken
            return self.rows[kind][key]

    def move(self, kind: str, key: str, **changes: Any) -> None:
        """Something happens here: a decision, a settlement, a return."""
        with self.lock:
            row = self.rows[kind][key]
            row |= changes
            id = f"event-{secrets.token_hex(8)}"
            if kind in ("payouts", "transfers"):
                event = {"id": id, "of": kind, "about": key, "account": row.get("account")}
                self.events[id] = event | {"state": row["state"], "at": now_ms()}
            self.report({"id": id, "about": key})

    def return_transfer(self, id: str, why: str) -> dict[str, Any] | None:
        """Send a transfer back, unless its money has left already."""
        with self.lock:
            row = self.rows["transfers"].get(id)
            if row is None or row["state"] == "returned":
                return row
            if row["state"] != "received" or self.is_delivered(id):
                raise Refused("not_returnable", "its money is not here")
            self.move("transfers", id, state="returned", why=why)
            return row

    def is_delivered(self, transfer_id: str) -> bool:
        made = self.rows["deliveries"].values()
        return any(delivery["transfer"] == transfer_id for delivery in made)

    def report(self, notice: dict[str, str]) -> None:
        """Send a webhook, as the faults say."""
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


def now_ms() -> int:
    return int(time.time() * 1_000)


def make_capability(bank: Bank, body: Mapping[str, Any]) -> dict[str, Any]:
    url = f"https://bank.example/apply/{secrets.token_urlsafe(16)}"
    return {"state": "open", "url": url, "account": body["account_id"]}


def make_recipient(bank: Bank, body: Mapping[str, Any]) -> dict[str, Any]:
    require_account(body["account"])
    return {"state": "open"}


def make_payout(bank: Bank, body: Mapping[str, Any]) -> dict[str, Any]:
    rail: Rail = body["rail"]
    require_account(body["to"])
    service = choose_service(rail, body["cents"], same_day=body["sameDay"])
    if not 0 < body["cents"] <= SERVICES[service].max_cents:
        raise Refused("amount_out_of_range", f"not an amount that {rail} carries")
    if fault := find_holder_fault(rail, body["to"]["holder"]):
        raise Refused("holder_name_invalid", f"the holder's name {fault}")
    if fault := body["text"] and find_statement_fault(rail, body["text"]):
        raise Refused("statement_text_invalid", f"the statement text {fault}")
    settles_on = plan_settlement(service, now_ms()).on.isoformat()
    return {"state": "sent", "rail": rail, "cents": body["cents"], "sentAt": now_ms(),
            "settlesOn": settles_on}  # fmt: skip


def make_number(bank: Bank, body: Mapping[str, Any]) -> dict[str, Any]:
    number = str(1_000_000_000 + len(bank.rows["numbers"]))
    return {"number": number, "routing": "021000021", "bank": "Example Bank",
            "bankAddress": "1 Main St, Springfield, IL", "holder": "Example Bank FBO",
            "holderAddress": "1 Main St, Springfield, IL", "memo": number[-6:],
            "rails": ["ach_push", "wire"]}  # fmt: skip


def make_delivery(bank: Bank, body: Mapping[str, Any]) -> dict[str, Any]:
    transfer = bank.rows["transfers"].get(body["transfer"], {"state": None})
    if transfer["state"] != "received" or bank.is_delivered(body["transfer"]):
        raise Refused("not_deliverable", "its money is not here")
    return {"state": "pending", "transfer": body["transfer"], "chain": body["chain_id"],
            "to": body["address"], "atomic": str(body["amount_atomic"])}  # fmt: skip


def require_account(account: Mapping[str, Any]) -> None:
    if fault := find_routing_number_fault(account["routing"]):
        raise Refused("routing_number_invalid", f"the routing number {fault}")
    if not re.fullmatch("[0-9]{4,17}", account["number"]):
        raise Refused("account_number_invalid", "an account number has 4 to 17 digits")


MAKERS: Mapping[str, Callable[[Bank, Mapping[str, Any]], dict[str, Any]]] = {
    "capabilities": make_capability,
    "recipients": make_recipient,
    "payouts": make_payout,
    "numbers": make_number,
    "deliveries": make_delivery,
}


class Answer(BaseHTTPRequestHandler):
    """The API, and what tests order at `/orders`."""

    server: Bank

    def do_GET(self) -> None:
        kind, name, _ = self.split()
        if kind == "orders":
            self.reply(200, self.server.rows)
        elif kind == "events":
            self.serve_call("GET events", self.list_events)
        elif kind in self.server.rows:
            self.serve_call(f"GET {kind}", lambda: self.server.rows[kind].get(name))
        else:
            self.reply(404, {})

    def do_PUT(self) -> None:
        kind, name, action = self.split()
        body, bank = self.read(), self.server
        if (kind, action) == ("transfers", "return"):
            self.serve_call("PUT return", lambda: bank.return_transfer(name, body["why"]))
        elif kind in MAKERS:
            self.serve_call(f"PUT {kind}", lambda: bank.put(kind, name, body))
        else:
            self.reply(404, {})

    def do_POST(self) -> None:
        kind, name, _ = self.split()
        if kind == "orders":
            self.reply(200, self.obey(name, self.read()))
        elif (kind, name) == ("events", "acknowledge"):
            body = self.read()
            self.serve_call("POST acknowledge", lambda: self.acknowledge(body["ids"]))
        else:
            self.reply(404, {})

    def list_events(self) -> dict[str, Any]:
        """A page of the events that nobody acknowledged, the oldest first."""
        asked = {name: one for name, (one,) in parse_qs(urlsplit(self.path).query).items()}
        with self.server.lock:
            ids = [id for id, one in self.server.events.items() if one["of"] == asked["of"]]
            begin = int(asked.get("after", 0))
            end = begin + int(asked["limit"])
            events = [self.server.events[id] for id in ids[begin:end]]
        return {"events": events, "next": str(end) if end < len(ids) else None}

    def acknowledge(self, ids: list[str]) -> dict[str, Any]:
        with self.server.lock:
            for id in ids:
                self.server.events.pop(id, None)
        return {}

    def serve_call(self, call: str, run: Callable[[], Any]) -> None:
        """A call of the API, with its faults."""
        server, faults = self.server, dict(self.server.faults)
        if self.headers["authorization"] != f"Bearer {server.api_key}":
            return self.reply(401, {})
        late_s = faults["late_s"].get(call, 0.0)
        tell(call=call, moment="received")
        if faults["is_down"]:
            return None  # the connection ends
        time.sleep(late_s if faults["is_late_before"] else 0.0)
        status, found = self.run(run)
        tell(call=call, moment="done")
        time.sleep(0.0 if faults["is_late_before"] else late_s)
        if self.loses_answer():
            return None
        return self.reply(status, found)

    def run(self, run: Callable[[], Any]) -> tuple[int, Any]:
        try:
            found = run()
        except Refused as error:
            reason, message = error.args
            return 422, {"reason": reason, "message": message}
        except KeyTaken:
            return 409, {}
        return (404, {"error": "unknown"}) if found is None else (200, found)

    def loses_answer(self) -> bool:
        """Whether this answer is lost: as many are as were ordered, also of calls at once."""
        with self.server.lock:
            left = self.server.faults["lost_answers"]
            self.server.faults["lost_answers"] = max(0, left - 1)
            return bool(left)

    def obey(self, order: str, said: Any) -> Any:
        """An order of a test: webhooks, faults, what happens here, or a signed webhook."""
        server = self.server
        if order == "webhooks":
            server.webhook_url = said["url"]
        elif order == "faults":
            server.faults |= said
        elif order == "approve":
            server.move(said["kind"], said["key"], state="approved")
        elif order == "settle":
            server.move("payouts", said["key"], state="settled", settledAt=now_ms())
        elif order == "return":
            changes = {"state": "returned", "returnedAt": now_ms(), "code": said["code"]}
            server.move("payouts", said["key"], **changes)
        elif order == "transfer":  # somebody sends money to a number
            id = f"transfer-{secrets.token_hex(8)}"
            made = {"account": said["account"], "rail": "ach_push", "cents": said["cents"]}
            server.rows["transfers"][id] = {"id": id, **made}
            server.move("transfers", id, state="scheduled", expectedAt=now_ms())
            return {"id": id}
        elif order == "receive":
            server.move("transfers", said["id"], state="received", receivedAt=now_ms())
        elif order == "sign":
            notice = {"id": f"event-{secrets.token_hex(8)}", "about": said["about"]}
            headers, body = server.sign(notice, time.time() - said.get("age_s", 0))
            return {"headers": headers, "body": body.decode()}
        return {}

    def split(self) -> tuple[str, str, str]:
        """The kind, the key, which may have a slash in it, and the action of a path."""
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        kind, name, action = (*parts, "", "")[:3]
        return kind, name, action

    def read(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["content-length"] or 0)))

    def reply(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing: what happens is told by `tell`."""


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
    bank = Bank(given.port, given.api_key, given.secret)
    tell(url=f"http://127.0.0.1:{bank.server_port}")
    bank.serve_forever()


if __name__ == "__main__":
    main()
