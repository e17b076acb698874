"""A small hosted on-ramp: purchases, a checkout page, signed webhooks, and faults on call.

It stands for a provider on the Internet, and runs as a process of its own::

    .venv/bin/python examples/custom_onramp/service.py --port 8702

It prints JSON lines: its URL, then each call before and after it took effect, and each webhook.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from decimal import ROUND_UP, Decimal
from html import escape
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

FAULTS: Mapping[str, Any] = {
    "is_down": False,  # no call is answered
    "is_confused": False,  # what is answered is not in the reference
    "lost_answers": 0,  # the next calls take effect, and are not answered
    "late_s": {},  # how late the calls `buy` and `look` are answered, or
    "is_late_before": False,  # begun
    "webhooks": "once",  # or "twice", "late", "reversed", "none"
    "deliveries": "once",  # or "twice", "short", "by hand"
}
LATE_S = 2.0
RETRIES_S = (0.2, 0.5, 1, 2, 4, 8, 15, 30)
PRICE_HOLDS_S = 600
RATES: Mapping[str, Decimal] = {"USD": Decimal("1.02"), "EUR": Decimal("0.95")}
"""What one coin costs, with the fee."""
SELLS = ("USDC",)
DECLINED = "4000000000000002"

PAGE = """<!doctype html>
<html lang="en"><meta name="viewport" content="width=device-width"><title>Example On-ramp</title>
<style>body {{ font: 16px system-ui; max-width: 24rem; margin: 2rem auto; padding: 0 1rem }}
input, button {{ font: inherit; width: 100%; padding: .6rem; margin: .3rem 0 }}</style>
<h1>Buy {amount} {symbol}</h1>
<p>You pay <strong>{price} {currency}</strong>. They are sent to <code>{recipient}</code>.</p>
{form}</html>"""
FORM = """<form method="post"><label>Card number
<input name="card" inputmode="numeric" autocomplete="cc-number" required></label>
<button name="do" value="pay">Pay {price} {currency}</button>
<button name="do" value="cancel" formnovalidate>Cancel</button></form>"""
ENDED = "<p>This purchase is {state}.</p>"


class Provider(ThreadingHTTPServer):
    """All that the provider knows, in memory. It keeps no card number."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, api_key: str, secret: str) -> None:
        self.api_key, self.secret = api_key, secret.encode()
        self.purchases: dict[str, dict[str, Any]] = {}
        self.chain: dict[str, str] = {}
        self.webhook_url = ""
        self.faults = dict(FAULTS)
        self.held: list[dict[str, str]] = []
        self.lock = threading.RLock()
        super().__init__(("127.0.0.1", port), Answer)

    def buy(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The purchase of a key: opened once, and only for the same terms."""
        terms = {name: body[name] for name in ("chain", "symbol", "amount", "to", "currency")}
        terms["currency"] = terms["currency"] or "USD"
        if terms["symbol"] not in SELLS or terms["currency"] not in RATES:
            return 422, {"reason": "not_sold"}
        with self.lock:
            known = [one for one in self.purchases.values() if one["key"] == body["key"]]
            if known and {name: known[0][name] for name in terms} != terms:
                return 409, {}
            if known:
                return 200, known[0]
            number = f"purchase-{secrets.token_hex(8)}"
            price = Decimal(terms["amount"]) * RATES[terms["currency"]]
            self.purchases[number] = terms | {
                "id": number, "key": body["key"], "state": "open", "returnUrl": body["returnUrl"],
                "token": secrets.token_urlsafe(16), "until": int(time.time()) + PRICE_HOLDS_S,
                "price": f"{price.quantize(Decimal('0.01'), ROUND_UP):f}", "sent": [],
            }  # fmt: skip
            return 200, self.purchases[number]

    def move(self, number: str, before: tuple[str, ...], after: str) -> bool:
        """A purchase comes to another state, unless it is past that."""
        with self.lock:
            purchase = self.purchases[number]
            if purchase["state"] not in before:
                return False
            purchase["state"] = after
            self.report(number)
            return True

    def pay(self, number: str) -> None:
        """The card was charged; what was bought is sent at once unless that is done by hand."""
        if self.purchases[number]["until"] < time.time():
            self.move(number, ("open",), "cancelled")
        elif self.move(number, ("open",), "paid") and self.faults["deliveries"] != "by hand":
            threading.Thread(target=self.deliver, args=(number,), daemon=True).start()

    def deliver(self, number: str) -> None:
        """Send what was bought, as the faults say."""
        with self.lock:
            purchase, kind = self.purchases[number], self.faults["deliveries"]
            if purchase["state"] != "paid":
                return
            amount = Decimal(purchase["amount"]) / (2 if kind == "short" else 1)
            for _ in range(2 if kind == "twice" else 1):
                purchase["sent"].append(self.send_tokens(purchase, f"{amount:f}"))
            purchase["delivered"] = f"{amount:f}"
            self.move(number, ("paid",), "sent")

    def send_tokens(self, purchase: Mapping[str, Any], amount: str) -> str:
        """A transfer on the sandbox's chain, if there is one; its hash."""
        if not self.chain:
            return "0x" + secrets.token_hex(32)
        body = {"chainId": purchase["chain"], "assetSymbol": purchase["symbol"],
                "amount": amount, "to": purchase["to"]}  # fmt: skip
        credential = base64.b64encode(self.chain["credential"].encode()).decode()
        headers = {"Authorization": f"Basic {credential}", "Content-Type": "application/json"}
        status, answer = post(f"{self.chain['url']}/v2/sandbox/transfers", body, headers)
        tell(sent=purchase["id"], status=status)
        return str(json.loads(answer)["transactionHash"])

    def report(self, number: str) -> None:
        """Send a webhook about a purchase, as the faults say."""
        notice = {"id": f"event-{secrets.token_hex(8)}", "purchase": number}
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
                headers, _ = self.sign(notice, time.time())
                status, _ = post(self.webhook_url, notice, headers)
                tell(webhook=notice["id"], status=status)
                if 200 <= status < 300:
                    break
                time.sleep(pause_s)

    def sign(self, notice: Mapping[str, str], at_s: float) -> tuple[dict[str, str], bytes]:
        """The headers and the body of a webhook. The signature is over its time and its bytes."""
        stamp, body = str(int(at_s)), json.dumps(notice).encode()
        signed = hmac.digest(self.secret, stamp.encode() + b"." + body, hashlib.sha256)
        return {"example-time": stamp, "example-signature": signed.hex()}, body


class Answer(BaseHTTPRequestHandler):
    """The API at `/purchases`, the page at `/checkout`, and what tests order at `/orders`."""

    server: Provider

    def do_GET(self) -> None:
        kind, _, name = urlsplit(self.path).path.strip("/").partition("/")
        if kind == "purchases":
            self.serve_call("look", lambda: self.look(unquote(name)))
        elif kind == "checkout" and (purchase := self.find_by_token(name)):
            self.show(purchase)
        elif kind == "orders":
            self.reply(200, self.server.purchases)
        else:
            self.reply(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        kind, _, name = self.path.strip("/").partition("/")
        if kind == "purchases":
            self.serve_call("buy", lambda: self.server.buy(json.loads(body)))
        elif kind == "checkout" and (purchase := self.find_by_token(name)):
            self.submit(purchase, parse_qs(body.decode()))
        elif kind == "orders":
            self.reply(200, self.obey(name, json.loads(body)))
        else:
            self.reply(404, {})

    def look(self, number: str) -> tuple[int, dict[str, Any]]:
        found = self.server.purchases.get(number)
        return (404, {}) if found is None else (200, found)

    def show(self, purchase: Mapping[str, Any]) -> None:
        """The page, with a form while the purchase is open."""
        shown = {name: escape(str(purchase[name])) for name in
                 ("amount", "symbol", "price", "currency", "state")}  # fmt: skip
        form = (FORM if purchase["state"] == "open" else ENDED).format(**shown)
        self.reply(200, PAGE.format(**shown, recipient=escape(purchase["to"]), form=form))

    def submit(self, purchase: Mapping[str, Any], said: Mapping[str, list[str]]) -> None:
        """The payer has pressed a button of the page."""
        card = "".join(said.get("card", [""])[0].split())
        if said["do"] == ["cancel"] or card == DECLINED:
            self.server.move(purchase["id"], ("open",), "cancelled")
        elif card.isdecimal() and 12 <= len(card) <= 19:
            self.server.pay(purchase["id"])
        else:
            return self.show(purchase)
        if purchase["returnUrl"]:
            return self.reply(303, "", Location=purchase["returnUrl"])
        return self.show(purchase)

    def serve_call(self, call: str, run: Callable[[], tuple[int, dict[str, Any]]]) -> None:
        """A call of the API, with its faults."""
        server, faults = self.server, dict(self.server.faults)
        if self.headers["authorization"] != f"Bearer {server.api_key}":
            return self.reply(401, {})
        late_s = faults["late_s"].get(call, 0.0)
        tell(call=call, moment="received")
        if faults["is_down"]:
            return None  # the connection ends
        time.sleep(late_s if faults["is_late_before"] else 0.0)
        status, found = run()
        tell(call=call, moment="done")
        time.sleep(0.0 if faults["is_late_before"] else late_s)
        if self.loses_answer():
            return None
        if faults["is_confused"]:
            return self.reply(200, {"id": 7, "state": "wonderful", "price": None})
        shown = {name: value for name, value in found.items() if name not in ("token", "key")}
        if "token" in found:
            shown["url"] = f"http://{self.headers['host']}/checkout/{found['token']}"
        return self.reply(status, shown)

    def loses_answer(self) -> bool:
        """Whether this answer is lost: as many are as were ordered, also of calls at once."""
        with self.server.lock:
            left = self.server.faults["lost_answers"]
            self.server.faults["lost_answers"] = max(0, left - 1)
            return bool(left)

    def obey(self, order: str, said: Any) -> Any:
        """An order of a test: webhooks, faults, a chain, what happens, or a signed webhook."""
        server = self.server
        if order == "webhooks":
            server.webhook_url = said["url"]
        elif order == "faults":
            server.faults |= said
        elif order == "chain":  # the API of the sandbox whose chains deliveries are on
            server.chain = said
        elif order == "pay":
            server.pay(said["purchase"])
        elif order == "deliver":
            server.deliver(said["purchase"])
        elif order == "cancel":
            server.move(said["purchase"], ("open",), "cancelled")
        elif order == "give_back":
            server.move(said["purchase"], ("open", "paid"), "refunded")
        elif order == "sign":
            notice = {"id": f"event-{secrets.token_hex(8)}", "purchase": said["purchase"]}
            headers, body = server.sign(notice, time.time() - said.get("age_s", 0))
            return {"headers": headers, "body": body.decode()}
        return {}

    def find_by_token(self, token: str) -> dict[str, Any] | None:
        found = [one for one in self.server.purchases.values() if one["token"] == token]
        return found[0] if found else None

    def reply(self, status: int, content: Any, **headers: str) -> None:
        is_page = isinstance(content, str)
        body = content.encode() if is_page else json.dumps(content).encode()
        self.send_response(status)
        headers |= {"Content-Type": "text/html; charset=utf-8" if is_page else "application/json"}
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing: paths have tokens."""


def post(url: str, body: object, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """The status and the body of an answer; 0 without one."""
    to = urlsplit(url)
    connection = HTTPConnection(str(to.hostname), to.port, timeout=10)
    try:
        connection.request("POST", to.path, json.dumps(body).encode(), dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()


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
