"""Every event of the contract has a place in the catalog, sent already or not."""

from __future__ import annotations

import re

import pytest

from payments_core.engine.events import BY_NAME, CATALOGUE
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import Checkout

# As the contract writes them (§8).
CONTRACT = """
payment.{created,processing,underpaid,accepted,executing,succeeded,action_required,overpaid,late,
misdirected,reorged,expired,cancelled,reconciled,refunded,failed}
refund.{created,succeeded,failed}
vault_funding.{authorized,broadcast,confirmed,failed}
deposit.{detected,confirmed,settled,failed,misdirected}
account.{created,updated,capability_updated}
bank_account.{created,updated}
bank_funding.{scheduled,received,in_review,submitted,settled,refunded,failed}
dispute.{flagged,resolved}
webhook.{test}
"""
ADDED = ("deposit.returned", "payment.in_review", "webhook.failing", "webhook.recovered")
"""What a receiver of the contract does not know, and ignores."""
NAMES = sorted(
    [
        *ADDED,
        *(
            f"{family}.{name.strip()}"
            for family, names in re.findall(r"(\w+)\.\{([^}]+)\}", CONTRACT)
            for name in names.split(",")
        ),
    ]
)


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def subscribe(checkout: Checkout, *names: str) -> list[str]:
    api = checkout.api
    path = f"/v2/console/apps/{api.app_row.id}/environments/{api.partition}/webhooks"
    body = {"url": "https://93.184.216.34/hook", "subscribedEvents": names}
    seen = api.call("POST", path, body)
    assert seen.status == 201, seen.body
    found: list[str] = seen.json["webhookEndpoint"]["subscribedEvents"]
    return found


def test_the_catalog_has_every_event_of_the_contract_and_those_that_were_added() -> None:
    assert len(NAMES) == 43 + len(ADDED)
    assert sorted(BY_NAME) == NAMES
    assert len(CATALOGUE) == len(BY_NAME)
    assert all(event.meaning and event.fields for event in CATALOGUE)


def test_every_event_of_the_catalog_is_sent() -> None:
    assert [event.name for event in CATALOGUE if not event.emitted] == []


def test_every_event_can_be_subscribed_to_at_once(checkout: Checkout) -> None:
    assert sorted(subscribe(checkout, *NAMES)) == NAMES


def test_the_console_shows_them_all(checkout: Checkout) -> None:
    catalog = checkout.api.call("GET", "/v2/console/webhooks").json["eventCatalog"]
    assert [event["name"] for event in catalog] == list(BY_NAME)
