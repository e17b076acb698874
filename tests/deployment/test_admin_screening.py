"""`payments admin screening`: what screening holds is listed, and an operator decides it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from payments_core import KeyRing, NewAccount, NewSend, PaymentsService, ToWallet, open_storage
from payments_core.resources import Resources
from tests.deployment.deployed import Deployed, shop

REVIEWED = "0x7476609c9e396ea1ecAFDfaf204457d0B83a4e71"
BLOCKED = "0x7476609c9e396ea1ecAFDfaf204457d0B83ab10c"


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    deployed = Deployed.made(tmp_path, f"sqlite:///{tmp_path}/payments.db")
    deployed.run("admin", "migrate")
    return deployed


@contextmanager
def serving(deployed: Deployed, environment_id: str) -> Iterator[Resources]:
    """The environment in this process, whose worker does what is due at the end."""
    ring = KeyRing.parse((deployed.folder / "key-ring").read_text())
    with closing(PaymentsService(open_storage(deployed.storage_url), ring)) as service:
        service.refresh()
        yield service.environment(environment_id)
        service.worker("sandbox").run_until_idle()


def send(deployed: Deployed, environment_id: str, address: str) -> str:
    """A send to an address; its id."""
    with serving(deployed, environment_id) as resources:
        new = NewAccount(external_user_id=f"eve-{address}", subject_type="individual")
        eve = resources.accounts.create(new).account
        resources.sandbox.fund(eve.id, 8453, "USDC", "50.00")
        sent = NewSend(
            amount="5.00",
            account_id=eve.id,
            chain_id=8453,
            asset_symbol="USDC",
            destination=ToWallet(address=address.lower()),
        )
        return resources.payments.send(sent).payment.id


def status_of(deployed: Deployed, environment_id: str, payment_id: str) -> tuple[str, bool]:
    with serving(deployed, environment_id) as resources:
        payment = resources.payments.read(payment_id).payment
        return payment.status, "in_review" in payment.labels


def test_what_is_in_review_is_cleared_by_name(deployed: Deployed) -> None:
    environment_id = shop(deployed)[0]["sandboxEnvironmentId"]
    payment_id = send(deployed, environment_id, REVIEWED)
    assert status_of(deployed, environment_id, payment_id) == ("processing", True)
    [waiting] = deployed.admin("screening", "list", "shop")
    assert (waiting["resource"], waiting["status"]) == (payment_id, "in_review")
    assert waiting["subject"].lower() == REVIEWED.lower()
    assert deployed.admin("screening", "list", "shop", "--status", "blocked") == []
    held_id = waiting["heldId"]
    done = deployed.admin("screening", "decide", "shop", held_id, "clear", "--by", "Ann")
    assert (done["outcome"], done["decidedBy"]) == ("clear", "Ann")
    assert "screening.decide" in {one.operation for one in deployed.trail()}
    status_of(deployed, environment_id, payment_id)  # the worker runs
    assert status_of(deployed, environment_id, payment_id)[0] in ("executing", "succeeded")
    assert deployed.admin("screening", "list", "shop") == []
    again = ("screening", "decide", "shop", held_id, "blocked", "--by", "Ann")
    assert "held transfer" in deployed.run("admin", *again, fails=True)


def test_what_was_stopped_stays_in_the_list_until_it_is_cleared(deployed: Deployed) -> None:
    environment_id = shop(deployed)[0]["sandboxEnvironmentId"]
    payment_id = send(deployed, environment_id, BLOCKED)
    assert status_of(deployed, environment_id, payment_id) == ("action_required", False)
    [stopped] = deployed.admin("screening", "list", "shop", "--status", "blocked")
    assert (stopped["resource"], stopped["direction"]) == (payment_id, "out")
    deployed.admin("screening", "decide", "shop", stopped["heldId"], "blocked", "--by", "Ann")
    [kept] = deployed.admin("screening", "list", "shop", "--status", "blocked")
    assert kept["heldId"] == stopped["heldId"]
    deployed.admin("screening", "decide", "shop", stopped["heldId"], "clear", "--by", "Eve")
    assert deployed.admin("screening", "list", "shop", "--status", "blocked") == []


def test_a_decision_needs_a_name(deployed: Deployed) -> None:
    shop(deployed)
    said = deployed.run("admin", "screening", "decide", "shop", "job_1", "clear", fails=True)
    assert "--by" in said
