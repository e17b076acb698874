"""FastAPI with the service inside: FastAPI's own routes call it in process with the asynchronous
client, and an ASGI-WSGI bridge answers every path below `/payments`.

Run it in a sandbox in this process; to serve it, give `create_server(...)` to uvicorn::

    .venv/bin/python examples/fastapi_bridge.py
"""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urljoin

import httpx2
from a2wsgi import WSGIMiddleware
from fastapi import FastAPI, HTTPException

from payments_core_http.client import AccountDestination, AsyncClient
from payments_core_http.client.errors import ApiError
from payments_core_http.testing import open_sandbox

HOST = "http://localhost"
MOUNTED_AT = "/payments"


def create_server(payments_app: Any, app_id: str, app_secret: str, merchant_id: str) -> FastAPI:
    """FastAPI with the API and its pages; `payments_app` is that of `create_app`."""
    server = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)  # /docs is the service's
    client = AsyncClient.in_process(payments_app, app_id, app_secret)

    @server.post("/orders/{number}", status_code=201)
    async def order(number: str, amount: str) -> dict[str, str | None]:
        try:
            payment = await client.payments.receive(
                amount=amount,
                destination=AccountDestination(account_id=merchant_id),
                reference=number,
                idempotency_key=number,
            )
        except ApiError as error:
            fields = [f"{one.path} {one.message}" for one in error.fields]
            raise HTTPException(error.http_status, fields or error.message) from error
        return {"paymentId": payment.id, "checkout": payment.payment_url}

    @server.get("/orders")
    async def orders() -> list[dict[str, str | None]]:
        return [
            {"number": one.reference, "status": one.status} async for one in client.payments.list()
        ]

    # The bridge runs the WSGI application in threads. Payers and partners reach it below this path,
    # which is that of the service's `public_url`.
    server.mount(MOUNTED_AT, WSGIMiddleware(payments_app))  # type: ignore[arg-type]
    return server


async def visit(server: FastAPI, app_id: str, app_secret: str) -> None:
    """A visitor of FastAPI's routes, and a partner that calls the API through the bridge."""
    transport = httpx2.ASGITransport(app=server)
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as browser:
        made = await browser.post("/orders/order-1", params={"amount": "25.00"})
        again = await browser.post("/orders/order-1", params={"amount": "25.00"})
        print("created", made.status_code, made.json() == again.json())
        print("orders", (await browser.get("/orders")).json())
        refused = await browser.post("/orders/order-2", params={"amount": "a lot"})
        print("refused", refused.status_code, refused.json()["detail"])
        config = f"{MOUNTED_AT}/v2/partners/config"
        partner = await browser.get(config, auth=(app_id, app_secret))
        print("behind the bridge", partner.status_code, partner.json()["mode"])
        link = made.json()["checkout"]
        page = await browser.get(link)
        print("the checkout page", page.status_code, link.partition("/pay/")[0])
        [style, *_] = re.findall(r'<link rel="stylesheet" href="([^"]+)">', page.text)
        print("its style", (await browser.get(urljoin(link, style))).status_code)


def main() -> None:
    """Send a few requests to it."""
    with open_sandbox(public_url=HOST + MOUNTED_AT) as sandbox:
        server = create_server(
            sandbox.app, sandbox.app_id, sandbox.app_secret, sandbox.merchant.account_id
        )
        asyncio.run(visit(server, sandbox.app_id, sandbox.app_secret))


if __name__ == "__main__":
    main()
