"""A marketplace: an order with the goods of two sellers, each paid by its own Payment, and a
refund by one of them, which leaves the other's sale alone.

Run it in a sandbox in this process::

    .venv/bin/python examples/marketplace.py
"""

from __future__ import annotations

from decimal import Decimal

from payments_core_http.client import AccountClient, AccountDestination, Client
from payments_core_http.client.responses import CreatedPayment, Payment
from payments_core_http.testing import open_sandbox

BASE, USDC = 8453, "USDC"


def place_order(client: Client, number: str, cart: dict[str, Decimal]) -> list[CreatedPayment]:
    """A Payment to each seller. The keys come from the order, so this can be repeated."""
    return [
        client.payments.receive(
            amount=f"{amount:.2f}",
            destination=AccountDestination(external_user_id=seller),
            reference=number,
            metadata={"seller": seller},
            idempotency_key=f"{number} {seller}",
        )
        for seller, amount in cart.items()
    ]


def pay_order(buyer: AccountClient, payments: list[CreatedPayment]) -> None:
    """Authorize all of them from the buyer's vault; each succeeds or fails by itself."""
    for payment in payments:
        buyer.pay(payment.id, payment.client_secret, idempotency_key=f"pay {payment.id}")


def refund_seller(client: Client, number: str, seller: str, amount: Decimal) -> Payment:
    """Refund the buyer a part of what one seller of an order received."""
    [payment] = [
        one
        for one in client.payments.list(reference=number)
        if one.metadata is not None and one.metadata["seller"] == seller
    ]
    client.payments.refund(
        payment.id,
        amount=f"{amount:.2f}",
        reason="one jar was broken",
        idempotency_key=f"refund {payment.id} 1",
    )
    return payment


def print_balances(client: Client, *names: str) -> None:
    """What each account has available."""
    for name in names:
        [account] = client.accounts.list(external_user_id=name)
        balances = client.accounts.read_balances(account.account_id).balances
        [row] = [one for one in balances if (one.chain_id, one.asset_symbol) == (BASE, USDC)]
        print(f"  {name:5} {Decimal(row.available):7.2f}")


def main() -> None:
    """Ann buys honey and tea from two sellers, and gets a part of the honey's price back."""
    with open_sandbox() as sandbox:
        client = sandbox.client
        ann = sandbox.make_account("ann", funds="100.00")
        sandbox.make_account("honey")
        sandbox.make_account("tea")
        cart = {"honey": Decimal("30"), "tea": Decimal("12.50")}

        payments = place_order(client, "order-7", cart)
        assert place_order(client, "order-7", cart) == payments, "a repeated task makes no second"
        pay_order(sandbox.open_account(ann, "payments:read", "vault_payments:write"), payments)
        sandbox.settle()
        print("paid", [one.status for one in client.payments.list(reference="order-7")])
        print_balances(client, "ann", "honey", "tea")

        honey = refund_seller(client, "order-7", "honey", Decimal("10"))
        sandbox.settle()
        print("refunded", client.payments.read(honey.id).status)
        print_balances(client, "ann", "honey", "tea")


if __name__ == "__main__":
    main()
