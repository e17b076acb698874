"""Capabilities and bank accounts, as a partner's backend calls them."""

from __future__ import annotations

import hashlib
import logging
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.sqlite.backups import backup
from payments_core.storage_loader import open_storage
from payments_core_http.wire.json_text import canonicalize
from tests.bank_account_fields import WRONG_FIELDS
from tests.http.checkout import Checkout
from tests.http.payment_bodies import BANK_ACCOUNT
from tests.http.v2.accounts.test_account_routes import NOBODY, Partner

PAYOUT = {"capability": "us_bank_payout"}


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


@pytest.fixture
def payer(checkout: Checkout) -> Partner:
    return Partner(checkout)


def sandbox(checkout: Checkout, path: str, body: Any) -> None:
    seen = checkout.api.call("POST", f"/v2/sandbox/{path}", body)
    assert seen.status < 300, seen.body


@pytest.fixture
def ready(checkout: Checkout, payer: Partner) -> Partner:
    """A payer whose capability is active."""
    sandbox(checkout, f"accounts/{payer.id}/kyc", {"status": "approved"})
    assert payer.call("POST", "/capability-activations", PAYOUT).status == 202
    sandbox(checkout, "run", {})
    sandbox(checkout, "clock", {"advanceSeconds": 60})
    return payer


def changed(path: str, value: Any) -> dict[str, Any]:
    """The body with one field changed, or left out where the value is `...`."""
    body: dict[str, Any] = deepcopy(BANK_ACCOUNT)
    *parents, name = path.split(".")
    inner = body
    for parent in parents:
        inner = inner[parent]
    if value is ...:
        del inner[name]
    else:
        inner[name] = value
    return body


class TestCapabilities:
    def test_an_activation_says_what_is_missing(self, payer: Partner) -> None:
        body = {**PAYOUT, "returnUrl": "https://shop.example/back"}
        seen = payer.call("POST", "/capability-activations", body, key="a")
        assert seen.status == 202, seen.body
        activation = seen.json
        assert activation.pop("createdAt") == activation.pop("updatedAt")
        assert activation.pop("id").startswith("capability_activation_")
        actions = {action["resolves"]: action for action in activation.pop("actions")}
        assert actions.keys() == {"kyc", "bank_review"}
        assert actions["kyc"]["method"] == "POST"
        assert actions["kyc"]["path"] == f"/v2/accounts/{payer.id}/verifications"
        assert activation == {
            "accountId": payer.id,
            "capability": "us_bank_payout",
            "status": "action_required",
            "hostedUrl": None,
            "reason": None,
            "requirements": {
                "missing": ["kyc", "bank_review"], "pending": [], "complete": ["activation"],
            },
        }  # fmt: skip
        again = payer.call("POST", "/capability-activations", body, key="a")
        assert (again.status, again.body) == (202, seen.body)
        assert again.headers["idempotent-replayed"] == "true"
        assert payer.account["capabilities"]["us_bank_payout"] == "action_required"

    def test_it_becomes_active_after_verification(self, ready: Partner) -> None:
        capabilities = ready.call("GET", "/capabilities").json["capabilities"]
        assert capabilities["us_bank_payout"] == {
            "status": "active",
            "requirements": {
                "missing": [], "pending": [], "complete": ["kyc", "activation", "bank_review"],
            },
            "actions": [],
        }  # fmt: skip
        assert ready.account["capabilities"] == {
            "us_bank_payout": "active",
            "us_bank_funding": "inactive",
        }

    def test_a_user_who_follows_the_actions_gets_there(
        self, checkout: Checkout, payer: Partner
    ) -> None:
        """From a suspended account without a verification to an active capability."""
        bodies = {
            "PATCH": {"status": "active"},
            f"/v2/accounts/{payer.id}/capability-activations": PAYOUT,
            f"/v2/accounts/{payer.id}/verifications": None,
        }
        payer.call("PATCH", body={"status": "suspended"})
        [suspended, why] = payer.call("GET", "/bank-account-requirements").json["actions"]
        assert (suspended["resolves"], why["resolves"]) == (
            "account_suspended", "capability_not_active",
        )  # fmt: skip
        done = checkout.api.call(
            suspended["method"], suspended["path"], bodies[suspended["method"]]
        )
        assert done.status == 200
        resolved = []
        for _ in range(10):
            found = checkout.api.call(why["method"], why["path"]).json["capabilities"]
            actions = {it["resolves"]: it for it in found["us_bank_payout"]["actions"]}
            posts = [it for it in actions.values() if it["method"] == "POST"]
            if posts:
                path = posts[0]["path"]
                assert checkout.api.call("POST", path, bodies[path]).status in (201, 202)
                resolved.append(posts[0]["resolves"])
            elif "kyc" in actions:  # the user and the provider are at it
                sandbox(checkout, f"accounts/{payer.id}/kyc", {"status": "approved"})
            elif actions:
                sandbox(checkout, "clock", {"advanceSeconds": 60})
        assert resolved == ["kyc", "activation"]
        assert found["us_bank_payout"]["status"] == "active"
        assert payer.call("GET", "/bank-account-requirements").json["actions"] == []

    def test_it_is_suspended_with_the_account(self, ready: Partner) -> None:
        suspended = ready.call("PATCH", body={"status": "suspended"}).json
        assert suspended["capabilities"]["us_bank_payout"] == "suspended"
        capability = ready.call("GET", "/capabilities").json["capabilities"]["us_bank_payout"]
        assert capability["requirements"]["missing"] == ["account_active"]
        [action] = capability["actions"]
        assert (action["method"], action["path"]) == ("PATCH", f"/v2/accounts/{ready.id}")
        active = ready.call("PATCH", body={"status": "active"}).json
        assert active["capabilities"]["us_bank_payout"] == "active"

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"capability": "eu_bank_payout"}, 400, "validation_error"),
            ({**PAYOUT, "returnUrl": "javascript:alert(1)"}, 400, "validation_error"),
            ({}, 400, "validation_error"),
        ],
    )
    def test_what_cannot_be_activated_is_refused(
        self, payer: Partner, body: Any, status: int, code: str
    ) -> None:
        seen = payer.call("POST", "/capability-activations", body)
        assert (seen.status, seen.code) == (status, code)
        assert payer.account["capabilities"]["us_bank_payout"] == "inactive"


class TestBankAccounts:
    def test_one_is_added_without_its_number_and_becomes_active(
        self, checkout: Checkout, ready: Partner
    ) -> None:
        seen = ready.call("POST", "/bank-accounts", BANK_ACCOUNT, key="b")
        assert seen.status == 201, seen.body
        made = seen.json
        assert made["id"] == made["bankAccountId"]
        assert made["id"].startswith("bank_account_")
        assert (made["status"], made["last4"]) == ("pending", "6789")
        again = ready.call("POST", "/bank-accounts", BANK_ACCOUNT, key="b")
        assert (again.status, again.body) == (201, seen.body)
        sandbox(checkout, "run", {})
        sandbox(checkout, "clock", {"advanceSeconds": 60})
        listed = ready.call("GET", "/bank-accounts")
        [found] = listed.json["data"]
        assert found == {**made, "status": "active", "updatedAt": found["updatedAt"]}
        for text in (seen.body, again.body, listed.body):
            assert b"000123456789" not in text

    def test_a_list_has_pages_newest_first(self, checkout: Checkout, ready: Partner) -> None:
        made = []
        for number in range(3):
            body = changed("accountNumber", f"00012345{number}")
            made.append(ready.call("POST", "/bank-accounts", body).json["id"])
            checkout.advance(1)
        first = ready.call("GET", "/bank-accounts?limit=2").json
        rest = ready.call("GET", f"/bank-accounts?limit=2&cursor={first['nextCursor']}").json
        assert [item["id"] for item in first["data"] + rest["data"]] == made[::-1]

    def test_it_needs_the_capability(self, payer: Partner) -> None:
        seen = payer.call("POST", "/bank-accounts", BANK_ACCOUNT)
        assert (seen.status, seen.code) == (422, "capability_not_active")
        assert payer.call("GET", "/bank-accounts").json["data"] == []

    @pytest.mark.parametrize(("path", "value", "says"), WRONG_FIELDS)
    def test_a_field_that_is_wrong_is_named_with_what_it_should_be(
        self, ready: Partner, path: str, value: Any, says: str
    ) -> None:
        seen = ready.call("POST", "/bank-accounts", changed(path, value))
        assert seen.status == 400
        assert set(seen.faults) == {path}
        assert says in seen.faults[path]
        if isinstance(value, str) and path == "accountNumber":
            assert value not in seen.body.decode()

    def test_every_fault_is_named_at_once(self, ready: Partner) -> None:
        body = {**BANK_ACCOUNT, "accountNumber": "1", "accountType": "x", "currency": "eur"}
        seen = ready.call("POST", "/bank-accounts", body)
        assert set(seen.faults) == {"accountNumber", "accountType", "currency"}

    def test_the_requirements_are_the_rules(self, ready: Partner) -> None:
        found = ready.call("GET", "/bank-account-requirements").json
        assert (found["eligible"], found["reasons"]) == (True, [])
        assert found["rails"] == ["ach", "wire"]
        assert {wallet["chainId"] for wallet in found["wallets"]} == {1, 10, 137, 8453, 42161}
        fields = {field["name"]: field for field in found["fields"]}
        flat = {name: value for name, value in BANK_ACCOUNT.items() if name != "address"}
        flat |= {f"address.{name}": value for name, value in BANK_ACCOUNT["address"].items()}
        assert set(fields) == {*flat, "bankName", "address.line2"}
        for name, field in fields.items():
            assert field["required"] == (name in flat)
            body = changed(name, ...) if name in flat else BANK_ACCOUNT
            expected = 400 if field["required"] else 201
            assert ready.call("POST", "/bank-accounts", body).status == expected, name
        assert fields["accountType"]["values"] == ["checking", "savings"]
        assert fields["routingNumber"]["pattern"] == "^[0-9]{9}$"
        states = fields["address.state"]["values"]
        texts = {field["name"]: field for field in found["payoutFields"]}
        assert {name: (one["maxLength"], one["pattern"]) for name, one in texts.items()} == {
            "destination.achReference": (80, "^[ -~]*$"),
            "destination.wireMessage": (140, "^[A-Za-z0-9 /?:().,'+-]*$"),
        }
        assert {"NY", "DC", "PR", "AP"} < set(states) and len(states) == len(set(states)) == 62

    def test_an_account_that_is_not_ready_learns_why(self, payer: Partner) -> None:
        found = payer.call("GET", "/bank-account-requirements").json
        assert (found["eligible"], found["reasons"]) == (False, ["capability_not_active"])
        assert (found["rails"], found["wallets"]) == ([], [])
        [action] = found["actions"]
        assert (action["method"], action["path"]) == (
            "GET", f"/v2/accounts/{payer.id}/capabilities",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/capability-activations", PAYOUT),
        ("GET", "/bank-account-requirements", None),
        ("POST", "/bank-accounts", BANK_ACCOUNT),
        ("GET", "/bank-accounts", None),
    ],
)
def test_an_account_that_is_nobodys_is_not_found(
    checkout: Checkout, method: str, path: str, body: Any
) -> None:
    seen = Partner(checkout, NOBODY).call(method, path, body)
    assert (seen.status, seen.code) == (404, "not_found")


def test_no_file_log_event_or_backup_holds_an_account_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    planted = ("73910264851", "60473918255", "99900099")
    file = tmp_path / "payments.db"
    storage = open_storage(f"sqlite:///{file}", RECORD_TYPES)
    storage.migrate()
    checkout = Checkout(storage)
    payer = Partner(checkout)
    sandbox(checkout, f"accounts/{payer.id}/kyc", {"status": "approved"})
    payer.call("POST", "/capability-activations", PAYOUT)
    sandbox(checkout, "run", {})
    sandbox(checkout, "clock", {"advanceSeconds": 60})
    answers = [payer.call("POST", "/bank-accounts", changed("accountNumber", planted[0]), key="p")]
    answers += [payer.call("POST", "/bank-accounts", changed("accountNumber", planted[2]))]
    failing = {"dependency": "bank", "operation": "register_account", "times": 2}
    sandbox(checkout, "failures", failing)
    wrong = {**changed("routingNumber", "021000022"), "accountNumber": planted[1]}
    answers += [payer.call("POST", "/bank-accounts", wrong)]
    answers += [payer.call("POST", "/bank-accounts", changed("accountNumber", planted[0]), key="p")]
    for _ in range(3):
        sandbox(checkout, "clock", {"advanceSeconds": 60})
    answers += [payer.call("GET", "/bank-accounts")]
    statuses = sorted(item["status"] for item in answers[-1].json["data"])
    assert statuses == ["active", "rejected"]
    events = checkout.api.call("GET", "/v2/console/events?limit=100")
    assert b"bank_account.updated" in events.body
    backup(file, tmp_path / "backup.db", RECORD_TYPES)
    texts = [answer.body for answer in (*answers, events)] + [caplog.text.encode()]
    texts += [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(texts) > len(answers) + 3
    fingerprint = fingerprint_of(f"/v2/accounts/{payer.id}/bank-accounts", planted[0])
    for secret in (*planted, fingerprint):
        assert not [text for text in texts if secret.encode() in text], secret
    storage.close()


def fingerprint_of(path: str, number: str) -> str:
    """What a thief of the rows could compare: all of the request but the number is in them."""
    _, _, _, account_id, _ = path.split("/")
    body = canonicalize(changed("accountNumber", number))
    template = path.replace(account_id, "{accountId}")
    text = msgspec.json.encode(("POST", template, [account_id], body))
    return hashlib.sha256(text).hexdigest()
