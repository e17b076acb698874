"""What Payments received, over WSGI."""

from __future__ import annotations

from payments_core.payments.journal.record import JOURNAL_ACCOUNTS
from tests.http.checkout import Checkout
from tests.http.payment_bodies import (
    create,
    receive,
)


def test_receipts_come_page_by_page_with_the_whole_journal(checkout: Checkout) -> None:
    payment = create(checkout, receive(checkout, amount="25")).json
    escrow = payment["escrow"]["address"]
    for amount in ("10", "5", "12"):
        checkout.transfer(escrow, amount)
    path = f"/v2/payments/{payment['id']}/receipts"
    seen = checkout.api.call("GET", path)
    assert seen.status == 200
    assert list(seen.json) == ["data", "limit", "hasNextPage", "nextCursor", "journal"]
    assert [item["amountAtomic"] for item in seen.json["data"]] == [
        "10000000", "5000000", "12000000",
    ]  # fmt: skip
    assert all(item["optionId"] is None for item in seen.json["data"])
    assert seen.json["data"] == checkout.read(payment["id"])["receipts"]
    journal = seen.json["journal"]
    assert journal["balances"] == {
        "payer": "-27000000", "escrow": "0", "excess": "2000000", "recipient": "25000000",
        "fees": "0", "offramp": "0", "bank": "0",
    }  # fmt: skip
    assert [(entry["number"], entry["cause"]) for entry in journal["entries"]] == [
        (1, "receipt"), (2, "receipt"), (3, "receipt"), (4, "release"),
    ]  # fmt: skip
    last = journal["entries"][2]
    assert last == {
        "number": 3,
        "cause": "receipt",
        "subject": seen.json["data"][2]["id"],
        "postings": {"payer": "-12000000", "escrow": "10000000", "excess": "2000000"},
        "note": None,
        "createdAt": seen.json["data"][2]["verifiedAt"],
    }
    for entry in journal["entries"]:
        assert sum(int(amount) for amount in entry["postings"].values()) == 0

    first = checkout.api.call("GET", f"{path}?limit=2").json
    assert (first["limit"], first["hasNextPage"]) == (2, True)
    second = checkout.api.call("GET", f"{path}?limit=2&cursor={first['nextCursor']}").json
    assert (second["hasNextPage"], second["nextCursor"]) == (False, None)
    assert first["data"] + second["data"] == seen.json["data"]
    assert first["journal"] == second["journal"] == journal


def test_a_payment_that_received_nothing_has_an_empty_journal(checkout: Checkout) -> None:
    payment = create(checkout, receive(checkout)).json
    seen = checkout.api.call("GET", f"/v2/payments/{payment['id']}/receipts").json
    assert seen["data"] == []
    assert seen["journal"] == {
        "balances": dict.fromkeys(JOURNAL_ACCOUNTS, "0"),
        "entries": [],
    }
