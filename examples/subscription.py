"""A subscription: its customer approves a mandate once, and each week's fee is collected by it.

Run it in a sandbox in this process, where it plays three weeks and a fee that the mandate
does not allow::

    .venv/bin/python examples/subscription.py
"""

from __future__ import annotations

from datetime import datetime, timedelta

from payments_core_http.client import AccountDestination, Client
from payments_core_http.client.codes import PolicyDenied
from payments_core_http.client.responses import Mandate, Payment
from payments_core_http.testing import open_sandbox

BASE = 8453


def subscribe(client: Client, account_id: str, weekly: str) -> Mandate:
    """The mandate over the account's vault on Base. Ask the customer before you call this."""
    [vault] = [one for one in client.vaults.list(account_id) if one.chain_id == BASE]
    return client.mandates.create(
        account_id,
        vault_id=vault.vault_id,
        asset_symbol="USDC",
        amount_per_period=weekly,
        period="week",
        reference="magazine",
        idempotency_key=f"magazine {account_id}",
    )


def collect_fee(
    client: Client, mandate: Mandate, to: str, amount: str, day: datetime, kind: str = "fee"
) -> Payment:
    """Collect one week's fee. A job that runs twice, or again after a crash, collects it once."""
    return client.payments.collect(
        amount=amount,
        mandate_id=mandate.mandate_id,
        destination=AccountDestination(account_id=to),
        reference=f"{kind} {day:%G-W%V}",
        idempotency_key=f"{kind} {mandate.mandate_id} {day:%G-W%V}",
    )


def main() -> None:
    """Three weeks, each collected once although the job runs twice."""
    with open_sandbox() as sandbox:
        client, publisher = sandbox.client, sandbox.merchant.account_id
        reader = sandbox.make_account("reader", funds="100.00")
        mandate = subscribe(client, reader.account_id, "9.00")
        print("mandate", mandate.status, mandate.amount_per_period, "per", mandate.period)

        for _ in range(3):
            week = sandbox.clock.now()
            first = collect_fee(client, mandate, publisher, "9.00", week)
            again = collect_fee(client, mandate, publisher, "9.00", week)
            assert again.id == first.id
            sandbox.settle()
            print(f"fee {client.payments.read(first.id).status}")
            sandbox.clock.advance(week + timedelta(days=7) - sandbox.clock.now())

        week = sandbox.clock.now()
        collect_fee(client, mandate, publisher, "9.00", week)
        try:
            collect_fee(client, mandate, publisher, "1.00", week, "extra")
        except PolicyDenied as denied:
            print("an extra dollar is refused by", denied.rule)

        client.mandates.revoke(reader.account_id, mandate.mandate_id)
        sandbox.settle()
        collected = list(client.payments.list(intent="collect"))
        print("collected", len(collected), {one.status for one in collected})


if __name__ == "__main__":
    main()
