"""Held transfers on the dashboard: listed with why, decided once, of this environment alone."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.addresses import normalize_address
from payments_core.screening.judging import decision_id, pay_out
from payments_core.screening.record import ScreeningVerdict
from tests.http.checkout import BASE
from tests.http.console import Console
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser

LIST = "/dashboard/screening"
REVIEWED = "0x" + "ab" * 18 + "4e71"


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console.api)


def hold(console: Console, address: str = REVIEWED) -> Any:
    """A Payment that is paid, and whose release is held for its destination."""
    wallet = {"type": "wallet", "address": address}
    payment = console.create(key=f"to-{address}", destination=wallet, reference="<b>1</b>").json
    console.transfer(payment["escrow"]["address"], "25")
    console.run()
    return payment


def links(browser: OperatorBrowser, query: str = "") -> list[str]:
    return [
        str(one["href"])
        for one in browser.open(LIST + query).all("a")
        if str(one["href"]).startswith(f"{LIST}/")
    ]


def status_of(console: Console, payment: Any) -> str:
    return str(console.read(payment["id"])["status"])


def decision_on(console: Console, payment: Any, address: str = REVIEWED) -> ScreeningVerdict | None:
    """An operator's verdict of the destination of a Payment."""
    concern = pay_out(BASE, normalize_address("evm", address))
    id = decision_id(payment["id"], concern)
    return console.api.service.parts.ports.storage.read(
        console.api.partition, lambda snapshot: snapshot.get(ScreeningVerdict, id)
    )


def test_nothing_is_held(browser: OperatorBrowser) -> None:
    assert b"No transfer is in review." in browser.get(LIST).body
    assert b"No transfer is blocked." in browser.get(f"{LIST}?status=blocked").body


def test_what_is_held_says_who_what_why_and_since_when(
    console: Console, browser: OperatorBrowser
) -> None:
    payment = hold(console)
    [path] = links(browser)
    assert links(browser, "?status=blocked") == []
    for shown in (browser.get(LIST).body.decode(), browser.get(path).body.decode()):
        assert REVIEWED.lower() in shown.lower()
        assert "the sandbox reviews what ends in 4e71" in shown
        assert "<time datetime=" in shown
        assert payment["id"] in shown
        assert "<b>1</b>" not in shown


@pytest.mark.parametrize(
    ("outcome", "status"), [("clear", "executing"), ("blocked", "action_required")]
)
def test_a_decision_is_stored_once_with_the_operators_name(
    console: Console, browser: OperatorBrowser, outcome: str, status: str
) -> None:
    payment = hold(console)
    [path] = links(browser)
    fields = {**browser.forms(path)[path], "outcome": outcome}
    for _ in range(2):
        seen = browser.post(path, fields)
        assert (seen.status, seen.headers["location"]) == (303, LIST)
    console.run()
    assert status_of(console, payment) == status
    decided = decision_on(console, payment)
    assert decided is not None
    assert (decided.outcome, decided.decided_by, decided.version) == (outcome, "olivia", 1)
    assert links(browser) == []


def test_what_is_cleared_by_hand_is_cleared_for_one_payment_alone(
    console: Console, browser: OperatorBrowser
) -> None:
    first = hold(console)
    [path] = links(browser)
    assert browser.submit(path, path, outcome="clear").status == 303
    console.run()
    wallet = {"type": "wallet", "address": REVIEWED}
    second = console.create(key="again", destination=wallet).json
    console.transfer(second["escrow"]["address"], "25")
    console.run()
    assert (status_of(console, first), status_of(console, second)) == ("succeeded", "accepted")


@pytest.mark.parametrize("outcome", ["", "review", "CLEAR"])
def test_only_decisions_are_taken(console: Console, browser: OperatorBrowser, outcome: str) -> None:
    payment = hold(console)
    [path] = links(browser)
    assert browser.submit(path, path, outcome=outcome).status == 400
    console.run()
    assert status_of(console, payment) == "accepted"
    assert decision_on(console, payment) is None


def test_a_form_of_another_transfer_decides_nothing(
    console: Console, browser: OperatorBrowser
) -> None:
    other = "0x" + "cd" * 18 + "4e71"
    held, beside = hold(console), hold(console, other)
    first, second = links(browser)
    fields = browser.forms(first)[first]
    assert browser.post(second, {**fields, "outcome": "clear"}).status == 403
    assert browser.get(f"{LIST}/job_nobodyxxxxxxxxxxxxxxxxxxxx").status == 404
    assert browser.get(f"{LIST}?status=sent").status == 400
    assert decision_on(console, held) is None
    assert decision_on(console, beside, other) is None


def test_what_was_blocked_is_sent_once_it_is_cleared_and_tried_again(
    console: Console, browser: OperatorBrowser
) -> None:
    payment = hold(console, "0x" + "ab" * 18 + "b10c")
    assert links(browser) == []
    [path] = links(browser, "?status=blocked")
    story = f"/dashboard/payments/{payment['id']}"
    retry, confirmed = f"{story}/reconcile?action=retry_execution", f"{story}/reconcile"
    assert status_of(console, payment) == "action_required"
    assert browser.submit(path, path, outcome="clear").status == 303
    assert links(browser, "?status=blocked") == []
    assert browser.submit(retry, confirmed).status == 303
    console.run()
    assert status_of(console, payment) == "executing"


@pytest.mark.parametrize("ending", ["4e71", "b10c"])
def test_an_operators_own_block_can_be_undone(
    console: Console, browser: OperatorBrowser, ending: str
) -> None:
    payment = hold(console, "0x" + "ab" * 18 + ending)
    [path] = links(browser) or links(browser, "?status=blocked")
    assert browser.submit(path, path, outcome="blocked").status == 303
    console.run()
    assert status_of(console, payment) == "action_required"
    [path] = links(browser, "?status=blocked")
    assert "blocked by olivia" in browser.open(f"{LIST}?status=blocked").text
    page = browser.open(path)
    assert "Undo the block" in page.text
    assert browser.forms(path)[path]["outcome"] == "clear"
    assert browser.submit(path, path).status == 303
    assert links(browser, "?status=blocked") == []
    story = f"/dashboard/payments/{payment['id']}"
    browser.submit(f"{story}/reconcile?action=retry_execution", f"{story}/reconcile")
    console.run()
    assert status_of(console, payment) == "executing"
