"""`payments logs --payment`: where to see a Payment on its chain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from payments_core.chains.port import NetworkKind
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.cli.logs import command
from tests.http.checkout import Checkout
from tests.http.pages.browser import serve
from tests.http.payer_page import Page

SCAN = "https://basescan.org"


def run(checkout: Checkout, data: Path, *arguments: str) -> str:
    keys = {
        "appId": checkout.api.app_row.id,
        "environmentId": checkout.api.partition,
        "appSecret": checkout.api.secret,
    }
    (data / "sandbox.json").write_text(json.dumps(keys))
    with serve(checkout.api.app) as url:
        done = CliRunner().invoke(command, ["--data", str(data), "--url", url, *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def refunded(kind: NetworkKind) -> Page:
    page = Page(Checkout(MemoryStorage()).declare_network(kind))
    page.checkout.transfer(page.payment["escrow"]["address"], "25")
    path = f"/v2/payments/{page.payment['id']}/refunds"
    page.checkout.api.call("POST", path, {}, key="refund")
    page.checkout.advance(60)
    return page


def test_its_escrow_and_its_transactions_are_linked(tmp_path: Path) -> None:
    page = refunded("testnet")
    payment = page.checkout.read(page.payment["id"])
    said = run(page.checkout, tmp_path, "--payment", page.payment["id"])
    assert [line.split() for line in said.splitlines()] == [
        ["escrow", f"{SCAN}/address/{payment['escrow']['address']}"],
        ["receipt", f"{SCAN}/tx/{payment['receipts'][0]['transactionHash']}"],
        ["release", f"{SCAN}/tx/{payment['releaseTransactionHash']}"],
        ["refund", f"{SCAN}/tx/{payment['refunds'][0]['transactionHash']}"],
    ]
    assert run(page.checkout, tmp_path, "--payment", page.payment["id"], "--json") == ""


@pytest.mark.parametrize("kind", ["local", "simulated"])
def test_nothing_shows_a_chain_of_the_sandboxs_own(tmp_path: Path, kind: NetworkKind) -> None:
    page = refunded(kind)
    assert run(page.checkout, tmp_path, "--payment", page.payment["id"]) == ""


def test_an_unknown_payment_is_refused(tmp_path: Path) -> None:
    checkout = Checkout(MemoryStorage())
    with pytest.raises(AssertionError, match="not_found"):
        run(checkout, tmp_path, "--payment", "payment_" + "A" * 24)
